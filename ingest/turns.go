package ingest

import "context"

// turns bounds the batches that the workers of a run hold at the same time.
type turns struct {
	// any has room for as many workers as may hold a batch where a log is followed and all workers run at once;
	// else it is nil, because no more of them run.
	any chan struct{}
	// large has room for one: a batch whose records are many times a portion takes as much as all others together.
	large chan struct{}
}

func newTurns() *turns { return &turns{large: make(chan struct{}, 1)} }

// turn is what a worker has of turns.
type turn struct {
	any, large bool
	light      bool // the last batch was not large; before the first nobody knows
}

// enter waits for the worker's turn to hold a batch. Without one, because ctx ended, the fetch fails at once.
func (w *worker) enter(ctx context.Context) {
	if w.turns == nil {
		return
	}
	take := func(seats chan struct{}, has *bool) {
		if seats == nil || *has {
			return
		}
		select {
		case seats <- struct{}{}:
			*has = true
		case <-ctx.Done():
		}
	}
	take(w.turns.any, &w.turn.any)
	if !w.turn.light {
		take(w.turns.large, &w.turn.large)
	}
}

// leave lets another worker have a batch.
func (w *worker) leave() {
	if w.turn.large {
		<-w.turns.large
		w.turn.large = false
	}
	if w.turn.any {
		<-w.turns.any
		w.turn.any = false
	}
}

// largeBatch is how many bytes of records make a batch large.
const largeBatch = 2 * portionBytes

// size is what the records of the batch hold.
func (b *Batch) size() (n int64) {
	for i := range b.Records {
		n += b.Records[i].Size
	}
	return n
}
