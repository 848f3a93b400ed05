package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"

	"github.com/parquet-go/parquet-go"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// rewriter takes rows out of segments. Their offsets stay accounted for: what was a row is a skip with a reason.
type rewriter struct {
	s      dayStore
	reason string // Skip… constant
	drop   func(*schemas.Request) bool
	hook   func(point string) error
}

// segment replaces a segment, or a file of reprocessed rows, by one without the rows to drop, and returns how many they
// were. Readers find the earlier file or the new one, whole; a log counts both alike.
func (w *rewriter) segment(ctx context.Context, seg *segmentFile) (gone int64, err error) {
	tag, err := w.s.Tag(ctx, seg.key)
	if err != nil {
		return 0, err
	}
	file, digest, err := pinned(ctx, w.s, seg.key, w.s.Scratch())
	if err != nil {
		return 0, err
	}
	defer file.Close()
	d, err := w.s.Draft(seg.key)
	if err != nil {
		return 0, err
	}
	defer d.Discard()
	gone, err = w.copy(ctx, file, seg, d)
	if err != nil || gone == 0 {
		return 0, err
	}
	if err := w.hook("before-note"); err != nil {
		return 0, err
	}
	if err := w.note(ctx, seg, digest.Bytes, d.Size()); err != nil {
		return 0, err
	}
	if err := w.hook("before-swap"); err != nil {
		return 0, err
	}
	_, err = w.s.Swap(ctx, d, seg.key, tag)
	if errors.Is(err, fs.ErrExist) {
		return 0, fault.Mark(fmt.Errorf("rewriting %s: it changed meanwhile", seg.path), fault.Failure, "run it again")
	}
	if err != nil {
		return 0, fmt.Errorf("rewriting %s: %w", seg.path, err)
	}
	return gone, w.hook("after-swap")
}

// note makes the log count the new size as the earlier one. Files of reprocessed rows do not count.
func (w *rewriter) note(ctx context.Context, seg *segmentFile, now, next int64) error {
	dir := seg.id.folder(segmentsFolder)
	if path.Dir(seg.key) != dir {
		return nil
	}
	return amend(ctx, w.s, dir, func(a *amendment) { a.resized(seg.facts.First, now, next) })
}

// copy writes the rows that stay to d, with facts that fit them.
func (w *rewriter) copy(ctx context.Context, file *objstore.Reader, seg *segmentFile, d *objstore.Draft) (gone int64, err error) {
	r, err := parquetio.OpenAt[schemas.Request](file, file.Size(), seg.path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	out := parquetio.NewWriter[schemas.Request](d, seg.footer, parquetio.SegmentGroup)
	c := newRowCounter(&seg.facts)
	batch := make([]schemas.Request, rowBatch)
	for {
		n, err := r.Read(batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("rewriting %s: %w", seg.path, context.Cause(ctx))
		}
		kept := batch[:0]
		for i := range batch[:n] {
			if row := batch[i]; w.drop(&row) {
				c.lost(&row)
			} else {
				c.kept[row.Offset] = true
				kept = append(kept, row)
			}
		}
		if err := out.Write(kept); err != nil {
			return 0, fmt.Errorf("rewriting %s: %w", seg.path, err)
		}
		batch = batch[:rowBatch]
	}
	if c.rows == 0 {
		return 0, nil
	}
	if c.facts.Messages > 0 { // reprocessed rows have none
		if err := w.messages(ctx, seg, c); err != nil {
			return 0, err
		}
	}
	c.facts.Skips[w.reason] += c.rows
	return c.rows, w.finish(seg, out, d, &c.facts)
}

// messages counts the messages that have no row any more as skipped, or as dead where a record of theirs is.
func (w *rewriter) messages(ctx context.Context, seg *segmentFile, c *rowCounter) error {
	dead := map[int64]bool{}
	if c.facts.deadRecords() > 0 {
		letters, err := readLedger(ctx, w.s, ledgerKey(seg.id, c.facts.First, c.facts.Next))
		if err != nil {
			return err
		}
		for i := range letters {
			dead[letters[i].Offset] = true
		}
	}
	for offset := range c.gone {
		switch {
		case c.kept[offset]:
			continue
		case dead[offset]:
			c.facts.DeadMessages++
		default:
			c.facts.SkippedMessages++
		}
		c.facts.Messages--
	}
	if c.facts.offsets() != c.facts.Next-c.facts.First {
		return fmt.Errorf("rewriting %s: %d offsets accounted for, want %d", seg.path, c.facts.offsets(), c.facts.Next-c.facts.First)
	}
	return nil
}

// finish ends the file and checks it as a reader would find it.
func (w *rewriter) finish(seg *segmentFile, out *parquetio.Writer[schemas.Request], d *objstore.Draft, facts *segmentFacts) error {
	text, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", seg.path, err)
	}
	out.SetFooter(schemas.KeySegment, string(text))
	if err := errors.Join(out.Close(), d.Sync()); err != nil {
		return fmt.Errorf("rewriting %s: %w", seg.path, err)
	}
	pf, err := parquet.OpenFile(d, d.Size())
	if err != nil {
		return fmt.Errorf("checking a segment: %w", err)
	}
	if got, _ := pf.Lookup(schemas.KeySegment); got != string(text) || pf.NumRows() != facts.Rows {
		return errors.New("checking a segment: the file does not hold what was written")
	}
	return nil
}

// rowCounter follows the facts of a segment while rows are taken out of it.
type rowCounter struct {
	facts      segmentFacts
	rows       int64
	gone, kept map[int64]bool // offsets that lost a row, and those that have one
}

func newRowCounter(f *segmentFacts) *rowCounter {
	c := &rowCounter{facts: *f, gone: map[int64]bool{}, kept: map[int64]bool{}}
	c.facts.Skips, c.facts.Days, c.facts.Epochs = map[string]int64{}, map[string]int64{}, maps.Clone(f.Epochs)
	for reason, n := range f.Skips {
		c.facts.Skips[reason] = n
	}
	for day, n := range f.Days {
		c.facts.Days[day] = n
	}
	return c
}

func (c *rowCounter) lost(row *schemas.Request) {
	c.rows++
	c.gone[row.Offset] = true
	c.facts.Rows--
	day := dayOf(row.ArrivedAt)
	if c.facts.Days[day]--; c.facts.Days[day] <= 0 {
		delete(c.facts.Days, day)
		delete(c.facts.Epochs, day)
	}
}
