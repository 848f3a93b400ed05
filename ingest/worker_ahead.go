package ingest

import "context"

// ahead is a fetch that was begun while the batch before it is still worked on.
type ahead struct {
	from  int64
	stop  context.CancelFunc
	batch Batch
	err   error
	done  chan struct{}
}

// begin starts to fetch what comes after b, unless that lies beyond the mark or b is a large one.
func (w *worker) begin(ctx context.Context, b *Batch) {
	w.turn.light = b.size() <= largeBatch
	if !w.turn.light || b.Done || b.Next <= w.pos || b.Next >= w.part.End {
		return // also without a mark: what comes then is a matter of waiting
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &ahead{from: b.Next, stop: cancel, done: make(chan struct{})}
	w.ahead = a
	src, part := w.src, w.part
	go func() {
		defer close(a.done)
		a.batch, a.err = src.Fetch(ctx, part, a.from)
	}()
}

// fetched takes what was fetched ahead; ok is false when there is nothing for the worker's position, which is
// another one after a lost race.
func (w *worker) fetched() (b Batch, ok bool, err error) {
	a := w.ahead
	if a == nil || a.from != w.pos {
		w.giveUp()
		return b, false, nil
	}
	<-a.done
	a.stop()
	w.ahead = nil
	return a.batch, true, a.err
}

// giveUp ends a fetch whose result nobody wants.
func (w *worker) giveUp() {
	if a := w.ahead; a != nil {
		a.stop()
		<-a.done
		a.batch.release()
		w.ahead = nil
	}
}
