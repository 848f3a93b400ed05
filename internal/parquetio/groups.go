package parquetio

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
)

// Fill appends what a column holds of rows to values: one value for each row with the levels that the column's
// place in the schema needs, or, of a list, one for each element.
type Fill[R any] func(rows []R, values []parquet.Value) []parquet.Value

// GroupWriter writes a file with the schema of T, each column by a goroutine of its own. Rows are handed over as R,
// from which the columns fill themselves. The bytes are those that [Writer] writes of the same rows, handed over in
// the same batches of a multiple of 64 rows.
type GroupWriter[T, R any] struct {
	w       *parquet.GenericWriter[T]
	columns []*columnWriter[R]
	free    chan *parquet.ConcurrentRowGroupWriter // of two groups: one is filled while the other is written
	group   *parquet.ConcurrentRowGroupWriter
	ends    chan *groupEnd
	running sync.WaitGroup
	stopped bool
	rows    int64
	failure failure
}

// failure keeps the first error of several goroutines.
type failure struct{ err atomic.Pointer[error] }

func (f *failure) set(err error) {
	if err != nil {
		f.err.CompareAndSwap(nil, &err)
	}
}

func (f *failure) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// columnWriter is one column, which a goroutine writes.
type columnWriter[R any] struct {
	fill Fill[R]
	list bool
	jobs chan job[R]
}

// job is a batch of rows for a column of a group, or the end of the group.
type job[R any] struct {
	group *parquet.ConcurrentRowGroupWriter
	end   *groupEnd
	rows  []R
	left  *atomic.Int32 // columns that need the rows
	used  func()        // for the last of them to call
}

// groupEnd is a group that waits for its columns.
type groupEnd struct {
	group *parquet.ConcurrentRowGroupWriter
	ready sync.WaitGroup
}

// columnAhead is how many batches a column may be behind the fastest.
const columnAhead = 16

// NewGroupWriter starts a Parquet file on w. Fills has each column of T's schema by its name. Close or Stop must
// follow.
func NewGroupWriter[T, R any](w io.Writer, footer map[string]string, fills map[string]Fill[R]) (*GroupWriter[T, R], error) {
	g := &GroupWriter[T, R]{
		w: parquet.NewGenericWriter[T](w, options(footer, pageBytes)...), free: make(chan *parquet.ConcurrentRowGroupWriter, 2),
		ends: make(chan *groupEnd, 1),
	}
	for _, path := range g.w.Schema().Columns() {
		fill := fills[path[0]]
		if fill == nil {
			return nil, fmt.Errorf("writing rows: nothing fills column %s", path[0])
		}
		g.columns = append(g.columns, &columnWriter[R]{fill: fill, list: len(path) > 1, jobs: make(chan job[R], columnAhead)})
	}
	if len(g.columns) != len(fills) {
		return nil, errors.New("writing rows: a column that the schema lacks")
	}
	for range cap(g.free) {
		g.free <- nil // made when it is needed
	}
	for i, c := range g.columns {
		g.running.Go(func() { g.fill(i, c) })
	}
	g.running.Go(g.commit)
	return g, nil
}

// Write hands rows over. They must not change until used is called, which happens in any case. An error may be that
// of an earlier call.
func (g *GroupWriter[T, R]) Write(rows []R, used func()) error {
	if g.group == nil {
		if g.group = <-g.free; g.group == nil {
			g.group = g.w.BeginRowGroup()
		}
	}
	left := &atomic.Int32{}
	left.Store(int32(len(g.columns)))
	for _, c := range g.columns {
		c.jobs <- job[R]{group: g.group, rows: rows, left: left, used: used}
	}
	g.rows += int64(len(rows))
	return g.failure.get()
}

// Flush ends the row group.
func (g *GroupWriter[T, R]) Flush() error {
	if g.group == nil {
		return g.failure.get()
	}
	end := &groupEnd{group: g.group}
	end.ready.Add(len(g.columns))
	for _, c := range g.columns {
		c.jobs <- job[R]{group: g.group, end: end}
	}
	g.ends <- end
	g.group = nil
	return g.failure.get()
}

// Rows counts the rows written so far.
func (g *GroupWriter[T, R]) Rows() int64 { return g.rows }

// Close ends the last row group and writes the footer. The underlying writer stays open.
func (g *GroupWriter[T, R]) Close() error {
	err := g.Flush()
	g.Stop()
	if err = errors.Join(err, g.failure.get()); err != nil {
		return err
	}
	if err := g.w.Close(); err != nil {
		return fmt.Errorf("writing the footer: %w", err)
	}
	return nil
}

// Stop ends the goroutines. Without Close before it the file stays without an end.
func (g *GroupWriter[T, R]) Stop() {
	if g.stopped {
		return
	}
	g.stopped = true
	for _, c := range g.columns {
		close(c.jobs)
	}
	close(g.ends)
	g.running.Wait()
}

// fill writes column i of all groups. After an error the rows are only given back.
func (g *GroupWriter[T, R]) fill(i int, c *columnWriter[R]) {
	var values []parquet.Value
	for j := range c.jobs {
		w := j.group.ColumnWriters()[i]
		if j.end != nil {
			if g.failure.get() == nil {
				g.failure.set(flush(w))
			}
			j.end.ready.Done()
			continue
		}
		if g.failure.get() == nil {
			values = c.fill(j.rows, values[:0])
			g.failure.set(c.write(w, values))
		}
		if j.left.Add(-1) == 0 {
			j.used()
		}
	}
}

func flush(w *parquet.ColumnWriter) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing a row group: %w", err)
	}
	return nil
}

// rowsPerWrite is how many rows parquet-go takes at a time from rows: pages end only between such portions.
const rowsPerWrite = 64

// write hands values on in portions of rowsPerWrite rows.
func (c *columnWriter[R]) write(w *parquet.ColumnWriter, values []parquet.Value) error {
	for len(values) > 0 {
		n := min(rowsPerWrite, len(values))
		if c.list {
			n = portion(values)
		}
		if _, err := w.WriteRowValues(values[:n]); err != nil {
			return fmt.Errorf("writing rows: %w", err)
		}
		values = values[n:]
	}
	return nil
}

// portion is how many values the first rowsPerWrite rows have.
func portion(values []parquet.Value) int {
	rows := 0
	for i := range values {
		if values[i].RepetitionLevel() == 0 {
			if rows++; rows > rowsPerWrite {
				return i
			}
		}
	}
	return len(values)
}

// commit writes the groups that are filled, one after the other.
func (g *GroupWriter[T, R]) commit() {
	for end := range g.ends {
		end.ready.Wait()
		if g.failure.get() == nil {
			if _, err := end.group.Commit(); err != nil {
				g.failure.set(fmt.Errorf("writing a row group: %w", err))
			}
		}
		g.free <- end.group
	}
}
