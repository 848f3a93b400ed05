package spill

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"tailgate/internal/atomicfile"
)

// Entry is a key and where it was seen.
type Entry struct {
	Key      uint64
	Row, Pos uint32
}

// entryBytes is the size of an Entry, in memory and in a file.
const entryBytes = 16

// Buckets brings the entries of equal keys together. Add first, Seal, then Each as often as needed. It is not
// safe for concurrent use.
type Buckets struct {
	dir     string
	buckets []bucket
}

// bucket holds the entries of one part of the key space: in memory, or, when there are several, in a file.
type bucket struct {
	entries []Entry
	n       int // entries in the file
	w       *writer
	file    *atomicfile.Unnamed
}

// bufferEntries is how many entries a bucket holds before it writes them.
const bufferEntries = 2048

// maxBuckets bounds the open files of one Buckets.
const maxBuckets = 512

// NewBuckets returns Buckets for about total entries of which one part, at most budget bytes, is in memory at
// a time. The parts in files lie in dir.
func NewBuckets(dir string, total int64, budget int) *Buckets {
	need := 2 * entryBytes * total // sorting needs a second copy
	n := min(need/int64(max(budget, 64<<10))+1, maxBuckets)
	return &Buckets{dir: dir, buckets: make([]bucket, n)}
}

// mix spreads keys that are not random.
func mix(key uint64) uint64 { return (key ^ key>>32) * 0x9e3779b97f4a7c15 }

// Add takes an entry.
func (b *Buckets) Add(e Entry) error {
	k := &b.buckets[mix(e.Key)>>32*uint64(len(b.buckets))>>32]
	k.entries = append(k.entries, e)
	if len(b.buckets) > 1 && len(k.entries) >= bufferEntries {
		return b.write(k)
	}
	return nil
}

func (b *Buckets) write(k *bucket) (err error) {
	if k.w == nil {
		if k.w, err = newWriter(b.dir); err != nil {
			return err
		}
	}
	buf := make([]byte, 0, bufferEntries*entryBytes)
	for _, e := range k.entries {
		buf = binary.LittleEndian.AppendUint64(buf, e.Key)
		buf = binary.LittleEndian.AppendUint32(buf, e.Row)
		buf = binary.LittleEndian.AppendUint32(buf, e.Pos)
	}
	k.n += len(k.entries)
	k.entries = k.entries[:0]
	return k.w.raw(buf)
}

// Seal ends the adding.
func (b *Buckets) Seal() error {
	var errs []error
	for i := range b.buckets {
		k := &b.buckets[i]
		if k.w == nil {
			continue
		}
		err := b.write(k)
		file, closeErr := k.w.close()
		k.file, k.w, k.entries = file, nil, nil
		errs = append(errs, err, closeErr)
	}
	return errors.Join(errs...)
}

// Close drops the files.
func (b *Buckets) Close() {
	for i := range b.buckets {
		k := &b.buckets[i]
		if k.w != nil {
			k.w.drop()
		}
		if k.file != nil {
			k.file.Discard()
		}
		k.w, k.file = nil, nil
	}
}

// Each calls visit with all entries of each key, ordered by row and position. The keys come in no order that
// may matter; visit is not called concurrently and must not keep group.
func (b *Buckets) Each(ctx context.Context, visit func(group []Entry) error) error {
	loaded := make(chan []Entry)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var all sync.WaitGroup
	all.Go(func() {
		defer close(loaded)
		for i := range b.buckets {
			entries, err := b.buckets[i].load()
			if err != nil {
				failed = err
				return
			}
			select {
			case loaded <- entries:
			case <-ctx.Done():
				return
			}
		}
	})
	err := visitGroups(ctx, loaded, visit)
	cancel()
	all.Wait()
	return errors.Join(err, failed)
}

func visitGroups(ctx context.Context, loaded <-chan []Entry, visit func(group []Entry) error) error {
	for entries := range loaded {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for len(entries) > 0 {
			n := 1
			for n < len(entries) && entries[n].Key == entries[0].Key {
				n++
			}
			if err := visit(entries[:n]); err != nil {
				return err
			}
			entries = entries[n:]
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// load returns the bucket's entries in order.
func (k *bucket) load() ([]Entry, error) {
	if k.file == nil {
		return sorted(k.entries), nil
	}
	r, err := openReader(k.file)
	if err != nil {
		return nil, err
	}
	defer r.close()
	entries := make([]Entry, 0, k.n)
	buf := make([]byte, bufferEntries*entryBytes)
	for {
		n, err := io.ReadFull(r.buf, buf)
		for at := 0; at+entryBytes <= n; at += entryBytes {
			entries = append(entries, Entry{
				Key: binary.LittleEndian.Uint64(buf[at:]),
				Row: binary.LittleEndian.Uint32(buf[at+8:]), Pos: binary.LittleEndian.Uint32(buf[at+12:]),
			})
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading a spill file: %w", err)
		}
	}
	if len(entries) != k.n {
		return nil, fmt.Errorf("reading a spill file: %d entries of %d", len(entries), k.n)
	}
	return sorted(entries), nil
}

// shelfBits is into how many parts sorted first spreads the entries, so that each is sorted inside the cache.
const shelfBits = 12

// sorted orders entries by mixed key, then row and position: equal keys stand together.
func sorted(entries []Entry) []Entry {
	shelf := func(e Entry) uint64 { return mix(mix(e.Key)) >> (64 - shelfBits) }
	var starts [1<<shelfBits + 1]int
	for _, e := range entries {
		starts[shelf(e)+1]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	out, next := make([]Entry, len(entries)), starts
	for _, e := range entries {
		s := shelf(e)
		out[next[s]] = e
		next[s]++
	}
	for i := range len(starts) - 1 {
		slices.SortFunc(out[starts[i]:starts[i+1]], func(a, b Entry) int {
			if c := cmp.Compare(a.Key, b.Key); c != 0 {
				return c
			}
			if c := cmp.Compare(a.Row, b.Row); c != 0 {
				return c
			}
			return cmp.Compare(a.Pos, b.Pos)
		})
	}
	return out
}
