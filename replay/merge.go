package replay

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"slices"

	"tailgate/internal/atomicfile"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// Rows are read and written in batches of this size. The size of the written ones is part of what makes equal
// rows give equal bytes.
const (
	readBatch  = 64
	writeBatch = 256
)

func byRow(a, b *schemas.Result) int {
	return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.ScheduledUs, b.ScheduledUs))
}

// mergeSegments writes the rows of all segments to path, sorted, and returns how many there are. A segment is
// opened when its first row comes up, so that only those that overlap are open at once.
func mergeSegments(path string, footer map[string]string, segments []segment) (int64, error) {
	f, err := atomicfile.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Abort()
	var rows int64
	for _, s := range segments {
		rows += s.rows
	}
	w := parquetio.NewWriterFor[schemas.Result](f, footer, rows)
	m := &merger{closed: slices.Clone(segments)}
	defer m.close()
	slices.SortStableFunc(m.closed, func(a, b segment) int { return cmp.Compare(a.first, b.first) })
	batch := make([]schemas.Result, 0, writeBatch)
	for {
		row, err := m.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("merging results: %w", err)
		}
		if err == nil {
			batch = append(batch, row)
		}
		if len(batch) == writeBatch || err != nil {
			if err := w.Write(batch); err != nil {
				return 0, fmt.Errorf("merging results: %w", err)
			}
			batch = batch[:0]
		}
		if err != nil {
			break
		}
	}
	if err := w.Close(); err != nil {
		return 0, fmt.Errorf("merging results: %w", err)
	}
	return w.Rows(), f.Commit()
}

// merger is a k-way merge of sorted segments.
type merger struct {
	closed []segment // not yet opened, by first row
	open   cursorHeap
}

// next returns the smallest row that is left; io.EOF at the end.
func (m *merger) next() (schemas.Result, error) {
	for len(m.closed) > 0 && (len(m.open) == 0 || m.closed[0].first <= m.open[0].head().Row) {
		c, err := openCursor(m.closed[0].path)
		if err != nil {
			return schemas.Result{}, err
		}
		m.closed = m.closed[1:]
		heap.Push(&m.open, c)
	}
	if len(m.open) == 0 {
		return schemas.Result{}, io.EOF
	}
	c := m.open[0]
	row := *c.head()
	switch err := c.advance(); {
	case errors.Is(err, io.EOF):
		heap.Pop(&m.open)
		return row, c.r.Close()
	case err != nil:
		return row, err
	}
	heap.Fix(&m.open, 0)
	return row, nil
}

func (m *merger) close() {
	for _, c := range m.open {
		c.r.Close()
	}
}

// cursor stands on one row of a segment.
type cursor struct {
	r     *parquetio.Reader[schemas.Result]
	batch []schemas.Result
	at, n int
}

// openCursor stands on the first row; segments are never empty.
func openCursor(path string) (*cursor, error) {
	r, err := parquetio.Open[schemas.Result](path)
	if err != nil {
		return nil, err
	}
	c := &cursor{r: r, batch: make([]schemas.Result, readBatch), at: -1}
	if err := c.advance(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return c, nil
}

func (c *cursor) head() *schemas.Result { return &c.batch[c.at] }

func (c *cursor) advance() error {
	if c.at++; c.at < c.n {
		return nil
	}
	n, err := c.r.Read(c.batch)
	c.at, c.n = 0, n
	return err
}

type cursorHeap []*cursor

func (h cursorHeap) Len() int           { return len(h) }
func (h cursorHeap) Less(i, j int) bool { return byRow(h[i].head(), h[j].head()) < 0 }
func (h cursorHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *cursorHeap) Push(x any)        { *h = append(*h, x.(*cursor)) }
func (h *cursorHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
