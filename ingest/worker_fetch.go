package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tailgate/internal/fault"
)

// fetch asks for the next batch until there is progress. It gives up when nothing came for the stall limit.
func (w *worker) fetch(ctx context.Context) (Batch, error) {
	deadline := time.Now().Add(w.opts.Stall)
	var last error
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		b, ok, err := w.fetched()
		if !ok {
			w.enter(ctx)
			b, err = w.src.Fetch(ctx, w.part, w.pos)
		}
		if err != nil || b.Next <= w.pos {
			w.leave()
		}
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
		case w.opts.Follow: // nothing came, and that is all right
			return b, nil
		}
		if time.Now().After(deadline) {
			return b, w.stalled(last)
		}
		w.pause(ctx, wait)
	}
}

// longestIdle is how late a record of a followed log that had nothing may be seen.
const longestIdle = time.Second

// idleAfter is how long to leave a followed log alone after b: longer and longer while nothing comes.
func (w *worker) idleAfter(b *Batch) time.Duration {
	if !w.opts.Follow || len(b.Records) > 0 {
		return 0
	}
	return min(max(2*w.idle, 10*time.Millisecond), longestIdle, w.opts.RotateAge)
}

func (w *worker) pause(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

func (w *worker) stalled(last error) error {
	at := fmt.Sprintf("offset %d of %d", w.pos, w.part.End)
	if w.part.End < 0 {
		at = fmt.Sprintf("offset %d", w.pos)
	}
	where := fmt.Sprintf("reading %s: stalled at %s for %v", w.part.name(), at, w.opts.Stall)
	if last != nil {
		return fmt.Errorf("%s: %w", where, last)
	}
	return errors.New(where)
}

// jump handles a position that retention deleted while the run was under way.
func (w *worker) jump(ctx context.Context) error {
	now, there, err := w.partitionNow(ctx)
	if err != nil {
		return err
	}
	if !there || now.First <= w.pos {
		return resetError(w.part, w.pos)
	}
	if !w.opts.AllowGap {
		return gapError(now, w.pos)
	}
	to := now.First
	if w.part.End >= 0 {
		to = min(to, w.part.End)
	}
	return w.lose(to)
}
