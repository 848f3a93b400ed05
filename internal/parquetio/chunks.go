package parquetio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// Chunks reads a file column chunk by column chunk into slices of the caller: a whole column of one row group at a
// time, page by page, without a call for each value. Its methods may be called at the same time.
type Chunks struct {
	file *parquet.File
	src  *Source
	f    *os.File
	name string
}

// OpenChunks opens path. A file that is not Parquet is an error that names it.
func OpenChunks(path string) (*Chunks, error) {
	f, size, err := openSized(path)
	if err != nil {
		return nil, err
	}
	src := Watch(f)
	pf, _, err := fileOf(src, size, path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Chunks{file: pf, src: src, f: f, name: path}, nil
}

// Close closes the file.
func (c *Chunks) Close() error { return c.f.Close() }

// Footer returns the key-value metadata.
func (c *Chunks) Footer() map[string]string { return metadata(c.file) }

// Size is that of the file, in bytes.
func (c *Chunks) Size() int64 { return c.file.Size() }

// Groups counts the row groups.
func (c *Chunks) Groups() int { return len(c.file.RowGroups()) }

// Rows counts the rows of a row group.
func (c *Chunks) Rows(group int) int { return int(c.file.RowGroups()[group].NumRows()) }

// NumRows counts the rows of the file.
func (c *Chunks) NumRows() int64 { return c.file.NumRows() }

// chunkPage is a page of a column chunk with its values.
type chunkPage struct {
	levels, full int             // how many levels it has; definition level of a value
	defs, reps   []byte          // nil where every level is a value; nil without lists
	values       int             // levels that are values
	data         encoding.Values // the values; their places in the dictionary where there is one
	dict         parquet.Dictionary
}

// each visits the pages of a column chunk. lists tells that the column is one of lists.
func (c *Chunks) each(group int, name string, lists bool, kinds []parquet.Kind, visit func(p chunkPage, kind parquet.Kind) error) error {
	fail := func(err error) error { return c.src.Fault(c.name, fmt.Errorf("column %s: %w", name, err)) }
	path := []string{name}
	if lists {
		path = append(path, "list", "element")
	}
	leaf, ok := c.file.Schema().Lookup(path...)
	if _, there := fieldOf(c.file.Schema(), name); !there {
		return c.src.Fault(c.name, fmt.Errorf("no column %s", name))
	}
	if !ok || lists != (leaf.MaxRepetitionLevel == 1) || leaf.MaxRepetitionLevel > 1 {
		return fail(errors.New("unexpected nesting"))
	}
	kind := leaf.Node.Type().Kind()
	if !slices.Contains(kinds, kind) {
		return fail(fmt.Errorf("is %v, not %v", kind, kinds[0]))
	}
	levels := 0
	if err := eachPage(c.file.RowGroups()[group].ColumnChunks()[leaf.ColumnIndex], func(page parquet.Page) error {
		p := chunkPage{levels: int(page.NumValues()), full: leaf.MaxDefinitionLevel, defs: page.DefinitionLevels(), reps: page.RepetitionLevels(),
			data: page.Data(), dict: page.Dictionary()}
		if p.values = p.levels; p.defs != nil {
			p.values = bytes.Count(p.defs, []byte{byte(p.full)})
		}
		if p.values == p.levels && !lists {
			p.defs = nil
		}
		if p.defs != nil && len(p.defs) != p.levels || p.reps != nil && len(p.reps) != p.levels {
			return errLevels
		}
		if levels += p.levels; !lists && levels > c.Rows(group) {
			return errors.New("more values than rows")
		}
		return visit(p, kind)
	}); err != nil {
		return fail(err)
	}
	if !lists && levels != c.Rows(group) {
		return fail(errors.New("fewer values than rows"))
	}
	return nil
}

// eachPage visits the pages of a chunk; parquet-go panics on some broken ones.
func eachPage(chunk parquet.ColumnChunk, visit func(parquet.Page) error) (err error) {
	pages := chunk.Pages()
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("broken page")
		}
		err = errors.Join(err, pages.Close())
	}()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = visit(page)
		parquet.Release(page)
		if err != nil {
			return err
		}
	}
}

