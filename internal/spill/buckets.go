package spill

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// Entry is a key and where it was seen.
type Entry struct {
	Key      uint64
	Row, Pos uint32
}

// entryBytes is the size of an Entry in memory.
const entryBytes = 16

// Buckets brings the entries of equal keys together. Add first, Seal, then Each as often as needed. Only one
// goroutine may add.
type Buckets struct {
	dir     string
	buffer  int // entries that a bucket holds before it writes them; 0 = all stays in memory
	buckets []bucket
	file    *file
	block   []byte
}

// bucket holds the entries of one part of the key space: in memory, or, when there are several, in blocks of the
// file.
type bucket struct {
	entries []Entry
	blocks  []int // of the file
	n       int   // entries in them
}

// Bounds of the buffers of all buckets together, and of one.
const (
	maxBuckets   = 512
	minBuffer    = 256
	maxBuffer    = 4096
	bufferShare  = 8 // of the budget
	maxEntrySize = 8 + 2*binary.MaxVarintLen32
)

// NewBuckets returns Buckets for about total entries, which workers visit side by side with budget bytes in memory
// together. What does not fit lies in dir.
func NewBuckets(dir string, total int64, budget, workers int) *Buckets {
	if need := 2 * entryBytes * total; need > int64(budget) { // grouping needs a second copy
		each := int64(max(budget/max(workers, 1), 64<<10))
		n := min(need/each+1, maxBuckets)
		buffer := max(minBuffer, min(maxBuffer, int64(budget)/bufferShare/n/entryBytes))
		return &Buckets{dir: dir, buffer: int(buffer), buckets: make([]bucket, n)}
	}
	n := 1
	if total > smallTotal {
		n = 4 * max(workers, 1)
	}
	return &Buckets{dir: dir, buckets: make([]bucket, n)}
}

// smallTotal is how many entries one worker groups in no time.
const smallTotal = 1 << 16

// mix spreads keys that are not random.
func mix(key uint64) uint64 { return (key ^ key>>32) * 0x9e3779b97f4a7c15 }

// Add takes an entry. Entries of one key are to come in the order in which they shall be visited, with rows that
// never fall.
func (b *Buckets) Add(e Entry) error {
	k := &b.buckets[mix(e.Key)>>32*uint64(len(b.buckets))>>32]
	k.entries = append(k.entries, e)
	if b.buffer > 0 && len(k.entries) >= b.buffer {
		return b.write(k)
	}
	return nil
}

// write appends the entries of a bucket to the file: keys as they are, rows as what they are more than the last.
func (b *Buckets) write(k *bucket) (err error) {
	if len(k.entries) == 0 {
		return nil
	}
	if b.file == nil {
		if b.file, err = newFile(b.dir); err != nil {
			return err
		}
	}
	if most := len(k.entries) * maxEntrySize; cap(b.block) < most {
		b.block = make([]byte, most)
	}
	buf, at, last := b.block[:cap(b.block)], 0, uint32(0)
	for _, e := range k.entries {
		binary.LittleEndian.PutUint64(buf[at:], e.Key)
		at += 8
		at += binary.PutUvarint(buf[at:], uint64(e.Row-last))
		at += binary.PutUvarint(buf[at:], uint64(e.Pos))
		last = e.Row
	}
	k.n += len(k.entries)
	k.entries = k.entries[:0]
	k.blocks = append(k.blocks, len(b.file.blocks))
	return b.file.append(buf[:at])
}

// Seal ends the adding.
func (b *Buckets) Seal() error {
	if b.file == nil {
		return nil
	}
	for i := range b.buckets {
		if err := b.write(&b.buckets[i]); err != nil {
			return err
		}
		b.buckets[i].entries = nil
	}
	b.block = nil
	return nil
}

// Close drops the file.
func (b *Buckets) Close() {
	if b.file != nil {
		b.file.drop()
	}
	b.file = nil
}

// Each calls visit with all entries of each key, in the order in which they were added. The keys come in no order
// that may matter. Workers run side by side, numbered from 0, each with groups of its own; visit must not keep
// group.
func (b *Buckets) Each(ctx context.Context, workers int, visit func(worker int, group []Entry) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for worker := range min(workers, len(b.buckets)) {
		all.Go(func() {
			var l loader
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(len(b.buckets)) {
					return
				}
				entries, err := l.load(b.file, &b.buckets[i])
				if err == nil {
					err = visitGroups(ctx, entries, func(group []Entry) error { return visit(worker, group) })
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// groupsPerCheck is how many groups are visited between two looks at the context.
const groupsPerCheck = 4096

func visitGroups(ctx context.Context, entries []Entry, visit func(group []Entry) error) error {
	for i := 0; len(entries) > 0; i++ {
		if i%groupsPerCheck == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := 1
		for n < len(entries) && entries[n].Key == entries[0].Key {
			n++
		}
		if err := visit(entries[:n]); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}
