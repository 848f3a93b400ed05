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

// ahead makes the rows of walk on another processor than the one that takes them.
func ahead(walk walkFunc) walkFunc {
	return func(ctx context.Context, visit visitFunc) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		full, empty := make(chan *batch, 2), make(chan *batch, 4)
		for range cap(empty) {
			empty <- &batch{}
		}
		var made error
		var all sync.WaitGroup
		all.Go(func() {
			defer close(full)
			made = fillBatches(ctx, walk, full, empty)
		})
		var err error
		for b := range full {
			if err == nil {
				if err = b.visit(visit); err != nil {
					cancel(err)
				}
			}
			empty <- b
		}
		all.Wait()
		if err != nil {
			return err
		}
		return made
	}
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
