package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"tailgate/internal/fault"
)

// worker brings one partition from its position to its mark.
type worker struct {
	src    Source
	opts   *Options
	part   Partition
	id     logID
	rows   *rowMaker
	decode decoder
	meter  *meter

	identity string // token of the partition's identity
	logFirst int64  // where the log begins, -1 when it has no segment yet
	pos      int64
	seg      *segment // nil between segments
	report   PartitionReport
	printed  printed
	warned   bool // a commit failed
}

// run consumes the partition up to its mark. What was good before an error is published all the same.
func (w *worker) run(ctx context.Context) error {
	defer func() {
		if w.seg != nil {
			w.seg.discard()
		}
	}()
	err := w.consume(ctx)
	var crash *crashError
	if errors.As(err, &crash) {
		return err
	}
	if flushErr := w.flush(ctx); err == nil {
		err = flushErr
	}
	w.report.Next = w.pos
	if err == nil {
		w.commit(ctx)
		err = w.part.Err
	}
	return err
}

func (w *worker) consume(ctx context.Context) error {
	if w.part.First > w.pos { // allowed by Options.AllowGap
		if err := w.lose(w.part.First); err != nil {
			return err
		}
	}
	for w.part.End < 0 || w.pos < w.part.End {
		b, err := w.fetch(ctx)
		if errors.Is(err, ErrOutOfRange) {
			err = w.jump(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := w.take(ctx, b); err != nil {
			return err
		}
		if b.Done {
			return nil
		}
	}
	return nil
}

// fetch asks for the next batch until there is progress. It gives up when nothing came for the stall limit.
func (w *worker) fetch(ctx context.Context) (Batch, error) {
	deadline := time.Now().Add(w.opts.Stall)
	var last error
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		b, err := w.src.Fetch(ctx, w.part, w.pos)
		switch {
		case ctx.Err() != nil:
			return b, fmt.Errorf("reading %s: %w", w.part.name(), context.Cause(ctx))
		case errors.Is(err, ErrOutOfRange) || fault.Of(err) == fault.Data:
			return b, err
		case err != nil:
			last = err
			w.opts.Logger.Warn("fetching failed, trying again", "partition", w.part.name(), "error", err)
		case b.Next > w.pos || b.Done:
			return b, nil
		}
		if time.Now().After(deadline) {
			return b, w.stalled(last)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (w *worker) stalled(last error) error {
	where := fmt.Sprintf("reading %s: stalled at offset %d of %d for %v", w.part.name(), w.pos, w.part.End, w.opts.Stall)
	if last != nil {
		return fmt.Errorf("%s: %w", where, last)
	}
	return errors.New(where)
}

// jump handles a position that retention deleted while the run was under way.
func (w *worker) jump(ctx context.Context) error {
	all, err := w.src.Partitions(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p Partition) bool { return p.Topic == w.part.Topic && p.ID == w.part.ID })
	if i < 0 || all[i].First <= w.pos {
		return resetError(w.part, w.pos)
	}
	if !w.opts.AllowGap {
		return gapError(all[i], w.pos)
	}
	to := all[i].First
	if w.part.End >= 0 {
		to = min(to, w.part.End)
	}
	return w.lose(to)
}

// lose counts the offsets before to as deleted by retention.
func (w *worker) lose(to int64) error {
	if err := w.open(); err != nil {
		return err
	}
	w.seg.facts.Lost += to - w.pos
	w.advance(to)
	return nil
}

// open makes sure that there is a segment.
func (w *worker) open() (err error) {
	if w.seg == nil {
		w.seg, err = newSegment(w.opts.Lake, w.id, w.opts.Footer, w.pos)
	}
	return err
}

// advance moves the position over offsets without a message.
func (w *worker) advance(to int64) {
	if to > w.pos {
		w.seg.skipTo(to)
		w.pos = to
	}
}

// take consumes a batch, but nothing from the mark on: a later run begins there.
func (w *worker) take(ctx context.Context, b Batch) error {
	for i := range b.Records {
		r := &b.Records[i]
		if r.Offset < w.pos {
			continue // a broker returns whole batches, also their part before the offset asked for
		}
		if w.part.End >= 0 && r.Offset >= w.part.End {
			break
		}
		if err := w.open(); err != nil {
			return err
		}
		w.advance(r.Offset)
		if err := w.message(r); err != nil {
			return err
		}
		w.pos = r.Offset + 1
		w.seg.facts.Next = w.pos
		w.seg.facts.High = max(w.seg.facts.High, b.High)
		w.meter.records.Add(1)
		w.meter.bytes.Add(r.Size)
		if w.full() {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	to := b.Next
	if w.part.End >= 0 {
		to = min(to, w.part.End)
	}
	if to > w.pos {
		if err := w.open(); err != nil {
			return err
		}
		w.advance(to)
	}
	return nil
}

func (w *worker) full() bool {
	s, o := w.seg, w.opts
	return s.facts.Rows+int64(len(s.dead)) >= o.RotateRows || s.bytes >= o.RotateBytes ||
		time.Since(s.opened) >= o.RotateAge
}

// flush publishes the open segment. When another writer published the same range first, the own segment is
// dropped and the position taken from the files.
func (w *worker) flush(ctx context.Context) error {
	seg := w.seg
	if seg == nil {
		return nil
	}
	w.seg = nil
	defer seg.discard()
	if seg.empty() {
		return nil
	}
	seg.facts.LogStart, seg.facts.Format, seg.facts.Identity = w.part.First, w.opts.Format, w.identity
	if err := w.publish(seg); errors.Is(err, fs.ErrExist) {
		return w.yield(seg)
	} else if err != nil {
		return err
	}
	w.count(seg)
	w.commit(ctx)
	return w.crash("after-commit")
}

// publish takes the steps of §3.3 in order: ledger, close and check, link, note.
func (w *worker) publish(seg *segment) error {
	if err := w.crash("before-close"); err != nil {
		return err
	}
	if err := seg.close(); err != nil {
		return err
	}
	if len(seg.dead) > 0 {
		path := ledgerPath(w.opts.Lake, w.id, seg.facts.First, seg.facts.Next)
		if err := writeLedger(path, w.opts.Footer, seg.dead); err != nil {
			return err
		}
	}
	if err := w.crash("before-link"); err != nil {
		return err
	}
	if err := seg.publish(); err != nil {
		return err
	}
	if err := w.crash("after-link"); err != nil {
		return err
	}
	if w.logFirst < 0 {
		w.logFirst = seg.facts.First
	}
	return writeHead(w.id.path(w.opts.Lake, segmentsFolder), head{First: w.logFirst, Next: seg.facts.Next})
}

// yield gives way to the writer that published the segment first.
func (w *worker) yield(seg *segment) error {
	segments, err := recoverLog(w.opts.Lake, w.id)
	if err != nil {
		return err
	}
	next := segments[len(segments)-1].facts.Next
	if next <= seg.facts.First {
		return brokenLog(w.id, fmt.Sprintf("offset %d is taken by a file that does not cover it", seg.facts.First))
	}
	same := func(s segmentFile) bool {
		return s.facts.First == seg.facts.First && s.facts.Next == seg.facts.Next
	}
	if len(seg.dead) > 0 && !slices.ContainsFunc(segments, same) {
		os.Remove(ledgerPath(w.opts.Lake, w.id, seg.facts.First, seg.facts.Next))
	}
	w.report.Conflicts++
	w.logFirst, w.pos = segments[0].facts.First, next
	w.opts.Logger.Info("another writer has this range, going on behind it", "partition", w.part.name(), "next", next)
	return nil
}

// count adds a published segment to the report.
func (w *worker) count(seg *segment) {
	w.report.Segments++
	w.report.Counts.add(seg.facts.Counts)
	w.report.Last = max(w.report.Last, seg.facts.Last)
	for _, r := range seg.facts.HoleRanges {
		w.report.HoleRanges = addRange(w.report.HoleRanges, r)
	}
}

// commit tells the group where we are; a failure is worth a warning and nothing else.
func (w *worker) commit(ctx context.Context) {
	if w.opts.Group == "" || w.pos == 0 {
		return
	}
	if err := w.src.Commit(ctx, w.opts.Group, w.part, w.pos); err != nil && !w.warned {
		w.warned = true
		w.opts.Logger.Warn("telling the group its position failed; the lake is complete all the same", "error", err)
	}
}

// crashError is what a failpoint of a test returns: the worker stops on the spot, as after kill -9.
type crashError struct{ point string }

func (e *crashError) Error() string { return "crashed at " + e.point }

func (w *worker) crash(point string) error {
	if err := w.opts.hook(point); err != nil {
		return &crashError{point: point}
	}
	return nil
}
