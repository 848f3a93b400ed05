package trace

import (
	"context"
	"errors"
	"iter"

	"tailgate/schemas"
)

// Stream is a timed trace that is read row by row, in schedule order and as often as needed, by the invariants of
// Trace. It need not be in memory: see Scan. Meta.Lines is nil. Close it when done; it may be read by several at
// the same time.
type Stream struct {
	Meta   Meta
	Notes  []string // what the reader changed or assumed, one sentence each
	Unread []Fault  // rows that could not be read, where Options.Lenient let the reader go on
	rows   int64
	first  int64 // stamp of the first row
	last   int64 // stamp of the last row
	walk   walkFunc
	close  func()
	mem    *Trace // the rows, where they are in memory
}

// walkFunc visits rows in order, up to the first error. What visit gets is valid until it returns, strings apart.
type walkFunc func(ctx context.Context, visit func(row *schemas.TraceRow, line int64) error) error

// NewStream is a trace of rows rows that walk visits in schedule order: Row counts from 0, ScheduledUs never falls.
// walk must visit the same rows each time. firstUs and lastUs are the stamps of the first and the last row.
func NewStream(m Meta, rows, firstUs, lastUs int64, walk func(ctx context.Context, visit func(*schemas.TraceRow) error) error) *Stream {
	m.Lines = nil
	return &Stream{Meta: m, rows: rows, first: firstUs, last: lastUs, walk: func(ctx context.Context, visit func(*schemas.TraceRow, int64) error) error {
		return walk(ctx, func(row *schemas.TraceRow) error { return visit(row, 0) })
	}}
}

// Stream reads the rows of t, which must not change meanwhile.
func (t *Trace) Stream() *Stream {
	s := &Stream{Meta: t.Meta, Notes: t.Notes, Unread: t.Unread, rows: int64(len(t.Rows)), mem: t}
	s.Meta.Lines = nil
	if len(t.Rows) > 0 {
		s.first, s.last = t.Rows[0].ScheduledUs, t.Rows[len(t.Rows)-1].ScheduledUs
	}
	s.walk = func(ctx context.Context, visit func(*schemas.TraceRow, int64) error) error {
		for i := range t.Rows {
			line := int64(0)
			if i < len(t.Meta.Lines) {
				line = t.Meta.Lines[i]
			}
			if err := visit(&t.Rows[i], line); err != nil {
				return err
			}
			if i%(1<<16) == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return nil
	}
	return s
}

// Len is the number of rows.
func (s *Stream) Len() int64 { return s.rows }

// SpanUs is the time from the first row to the last.
func (s *Stream) SpanUs() int64 { return s.last - s.first }

// LengthUs is the length of the schedule in microseconds, as Trace.LengthUs.
func (s *Stream) LengthUs() int64 {
	if s.rows == 0 {
		return s.Meta.LengthUs
	}
	return max(s.Meta.LengthUs, s.last)
}

// Each visits the rows in schedule order, up to the first error. A row, its lists and its pointers are valid until
// visit returns, strings apart.
func (s *Stream) Each(ctx context.Context, visit func(row *schemas.TraceRow) error) error {
	return s.walk(ctx, func(row *schemas.TraceRow, _ int64) error { return visit(row) })
}

// Rows is Each as an iterator. An error comes last, with a nil row.
func (s *Stream) Rows(ctx context.Context) iter.Seq2[*schemas.TraceRow, error] {
	return func(yield func(*schemas.TraceRow, error) bool) {
		err := s.walk(ctx, func(row *schemas.TraceRow, _ int64) error {
			if !yield(row, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// Load reads all rows into memory.
func (s *Stream) Load(ctx context.Context) (*Trace, error) {
	t := &Trace{Meta: s.Meta, Notes: s.Notes, Unread: s.Unread, Rows: make([]schemas.TraceRow, 0, s.rows)}
	var keep rowKeeper
	lines := make([]int64, 0, s.rows)
	hasLines := false
	err := s.walk(ctx, func(row *schemas.TraceRow, line int64) error {
		t.Rows = append(t.Rows, keep.clone(row))
		lines = append(lines, line)
		hasLines = hasLines || line > 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	if hasLines {
		t.Meta.Lines = lines
	}
	return t, nil
}

// whole is the trace in memory.
func (s *Stream) whole(ctx context.Context) (*Trace, error) {
	if s.mem != nil {
		return s.mem, nil
	}
	return s.Load(ctx)
}

// Close gives up what the stream holds on disk.
func (s *Stream) Close() {
	if s.close != nil {
		s.close()
	}
}

// rowKeeper copies rows with few allocations.
type rowKeeper struct {
	ids    arena[int64]
	counts arena[int32]
}

// clone is a copy of row that shares nothing but strings with it.
func (k *rowKeeper) clone(row *schemas.TraceRow) schemas.TraceRow {
	out := *row
	if row.OutputTokens != nil {
		out.OutputTokens = k.counts.one(*row.OutputTokens)
	}
	if row.Parent != nil {
		out.Parent = k.ids.one(*row.Parent)
	}
	if row.HashIDs != nil {
		out.HashIDs = k.ids.copyOf(row.HashIDs)
	}
	if row.Stream != nil {
		if out.Stream = &notStreamed; *row.Stream {
			out.Stream = &streamed
		}
	}
	return out
}
