package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/parquet-go/parquet-go"

	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// segment is a segment in the making: an unnamed file, the counts of what it covers and its dead letters.
type segment struct {
	id      logID
	facts   segmentFacts
	dead    []DeadLetter
	quality qualityCounter

	file   *objstore.Draft
	writer *parquetio.Writer[schemas.Request]
	batch  []schemas.Request
	bytes  int64 // of all rows
	fresh  int64 // of the rows in batch
	opened time.Time
	memory *budget
	held   int64 // bytes that memory knows of
}

// rowBatch is how many rows are handed to the Parquet writer at a time.
const rowBatch = 256

// newSegment starts the segment of a log that begins at offset first.
func newSegment(st drafts, id logID, footer schemas.Footer, first int64, memory *budget, now time.Time) (*segment, error) {
	f, err := st.Draft(segmentKey(id, first))
	if err != nil {
		return nil, err
	}
	memory.open.Add(1)
	return &segment{
		id: id, file: f, opened: now, memory: memory,
		writer: parquetio.NewWriter[schemas.Request](f, footer.Map(), parquetio.SegmentGroup),
		facts:  segmentFacts{First: first, Last: -1, Next: first, Counts: newCounts(), Days: map[string]int64{}},
	}, nil
}

func segmentKey(id logID, first int64) string {
	return path.Join(id.folder(segmentsFolder), segmentName(first))
}

// addRow appends a row.
func (s *segment) addRow(row schemas.Request) error {
	s.facts.Rows++
	s.quality.add(&row)
	s.facts.Days[dayOf(row.ArrivedAt)]++
	ended := row.ArrivedAt.UnixMicro()
	if row.DurationUs != nil {
		ended += *row.DurationUs
	}
	s.facts.EndedUs = max(s.facts.EndedUs, ended)
	s.bytes += int64(row.RowBytes())
	s.fresh += int64(row.RowBytes())
	s.batch = append(s.batch, row)
	if len(s.batch) < rowBatch {
		return nil
	}
	return s.writeBatch()
}

func (s *segment) writeBatch() error {
	err := s.writer.Write(s.batch)
	clear(s.batch)
	s.batch, s.fresh = s.batch[:0], 0
	return err
}

// deadBytes is about what a dead letter takes in memory.
const deadBytes = 160

// weigh tells the budget what the segment holds.
func (s *segment) weigh() {
	held := s.fresh + int64(s.writer.Pending()) + deadBytes*int64(len(s.dead))
	s.memory.grow(held - s.held)
	s.held = held
}

// skipTo moves the segment's end to offset to; the offsets in between hold nothing.
func (s *segment) skipTo(to int64) {
	if to <= s.facts.Next {
		return
	}
	s.facts.Holes += to - s.facts.Next
	s.facts.HoleRanges = addRange(s.facts.HoleRanges, Range{From: s.facts.Next, To: to - 1})
	s.facts.Next = to
}

// addRange appends r to a list in ascending order, joining neighbours; a full list stays as it is.
func addRange(list []Range, r Range) []Range {
	if n := len(list); n > 0 && list[n-1].To+1 == r.From {
		list[n-1].To = r.To
		return list
	}
	if len(list) >= maxRanges {
		return list
	}
	return append(list, r)
}

// empty tells whether the segment covers nothing yet.
func (s *segment) empty() bool { return s.facts.Next == s.facts.First }

// balanced checks that every offset of the segment ended as exactly one thing.
func (s *segment) balanced() error {
	f := &s.facts
	if f.offsets() != f.Next-f.First || int64(len(s.dead)) != f.deadRecords() {
		return fmt.Errorf("closing segment %d of %v: %d offsets accounted for, want %d",
			f.First, s.id, f.offsets(), f.Next-f.First)
	}
	return nil
}

// close finishes the file and checks it as a reader would find it.
func (s *segment) close() error {
	if err := s.balanced(); err != nil {
		return err
	}
	facts, err := json.Marshal(&s.facts)
	if err != nil {
		return fmt.Errorf("closing a segment: %w", err)
	}
	s.writer.SetFooter(schemas.KeySegment, string(facts))
	if err := errors.Join(s.writeBatch(), s.writer.Close(), s.file.Sync()); err != nil {
		return fmt.Errorf("closing a segment: %w", err)
	}
	return s.verify(string(facts))
}

// verify reads the footer back from the file before anything relies on it.
func (s *segment) verify(facts string) error {
	pf, err := parquet.OpenFile(s.file, s.file.Size())
	if err != nil {
		return fmt.Errorf("checking a segment: %w", err)
	}
	got, _ := pf.Lookup(schemas.KeySegment)
	columns := len(parquet.SchemaOf(schemas.Request{}).Fields())
	if pf.NumRows() != s.facts.Rows || got != facts || len(pf.Schema().Fields()) != columns {
		return errors.New("checking a segment: the file does not hold what was written")
	}
	return nil
}

// discard drops the file unless it was published.
func (s *segment) discard() {
	s.file.Discard()
	s.memory.grow(-s.held)
	s.memory.open.Add(-1)
}

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }
