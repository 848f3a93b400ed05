package parquetio

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// Int64Lists visits a column of lists of INT64 in portions of whole rows: lengths has one entry a row, −1 for a null
// list, and values holds their elements one after the other. Both are valid during the visit only. Null elements are
// left out.
func (c *Chunks) Int64Lists(group int, name string, visit func(lengths []int32, values []int64) error) error {
	l := chunkLists{visit: visit, empty: -1}
	if f, ok := fieldOf(c.file.Schema(), name); ok && f.Optional() {
		l.empty = 1
	}
	err := c.each(group, name, true, []parquet.Kind{parquet.Int64}, func(p chunkPage, _ parquet.Kind) (err error) {
		values, err := numbersOf(p, (*encoding.Values).Int64, l.buf[:0])
		if err != nil {
			return err
		}
		return l.page(p, values)
	})
	if err != nil {
		return err
	}
	if l.opened {
		if err := visit([]int32{l.length}, l.open); err != nil {
			return err
		}
		l.rows++
	}
	if l.rows != c.Rows(group) {
		return c.src.Fault(c.name, fmt.Errorf("column %s: another number of lists than rows", name))
	}
	return nil
}

// chunkLists cuts the levels of pages in rows. The last row of a page may go on in the next one, so it stays open.
type chunkLists struct {
	visit   func(lengths []int32, values []int64) error
	empty   int // definition level of an empty list where a list may be null; −1 where it may not
	rows    int
	lengths []int32
	buf     []int64

	opened bool
	length int32
	open   []int64
}

func (l *chunkLists) page(p chunkPage, values []int64) error {
	if p.levels == 0 {
		return nil
	}
	if p.reps == nil || p.reps[0] != 0 && !l.opened {
		return errLevels
	}
	starts := l.starts(p)
	head := p.levels // levels that go on with the open row
	if len(starts) > 0 {
		head = int(starts[0])
	}
	n := p.count(0, head)
	if l.length += int32(n); head > 0 {
		l.open = append(l.open, values[:n]...)
		values = values[n:]
	}
	if len(starts) == 0 {
		return nil
	}
	if l.opened {
		if err := l.visit([]int32{l.length}, l.open); err != nil {
			return err
		}
		l.rows++
	}
	// All rows that begin in the page but the last one are whole; their lengths stand where their starts were.
	last := len(starts) - 1
	first := int(starts[last])
	whole := values[:len(values)-p.count(first, p.levels)]
	l.opened, l.length = true, l.lengthOf(p, first, p.levels)
	l.open = append(l.open[:0], values[len(whole):]...)
	for i := range last {
		starts[i] = l.lengthOf(p, int(starts[i]), int(starts[i+1]))
	}
	l.rows += last
	if last == 0 {
		return nil
	}
	return l.visit(starts[:last], whole)
}

// starts are the levels at which rows begin.
func (l *chunkLists) starts(p chunkPage) []int32 {
	if cap(l.lengths) < p.levels {
		l.lengths = make([]int32, p.levels)
	}
	out, n := l.lengths[:p.levels], 0
	for i, rep := range p.reps {
		out[n] = int32(i)
		if rep == 0 {
			n++
		}
	}
	return out[:n]
}

// count is the number of values between two levels.
func (p chunkPage) count(from, to int) (n int) {
	if p.values == p.levels {
		return to - from
	}
	for _, def := range p.defs[from:to] {
		if int(def) == p.full {
			n++
		}
	}
	return n
}

func (l *chunkLists) lengthOf(p chunkPage, from, to int) int32 {
	if p.values != p.levels && int(p.defs[from]) < l.empty {
		return -1
	}
	return int32(p.count(from, to))
}