// numbersOf are the values of a page of numbers.
func numbersOf[T any](p chunkPage, of func(*encoding.Values) []T, buf []T) ([]T, error) {
	if p.dict == nil {
		list := of(&p.data)
		return list, holds(len(list), p.values)
	}
	page := p.dict.Page()
	words := page.Data()
	list := of(&words)
	codes, err := codesOf(p.data, p.values, len(list))
	for _, code := range codes {
		buf = append(buf, list[code])
	}
	return buf, err
}

// placed appends one value for each level, null where it is none.
func placed[T, S any](to []T, p chunkPage, values []S, null T, as func(S) T) []T {
	if p.defs == nil {
		for _, v := range values {
			to = append(to, as(v))
		}
		return to
	}
	next, full := 0, byte(p.full)
	for _, def := range p.defs {
		v := null
		if def == full {
			v = as(values[next])
			next++
		}
		to = append(to, v)
	}
	return to
}

// Int64s appends the values of a flat INT64 or INT32 column, null where a row has none.
func (c *Chunks) Int64s(group int, name string, null int64, to []int64) ([]int64, error) {
	return integers(c, group, name, null, to)
}

// Int32s appends the values of a flat INT32 or INT64 column, null where a row has none; what has no room in 32 bits is
// cut to it.
func (c *Chunks) Int32s(group int, name string, null int32, to []int32) ([]int32, error) {
	return integers(c, group, name, null, to)
}

func integers[T int32 | int64](c *Chunks, group int, name string, null T, to []T) ([]T, error) {
	var wide []int64
	var narrow []int32
	err := c.each(group, name, false, []parquet.Kind{parquet.Int64, parquet.Int32}, func(p chunkPage, kind parquet.Kind) error {
		if kind == parquet.Int32 {
			list, err := numbersOf(p, (*encoding.Values).Int32, narrow[:0])
			if err == nil {
				to = placed(to, p, list, null, func(v int32) T { return T(v) })
			}
			return err
		}
		list, err := numbersOf(p, (*encoding.Values).Int64, wide[:0])
		if err == nil {
			to = placed(to, p, list, null, func(v int64) T { return cut[T](v) })
		}
		return err
	})
	return to, err
}

// cut is v in the type T, at its border where it has no room.
func cut[T int32 | int64](v int64) T {
	switch n := T(v); {
	case int64(n) == v:
		return n
	case v > 0:
		return math.MaxInt32
	}
	return math.MinInt32
}

// Float64s appends the values of a flat DOUBLE column, null where a row has none.
func (c *Chunks) Float64s(group int, name string, null float64, to []float64) ([]float64, error) {
	err := c.each(group, name, false, []parquet.Kind{parquet.Double}, func(p chunkPage, _ parquet.Kind) error {
		list, err := numbersOf(p, (*encoding.Values).Double, nil)
		if err == nil {
			to = placed(to, p, list, null, func(v float64) float64 { return v })
		}
		return err
	})
	return to, err
}

// Bools appends the values of a flat BOOLEAN column, false where a row has none.
func (c *Chunks) Bools(group int, name string, to []bool) ([]bool, error) {
	return booleans(c, group, name, to, func(v, _ bool) bool { return v })
}

// OptionalBools appends the values of a flat BOOLEAN column as 0 and 1, −1 where a row has none.
func (c *Chunks) OptionalBools(group int, name string, to []int8) ([]int8, error) {
	return booleans(c, group, name, to, func(v, null bool) int8 {
		switch {
		case null:
			return -1
		case v:
			return 1
		}
		return 0
	})
}

func booleans[T any](c *Chunks, group int, name string, to []T, as func(v, null bool) T) ([]T, error) {
	err := c.each(group, name, false, []parquet.Kind{parquet.Boolean}, func(p chunkPage, _ parquet.Kind) error {
		bits, next := p.data.Boolean(), 0
		if p.dict != nil || 8*len(bits) < p.values {
			return errLevels
		}
		for i := range p.levels {
			v, null := false, true
			if p.defs == nil || p.defs[i] == byte(p.full) {
				v, null = bits[next>>3]>>(next&7)&1 == 1, false
				next++
			}
			to = append(to, as(v, null))
		}
		return nil
	})
	return to, err
}
