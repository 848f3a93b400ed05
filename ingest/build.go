package ingest

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"tailgate/internal/spill"
)

// build makes one day: scan packs the rows of the segments into sorters; survey goes over the deduplicated
// order once and gathers what has to be known of all rows together; share and suppress draw the conclusions; write
// goes over the order again and writes the rows as they are published.
type build struct {
	o       *PublishOptions
	in      *dayInput
	s       streams
	scratch string // folder of the spill files, which have no names
	report  *PublishReport
	words   *words
	sorters []*spill.Sorter
	found   *survey
	labels  relabel
	keyer   Keyer // nil = none

	forgotten atomic.Int64 // rows that were left out
}

// close drops the spill files.
func (b *build) close() {
	for _, s := range b.sorters {
		s.Close()
	}
	if f := b.found; f != nil {
		f.sessions.Close()
		f.requests.Close()
		f.blocks.Close()
	}
}

// Shares of PublishOptions.Memory.
const (
	sortShare   = 2 // one half for the sorters
	bucketShare = 4 // a quarter for the keys that are brought together at a time
)

// maxDayRows bounds a day: rows are counted in 32 bits.
const maxDayRows = math.MaxUint32 - 1

// workers is how many goroutines do what can be done side by side.
func workers() int { return runtime.GOMAXPROCS(0) }

// A batch ends with its row number batchRows, or, where rows are long, at a multiple of batchStep rows: pages of the
// file end there alone.
const (
	batchRows  = 1024
	batchStep  = 64
	batchBytes = 2 << 20
)

// batch is some rows of the day, in order.
type batch struct {
	rows []slot
	data []byte // the packed rows, one behind the other
	ends []int  // of each in data
	pool chan<- *batch
}

// free gives the batch back to be used again.
func (b *batch) free() { b.pool <- b }

// full tells whether the batch ends here.
func (b *batch) full() bool {
	return len(b.ends) == batchRows || len(b.data) >= batchBytes && len(b.ends)%batchStep == 0
}

func (b *batch) add(rec []byte) {
	b.data = append(b.data, rec...)
	b.ends = append(b.ends, len(b.data))
}

// last is the row that was added last.
func (b *batch) last() []byte {
	from := 0
	if n := len(b.ends); n > 1 {
		from = b.ends[n-2]
	}
	return b.data[from:]
}

// drop takes the last row away.
func (b *batch) drop() {
	b.data = b.data[:len(b.data)-len(b.last())]
	b.ends = b.ends[:len(b.ends)-1]
}

// unpack makes the slots of the rows.
func (b *batch) unpack(w *words) error {
	if b.rows == nil {
		b.rows = make([]slot, batchRows)
	}
	b.rows = b.rows[:len(b.ends)]
	from := 0
	for i, end := range b.ends {
		if err := b.rows[i].unpack(b.data[from:end:end], w); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// batchesAhead is how many batches are under way at a time.
const batchesAhead = 24

// stream calls visit with the day's rows in order, without duplicates. Visit must see to it that each batch is
// freed, also when it returns an error. Reading, unpacking and visiting run beside each other.
func (b *build) stream(ctx context.Context, visit func(*batch) error) (*deduper, error) {
	merged, err := spill.Merge(b.sorters...)
	if err != nil {
		return nil, err
	}
	d, err := newDeduper(merged, b.words)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	pool := make(chan *batch, batchesAhead)
	for range cap(pool) {
		pool <- &batch{pool: pool}
	}
	packed, ready := make(chan *batch, 1), make(chan *batch, 1)
	var stages sync.WaitGroup
	stages.Go(func() {
		defer close(packed)
		for next := range pool {
			next.data, next.ends = next.data[:0], next.ends[:0]
			err := d.fill(next)
			if err != nil {
				cancel(err)
			}
			if ctx.Err() != nil || len(next.ends) == 0 {
				return
			}
			packed <- next
		}
	})
	stages.Go(func() {
		defer close(ready)
		for next := range packed {
			if err := next.unpack(b.words); err != nil {
				cancel(err)
			}
			ready <- next
		}
	})
	for next := range ready {
		if ctx.Err() != nil {
			next.free()
			continue
		}
		if err := visit(next); err != nil {
			cancel(err)
		}
	}
	stages.Wait()
	err = context.Cause(ctx)
	cancel(nil)
	return d, err
}
