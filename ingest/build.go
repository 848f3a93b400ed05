package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/internal/spill"
	"tailgate/schemas"
)

// build makes one day: scan packs the rows of the segments into sorters; survey goes over the deduplicated
// order once and gathers what has to be known of all rows together; decide draws the conclusions; write goes
// over the order again and writes the rows as they are published.
type build struct {
	o       *PublishOptions
	in      *dayInput
	s       streams
	scratch string // folder of the spill files, which have no names
	report  *PublishReport
	words   *words
	parts   []part
	found   *survey
	labels  relabel
	keyer   Keyer // nil = none
}

// close drops the spill files.
func (b *build) close() {
	for i := range b.parts {
		b.parts[i].sorter.Close()
	}
	if f := b.found; f != nil {
		f.sessions.Close()
		f.requests.Close()
		f.blocks.Close()
	}
}

// part sorts the rows of some request keys.
type part struct {
	mu     sync.Mutex
	sorter *spill.Sorter
}

// Shares of PublishOptions.Memory.
const (
	sortShare   = 2 // one half for the sorters
	bucketShare = 8 // an eighth for the keys of one bucket, of which two are in memory
)

// scan reads the rows of the day from all segments.
func (b *build) scan(ctx context.Context) error {
	b.words.code(schemas.LabelOther)
	b.parts = make([]part, b.o.Parts)
	for i := range b.parts {
		b.parts[i].sorter = spill.NewSorter(b.scratch, b.o.Memory/sortShare/len(b.parts))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, ids atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(b.in.segments)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				n, err := b.scanSegment(ctx, int(i))
				ids.Add(n)
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.in.ids = ids.Load()
	for i := range b.parts {
		if err := b.parts[i].sorter.Seal(); err != nil {
			return err
		}
		b.report.Spilled += b.parts[i].sorter.Spilled()
	}
	return nil
}

// scanSegment packs the segment's rows of the day and returns the number of their ids.
func (b *build) scanSegment(ctx context.Context, i int) (ids int64, err error) {
	s := b.in.segments[i]
	file, digest, err := pinned(ctx, b.s, s.key, b.scratch)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	digest.Rows = s.facts.Rows
	b.in.inputs[i] = digest
	r, err := parquetio.OpenAt[schemas.Request](file, file.Size(), s.path)
	if err != nil {
		return 0, fault.Mark(err, fault.Data, "")
	}
	defer r.Close()
	p := packer{words: b.words, topic: b.in.topics[s.id.topic], generation: uint32(s.id.generation)}
	batch, rows := make([]schemas.Request, batchRows), int64(0)
	for {
		n, err := r.Read(batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return ids, fault.Mark(err, fault.Data, "")
		}
		if ctx.Err() != nil {
			return ids, context.Cause(ctx)
		}
		for j := range batch[:n] {
			row := &batch[j]
			if dayOf(row.ArrivedAt) != b.o.Day {
				continue
			}
			if err := b.sort(&p, row); err != nil {
				return ids, err
			}
			ids += int64(len(row.HashIDs))
			rows++
		}
	}
	if want := s.facts.Days[b.o.Day]; rows != want {
		return ids, fault.Mark(fmt.Errorf("reading %s: %d rows of %s, its footer says %d", s.path, rows, b.o.Day, want),
			fault.Data, "")
	}
	return ids, nil
}

func (b *build) sort(p *packer, row *schemas.Request) error {
	if err := checkBlocks(row); err != nil {
		return err
	}
	rec := p.pack(row)
	to := &b.parts[uint64(row.RequestKey)%uint64(len(b.parts))]
	to.mu.Lock()
	defer to.mu.Unlock()
	return to.sorter.Add(rec)
}

// checkBlocks holds a row of a segment to what ingest promises of its prompt.
func checkBlocks(row *schemas.Request) error {
	if row.HashIDs == nil {
		return nil
	}
	if row.InputTokens == nil || len(row.HashIDs) != (int(*row.InputTokens)+blockSize-1)/blockSize {
		return fault.Mark(fmt.Errorf("publishing: %s partition %d offset %d: hash_ids and input_tokens disagree",
			row.Topic, row.Partition, row.Offset), fault.Data, "")
	}
	return nil
}

// batchRows is how many rows are handed on at a time.
const batchRows = 1024

// stream calls visit with the day's rows in order, without duplicates, in batches that are valid during the
// visit. Reading and visiting run beside each other.
func (b *build) stream(ctx context.Context, visit func([]slot) error) (*deduper, error) {
	sorters := make([]*spill.Sorter, len(b.parts))
	for i := range b.parts {
		sorters[i] = b.parts[i].sorter
	}
	merged, err := spill.Merge(sorters...)
	if err != nil {
		return nil, err
	}
	defer merged.Close()
	d, err := newDeduper(merged, b.words)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	free, full := make(chan []slot, 2), make(chan []slot)
	for range cap(free) {
		free <- make([]slot, batchRows)
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(full)
		for {
			select {
			case <-ctx.Done():
				return
			case batch := <-free:
				n, err := d.fill(batch[:batchRows])
				if err != nil {
					cancel(err)
					return
				}
				if n == 0 {
					return
				}
				select {
				case full <- batch[:n]:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for batch := range full {
		if err := visit(batch); err != nil {
			cancel(err)
			break
		}
		free <- batch
	}
	reader.Wait()
	err = context.Cause(ctx)
	cancel(nil)
	return d, err
}

// fill unpacks the next rows and returns their number, 0 at the end.
func (d *deduper) fill(batch []slot) (int, error) {
	for i := range batch {
		err := d.next(&batch[i])
		if errors.Is(err, io.EOF) {
			return i, nil
		}
		if err != nil {
			return i, err
		}
	}
	return len(batch), nil
}

// maxDayRows bounds a day: rows are counted in 32 bits.
const maxDayRows = math.MaxUint32 - 1
