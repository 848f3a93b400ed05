package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// flush publishes the open segment. When another writer published the same range first, the own segment is
// dropped and the position taken from the files.
func (w *worker) flush(ctx context.Context) error {
	seg := w.seg
	if seg == nil || seg.empty() {
		w.drop()
		return nil
	}
	if err := w.settle(); err != nil {
		w.drop()
		return err
	}
	// An interrupted run still publishes what it read.
	durable, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishPatience)
	defer cancel()
	switch more, err := w.forget(durable); {
	case err != nil:
		w.drop()
		return err
	case more && !w.part.Transient: // it may hold rows of somebody who was forgotten since it was begun
		w.drop()
		w.again = true
		return nil
	}
	seg.facts.Before = &logBefore{}
	*seg.facts.Before = w.before
	seg.facts.Only = w.opts.OnlyDay
	seg.facts.LogStart, seg.facts.Format, seg.facts.Identity = w.part.First, w.opts.gateway(), w.identity
	err := w.publish(durable, seg)
	w.drop()
	switch {
	case errors.Is(err, fs.ErrExist):
		return w.yield(durable, seg)
	case err != nil:
		return err
	}
	w.pos = seg.facts.Next
	w.count(seg)
	w.commit(ctx)
	return w.crash("after-commit")
}

// publish makes the segment durable step by step: file closed and checked, ledger, name, note of the bounds. A
// crash between two steps leaves what the next run needs.
func (w *worker) publish(ctx context.Context, seg *segment) error {
	if err := w.crash("before-close"); err != nil {
		return err
	}
	if err := seg.close(); err != nil {
		return err
	}
	if len(seg.dead) > 0 {
		key := ledgerKey(w.id, seg.facts.First, seg.facts.Next)
		if err := writeLedger(ctx, w.store, key, w.opts.Footer, seg.dead); err != nil {
			return err
		}
	}
	if err := w.crash("before-link"); err != nil {
		return err
	}
	if err := w.store.Publish(ctx, seg.file, segmentKey(w.id, seg.facts.First)); err != nil {
		return err
	}
	if err := w.crash("after-link"); err != nil {
		return err
	}
	w.before.add(seg.file.Size())
	if w.logFirst < 0 {
		w.logFirst = seg.facts.First
	}
	return writeHead(ctx, w.store, w.id.folder(segmentsFolder), head{First: w.logFirst, Next: seg.facts.Next})
}

// yield gives way to the writer that published the segment first.
func (w *worker) yield(ctx context.Context, seg *segment) error {
	tip, err := readTip(ctx, w.store, w.id, false)
	if err != nil {
		return err
	}
	if tip.last == nil || tip.last.Next <= seg.facts.First {
		return brokenLog(w.id, fmt.Sprintf("offset %d is taken by a file that does not cover it", seg.facts.First))
	}
	theirs, err := readSegment(ctx, w.store, segmentKey(w.id, seg.facts.First))
	if err != nil {
		return err
	}
	if len(seg.dead) > 0 && theirs.facts.Next != seg.facts.Next {
		if err := w.store.Remove(ctx, ledgerKey(w.id, seg.facts.First, seg.facts.Next)); err != nil {
			return err
		}
	}
	w.report.Conflicts++
	w.meter.conflicts.Add(1)
	w.logFirst, w.pos, w.before = tip.first, tip.last.Next, tip.before
	w.opts.Logger.Info("another writer has this range, going on behind it", "partition", w.part.name(), "next", w.pos)
	return nil
}

// count adds a published segment to the report.
func (w *worker) count(seg *segment) {
	w.report.Segments++
	w.meter.segments.Add(1)
	w.report.add(seg.facts.Counts)
	w.quality.merge(&seg.quality)
	w.report.Last = max(w.report.Last, seg.facts.Last)
	for _, r := range seg.facts.HoleRanges {
		w.report.HoleRanges = addRange(w.report.HoleRanges, r)
	}
}

// commit tells the group where we are; a failure is worth a warning and nothing else.
func (w *worker) commit(ctx context.Context) {
	if w.opts.Group == "" || w.pos == 0 || ctx.Err() != nil {
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
