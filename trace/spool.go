package trace

import (
	"encoding/binary"
	"errors"
	"math"
	"os"

	"tailgate/internal/spill"
	"tailgate/schemas"
)

// Spool takes rows in any order and gives them back as a stream in schedule order, ties in the order of taking. It
// keeps them on disk as Scan does, and sorts them there when they came in another order. Close it, or the stream.
type Spool struct {
	tape   tape
	out    frameWriter
	sorter *spill.Sorter
	rows   int64
	first  int64
	last   int64
	enc    rowEncoder
	rec    []byte
}

// NewSpool returns an empty spool. sorted promises that stamps never fall.
func NewSpool(sorted bool) *Spool {
	s := &Spool{first: math.MaxInt64, last: math.MinInt64}
	s.out.tape = &s.tape
	if !sorted {
		s.sorter = spill.NewSorter(os.TempDir(), sortBudget)
	}
	return s
}

// errOrder is a caller's fault.
var errOrder = errors.New("rows of a sorted spool must come in order")

// Add takes a copy of row. Its Row does not matter: rows are numbered as they come out. A Parent is a place in the
// order of taking, from 0.
func (s *Spool) Add(row *schemas.TraceRow) error {
	if s.sorter == nil && s.rows > 0 && row.ScheduledUs < s.last {
		return errOrder
	}
	s.first, s.last = min(s.first, row.ScheduledUs), max(s.last, row.ScheduledUs)
	s.rows++
	if s.sorter == nil {
		return s.out.addRow(row, 0, true, nil)
	}
	s.rec = binary.BigEndian.AppendUint64(s.rec[:0], uint64(row.ScheduledUs)^1<<63)
	s.rec = binary.BigEndian.AppendUint64(s.rec, uint64(s.rows-1))
	s.enc.start()
	s.rec = s.enc.row(s.rec, row, 0, true, nil)
	return s.sorter.Add(s.rec)
}

// Len is the number of rows that were taken.
func (s *Spool) Len() int64 { return s.rows }

// Stream ends the taking. Stamps stay as they are: they count from the zero that m describes.
func (s *Spool) Stream(m Meta, notes []string) (*Stream, error) {
	t := &taped{survey: &survey{facts: facts{allTold: true}, rows: s.rows, parents: true}}
	if s.sorter != nil {
		defer s.sorter.Close()
		if err := s.sorter.Seal(); err != nil {
			return nil, err
		}
		if err := t.merge(s.sorter); err != nil {
			t.tape.close()
			return nil, err
		}
	} else {
		if err := errors.Join(s.out.flush(), s.tape.seal()); err != nil {
			return nil, err
		}
		t.tape = s.tape
	}
	s.tape = tape{}
	m.Lines = nil
	if s.rows == 0 {
		s.first, s.last = 0, 0
	}
	return &Stream{Meta: m, Notes: notes, rows: s.rows, first: s.first, last: s.last, walk: t.walk, close: t.tape.close}, nil
}

// Close gives the rows up; a stream that was made stays.
func (s *Spool) Close() {
	s.tape.close()
	if s.sorter != nil {
		s.sorter.Close()
	}
}
