package synth

import (
	"context"
	"sync"

	"tailgate/schemas"
)

// batchRows is how many rows are made ahead at a time.
const batchRows = 512

// batch is rows with what they came from; their lists lie in buffers of the batch.
type batch struct {
	rows    []schemas.TraceRow
	source  []int64
	copies  []int32
	ids     []int64
	outputs []int32
	parents []int64
}

// inStages makes the rows of walk on one processor and visits them on others: each stage sees every row, in order, after
// the stage before it; the last one runs on the caller's. The first error ends it.
func inStages(ctx context.Context, walk walkFunc, stages ...visitFunc) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var first error
	var once sync.Once
	fail := func(err error) {
		if err != nil {
			once.Do(func() { first = err })
			cancel(err)
		}
	}
	empty := make(chan *batch, 2+2*len(stages))
	for range cap(empty) {
		empty <- &batch{}
	}
	full := make(chan *batch, 2)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(full)
		fail(fillBatches(ctx, walk, full, empty))
	})
	run := func(visit visitFunc, in <-chan *batch, out chan<- *batch) {
		for b := range in {
			if ctx.Err() == nil {
				fail(b.visit(visit))
			} else {
				fail(context.Cause(ctx))
			}
			out <- b
		}
	}
	last, in := len(stages)-1, full
	for _, visit := range stages[:last] {
		from, to := in, make(chan *batch, 2)
		all.Go(func() {
			defer close(to)
			run(visit, from, to)
		})
		in = to
	}
	run(stages[last], in, empty)
	all.Wait()
	return first
}

func fillBatches(ctx context.Context, walk walkFunc, full chan<- *batch, empty <-chan *batch) error {
	b := <-empty
	err := walk(ctx, func(r *schemas.TraceRow, source int64, q int32) error {
		b.add(r, source, q)
		if len(b.rows) < batchRows {
			return nil
		}
		full <- b
		b = <-empty
		b.reset()
		return context.Cause(ctx)
	})
	if err == nil && len(b.rows) > 0 {
		full <- b
	}
	return err
}

func (b *batch) reset() {
	*b = batch{b.rows[:0], b.source[:0], b.copies[:0], b.ids[:0], b.outputs[:0], b.parents[:0]}
}

// add takes a copy of a row. Lists are found again by their lengths, since the buffers may move.
func (b *batch) add(r *schemas.TraceRow, source int64, q int32) {
	b.rows, b.source, b.copies = append(b.rows, *r), append(b.source, source), append(b.copies, q)
	b.ids = append(b.ids, r.HashIDs...)
	if r.OutputTokens != nil {
		b.outputs = append(b.outputs, *r.OutputTokens)
	}
	if r.Parent != nil {
		b.parents = append(b.parents, *r.Parent)
	}
}

func (b *batch) visit(visit visitFunc) error {
	ids, outputs, parents := b.ids, b.outputs, b.parents
	for i := range b.rows {
		r := &b.rows[i]
		if r.HashIDs != nil {
			n := len(r.HashIDs)
			if n > 0 {
				r.HashIDs = ids[:n:n]
			}
			ids = ids[n:]
		}
		if r.OutputTokens != nil {
			r.OutputTokens, outputs = &outputs[0], outputs[1:]
		}
		if r.Parent != nil {
			r.Parent, parents = &parents[0], parents[1:]
		}
		if err := visit(r, b.source[i], b.copies[i]); err != nil {
			return err
		}
	}
	return nil
}
