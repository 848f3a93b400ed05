package spill

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"tailgate/internal/atomicfile"
)

// maxRuns bounds how many sorted files of one Sorter are open at a time; more are merged into one.
const maxRuns = 48

// Sorter orders records by their bytes. Add first, then Merge as often as needed. It is not safe for
// concurrent use.
type Sorter struct {
	dir    string
	budget int
	arena  []byte
	order  []place
	runs   []*atomicfile.Unnamed
}

// place is a record in the arena: its first 16 bytes as numbers decide most comparisons without the arena.
type place struct {
	a, b     uint64
	from, to uint32
}

// placeBytes is the size of a place in memory.
const placeBytes = 24

// NewSorter returns a Sorter that keeps about budget bytes in memory (at least 64 KiB, at most 2 GiB) and
// spills into dir.
func NewSorter(dir string, budget int) *Sorter {
	return &Sorter{dir: dir, budget: min(max(budget, 64<<10), 2<<30)}
}

// Add copies rec, which must have at least 16 bytes.
func (s *Sorter) Add(rec []byte) error {
	if len(rec) < 16 {
		return fmt.Errorf("sorting: a record of %d bytes is too short", len(rec))
	}
	if len(s.order) > 0 && len(s.arena)+len(rec)+placeBytes*(len(s.order)+1) > s.budget {
		if err := s.spill(); err != nil {
			return err
		}
	}
	from := len(s.arena)
	s.arena = append(s.arena, rec...)
	s.order = append(s.order, place{
		a: binary.BigEndian.Uint64(rec), b: binary.BigEndian.Uint64(rec[8:]), from: uint32(from), to: uint32(len(s.arena)),
	})
	return nil
}

// Spilled tells how many files hold sorted records.
func (s *Sorter) Spilled() int { return len(s.runs) }

// Seal sorts what is in memory. It must be called once, between the last Add and the first Merge.
func (s *Sorter) Seal() error {
	if len(s.runs) == 0 {
		s.sort()
		return nil
	}
	err := s.spill()
	s.arena, s.order = nil, nil // files only: merging needs the memory
	return err
}

func (s *Sorter) sort() {
	slices.SortFunc(s.order, func(x, y place) int {
		if c := cmp.Compare(x.a, y.a); c != 0 {
			return c
		}
		if c := cmp.Compare(x.b, y.b); c != 0 {
			return c
		}
		return bytes.Compare(s.arena[x.from:x.to], s.arena[y.from:y.to])
	})
}

// spill writes the records in memory as one sorted file.
func (s *Sorter) spill() error {
	if len(s.order) == 0 {
		return nil
	}
	s.sort()
	w, err := newWriter(s.dir)
	if err != nil {
		return err
	}
	for _, p := range s.order {
		if err := w.record(s.arena[p.from:p.to]); err != nil {
			w.drop()
			return err
		}
	}
	run, err := w.close()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, run)
	s.arena, s.order = s.arena[:0], s.order[:0]
	if len(s.runs) >= maxRuns {
		return s.compact()
	}
	return nil
}

// compact merges all files into one.
func (s *Sorter) compact() error {
	m, err := mergeRuns(s.runs, nil)
	if err != nil {
		return err
	}
	defer m.Close()
	w, err := newWriter(s.dir)
	if err != nil {
		return err
	}
	for {
		rec, err := m.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.record(rec)
		}
		if err != nil {
			w.drop()
			return err
		}
	}
	run, err := w.close()
	if err != nil {
		return err
	}
	s.Close()
	s.runs = append(s.runs[:0], run)
	return nil
}

// Close drops the files.
func (s *Sorter) Close() {
	for _, run := range s.runs {
		run.Discard()
	}
	s.runs = nil
}

// Merge returns the records of all sorters in one order. It may be called again for another pass.
func Merge(sorters ...*Sorter) (*Merger, error) {
	var runs []*atomicfile.Unnamed
	var memory []*Sorter
	for _, s := range sorters {
		runs = append(runs, s.runs...)
		if len(s.order) > 0 {
			memory = append(memory, s)
		}
	}
	return mergeRuns(runs, memory)
}

// Merger hands out the records of several sorted runs in order.
type Merger struct {
	heap    []*stream
	readers []*reader
	started bool
}

// stream is one sorted run with its current record.
type stream struct {
	rec  []byte
	next func() ([]byte, error)
}

func mergeRuns(runs []*atomicfile.Unnamed, memory []*Sorter) (*Merger, error) {
	m := &Merger{}
	var streams []*stream
	for _, run := range runs {
		r, err := openReader(run)
		if err != nil {
			m.Close()
			return nil, err
		}
		m.readers = append(m.readers, r)
		streams = append(streams, &stream{next: r.next})
	}
	for _, s := range memory {
		streams = append(streams, &stream{next: s.walk()})
	}
	for _, st := range streams {
		rec, err := st.next()
		if errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			m.Close()
			return nil, err
		}
		st.rec = rec
		m.heap = append(m.heap, st)
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sift(i)
	}
	return m, nil
}

// walk returns the records in memory one after the other.
func (s *Sorter) walk() func() ([]byte, error) {
	i := 0
	return func() ([]byte, error) {
		if i == len(s.order) {
			return nil, io.EOF
		}
		p := s.order[i]
		i++
		return s.arena[p.from:p.to], nil
	}
}

// Next returns the next record, valid until the next call; io.EOF after the last.
func (m *Merger) Next() ([]byte, error) {
	if m.started && len(m.heap) > 0 {
		top := m.heap[0]
		rec, err := top.next()
		switch {
		case errors.Is(err, io.EOF):
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap = m.heap[:last]
		case err != nil:
			return nil, err
		default:
			top.rec = rec
		}
		m.sift(0)
	}
	m.started = true
	if len(m.heap) == 0 {
		return nil, io.EOF
	}
	return m.heap[0].rec, nil
}

func (m *Merger) sift(i int) {
	h := m.heap
	for {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < len(h) && bytes.Compare(h[c].rec, h[least].rec) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// Close ends the pass; the files stay for another one.
func (m *Merger) Close() {
	for _, r := range m.readers {
		r.close()
	}
}
