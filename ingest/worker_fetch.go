package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tailgate/internal/fault"
)

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
		case w.opts.Follow: // nothing came, and that is all right
			w.pause(ctx, min(wait, w.opts.RotateAge))
			return b, nil
		}
		if time.Now().After(deadline) {
			return b, w.stalled(last)
		}
		w.pause(ctx, wait)
	}
}

func (w *worker) pause(ctx context.Context, wait time.Duration) {
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
