package spill

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxRuns bounds how many sorted files of one Sorter are open at a time; more are merged into one.
const maxRuns = 48

// Sorter orders records by their bytes. Add first, then Seal, then Merge as often as needed. It is not safe for
// concurrent use; several Sorters may be merged into one order.
type Sorter struct {
	dir    string
	budget int
	arena  arena
	order  []place
	runs   []*file
}

// place is a record in the arena: its first 16 bytes as numbers decide most comparisons without the arena.
type place struct {
	a, b uint64
	at   uint32
	size uint32
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
	if len(s.order) > 0 && (s.arena.bytes+len(rec)+placeBytes*(len(s.order)+1) > s.budget || s.arena.used == maxPieces) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.order = append(s.order, place{
		a: binary.BigEndian.Uint64(rec), b: binary.BigEndian.Uint64(rec[8:]), at: s.arena.add(rec), size: uint32(len(rec)),
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
	s.arena, s.order = arena{}, nil // files only: merging needs the memory
	return err
}

func (s *Sorter) record(p place) []byte { return s.arena.at(p.at, p.size) }

func (s *Sorter) sort() {
	slices.SortFunc(s.order, func(x, y place) int {
		if c := cmp.Compare(x.a, y.a); c != 0 {
			return c
		}
		if c := cmp.Compare(x.b, y.b); c != 0 {
			return c
		}
		return bytes.Compare(s.record(x), s.record(y))
	})
}

// spill writes the records in memory as one sorted file.
func (s *Sorter) spill() error {
	if len(s.order) == 0 {
		return nil
	}
	s.sort()
	i := 0
	run, err := writeRun(s.dir, func() ([]byte, error) {
		if i == len(s.order) {
			return nil, io.EOF
		}
		i++
		return s.record(s.order[i-1]), nil
	})
	if err != nil {
		return err
	}
	s.runs = append(s.runs, run)
	s.arena.reset()
	s.order = s.order[:0]
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
	run, err := writeRun(s.dir, m.Next)
	if err != nil {
		return err
	}
	s.Close()
	s.runs = append(s.runs[:0], run)
	return nil
}

// writeRun writes the records of next, which come in order, to a file.
func writeRun(dir string, next func() ([]byte, error)) (*file, error) {
	w, err := newWriter(dir)
	if err != nil {
		return nil, err
	}
	for {
		rec, err := next()
		if errors.Is(err, io.EOF) {
			return w.close()
		}
		if err == nil {
			err = w.record(rec)
		}
		if err != nil {
			w.drop()
			return nil, err
		}
	}
}

// Close drops the files.
func (s *Sorter) Close() {
	for _, run := range s.runs {
		run.drop()
	}
	s.runs = nil
}

// arena holds records in pieces, so that it grows without copying. Its addresses are 32 bits: the number of the
// piece, and pieceBits bits for the place inside. A record that is larger than a piece has one of its own.
type arena struct {
	pieces [][]byte
	used   int // pieces that hold something
	bytes  int // of all records
}

const (
	pieceBits = 20
	maxPieces = 1 << (32 - pieceBits)
)

func (a *arena) add(rec []byte) uint32 {
	if a.used == 0 || len(a.pieces[a.used-1])+len(rec) > cap(a.pieces[a.used-1]) {
		a.turn(len(rec))
	}
	piece := &a.pieces[a.used-1]
	at := uint32(a.used-1)<<pieceBits | uint32(len(*piece))
	*piece = append(*piece, rec...)
	a.bytes += len(rec)
	return at
}

// turn takes the next piece into use, for a record of n bytes.
func (a *arena) turn(n int) {
	if a.used < len(a.pieces) && n <= cap(a.pieces[a.used]) {
		a.used++
		return
	}
	size := max(n, min(1<<pieceBits, max(a.bytes/4, 16<<10))) // a small day takes little
	a.pieces = append(a.pieces[:a.used], make([]byte, 0, size))
	a.used++
}

func (a *arena) at(at, size uint32) []byte {
	from := at & (1<<pieceBits - 1)
	return a.pieces[at>>pieceBits][from : from+size : from+size]
}

// reset forgets the records and keeps the pieces.
func (a *arena) reset() {
	for i := range a.pieces {
		a.pieces[i] = a.pieces[i][:0]
	}
	a.used, a.bytes = 0, 0
}
