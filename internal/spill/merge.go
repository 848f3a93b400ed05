package spill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Merge returns the records of all sorters in one order. It may be called again for another pass, also beside
// this one.
func Merge(sorters ...*Sorter) (*Merger, error) {
	var runs []*file
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
	heap    []stream
	started bool
}

// stream is one sorted run with its current record, whose first 16 bytes are a and b.
type stream struct {
	a, b uint64
	rec  []byte
	next func() ([]byte, error)
}

func mergeRuns(runs []*file, memory []*Sorter) (*Merger, error) {
	m := &Merger{}
	var streams []stream
	for _, run := range runs {
		streams = append(streams, stream{next: (&reader{file: run}).next})
	}
	for _, s := range memory {
		streams = append(streams, stream{next: s.walk()})
	}
	for _, st := range streams {
		err := st.advance()
		if errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m.heap = append(m.heap, st)
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sift(i)
	}
	return m, nil
}

func (s *stream) advance() (err error) {
	if s.rec, err = s.next(); err != nil {
		return err
	}
	if len(s.rec) < 16 {
		return errBroken
	}
	s.a, s.b = binary.BigEndian.Uint64(s.rec), binary.BigEndian.Uint64(s.rec[8:])
	return nil
}

func (s *stream) before(o *stream) bool {
	if s.a != o.a {
		return s.a < o.a
	}
	if s.b != o.b {
		return s.b < o.b
	}
	return bytes.Compare(s.rec, o.rec) < 0
}

// walk returns the records in memory one after the other.
func (s *Sorter) walk() func() ([]byte, error) {
	i := 0
	return func() ([]byte, error) {
		if i == len(s.order) {
			return nil, io.EOF
		}
		i++
		return s.record(s.order[i-1]), nil
	}
}

// Next returns the next record, valid until the next call; io.EOF after the last.
func (m *Merger) Next() ([]byte, error) {
	if m.started && len(m.heap) > 0 {
		err := m.heap[0].advance()
		switch {
		case errors.Is(err, io.EOF):
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap = m.heap[:last]
		case err != nil:
			return nil, err
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
		if c := 2*i + 1; c < len(h) && h[c].before(&h[least]) {
			least = c
		}
		if c := 2*i + 2; c < len(h) && h[c].before(&h[least]) {
			least = c
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
