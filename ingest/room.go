package ingest

import (
	"fmt"
	"sync/atomic"

	"tailgate/internal/fault"
)

// budget bounds the memory of all open segments together, whatever their number. From a third of it on, a segment
// that holds its share of that third is published. So those that grew large before and get no more records hold a
// third at most, those that go on growing another, and the last third is for the rows that each adds at a time.
type budget struct {
	limit      int64
	used, open atomic.Int64
	watch      func(by int64) // of the tests; nil = none
}

// grow notes that a segment's memory changed.
func (b *budget) grow(by int64) {
	b.used.Add(by)
	if b.watch != nil {
		b.watch(by)
	}
}

// spent tells whether a segment that holds so many bytes has to be published.
func (b *budget) spent(held int64) bool {
	third := b.limit / 3
	return b.used.Load() > third && held*b.open.Load() >= third
}

// roomFor refuses to begin a segment on a disk that is nearly full: better to stop in order than in the middle.
func (o *Options) roomFor(s drafts) error {
	if o.MinFree < 0 {
		return nil
	}
	dir := s.Scratch()
	free, err := o.free(dir)
	if err != nil {
		return err
	}
	if free < 0 || free >= o.MinFree {
		return nil
	}
	return fault.Mark(fmt.Errorf("making room for a segment: %s has %d MiB free, less than the %d MiB of --min-free",
		dir, free>>20, o.MinFree>>20), fault.Failure, "what was published is safe; free some space and run again")
}
