package spill

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// loader brings buckets into memory, one after the other.
type loader struct {
	entries, other []Entry
	block          []byte
}

// load returns the bucket's entries with those of equal keys side by side, valid until the next call.
func (l *loader) load(f *file, k *bucket) ([]Entry, error) {
	if k.n == 0 { // in memory, from where it is to be loaded again
		l.entries = append(l.entries[:0], k.entries...)
	} else if err := l.read(f, k); err != nil {
		return nil, err
	}
	if cap(l.other) < len(l.entries) {
		l.other = make([]Entry, len(l.entries), cap(l.entries))
	}
	group(l.entries, l.other[:len(l.entries)])
	return l.entries, nil
}

// read decodes the blocks of a bucket.
func (l *loader) read(f *file, k *bucket) (err error) {
	if cap(l.entries) < k.n {
		l.entries = make([]Entry, 0, k.n+k.n/16) // the next bucket is about as large
	}
	l.entries = l.entries[:0]
	for _, i := range k.blocks {
		if l.block, err = f.read(f.blocks[i], l.block); err != nil {
			return err
		}
		for rest, row := l.block, uint64(0); len(rest) > 0; {
			if len(rest) < 10 {
				return errBroken
			}
			key := binary.LittleEndian.Uint64(rest)
			more, n := binary.Uvarint(rest[8:])
			pos, m := binary.Uvarint(rest[8+n:])
			if n <= 0 || m <= 0 {
				return errBroken
			}
			row += more
			l.entries = append(l.entries, Entry{Key: key, Row: uint32(row), Pos: uint32(pos)})
			rest = rest[8+n+m:]
		}
	}
	if len(l.entries) != k.n {
		return errBroken
	}
	return nil
}

// Entries are spread over shelves by bits of their keys' hash, and those of a shelf over cells, which brings equal
// keys close together; what is left to sort is inside the cache, and mostly two or three entries.
const (
	maxShelfBits = 13
	cellBits     = 8
	shelfSize    = 512 // about
	smallCell    = 48
)

// hash is another one than that by which buckets were chosen.
func (e *Entry) hash() uint64 { return mix(mix(e.Key)) }

// group puts entries with equal keys side by side and leaves their order as it was; other is as long.
func group(entries, other []Entry) {
	wide := min(bits.Len(uint(len(entries)/shelfSize)), maxShelfBits)
	if wide == 0 {
		copy(other, entries)
		cells(other, entries, 0)
		return
	}
	starts := make([]int, 1<<wide+1)
	for i := range entries {
		starts[entries[i].hash()>>(64-wide)+1]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	next := slices.Clone(starts)
	for i := range entries {
		s := entries[i].hash() >> (64 - wide)
		other[next[s]] = entries[i]
		next[s]++
	}
	for s := range len(starts) - 1 {
		cells(other[starts[s]:starts[s+1]], entries[starts[s]:starts[s+1]], wide)
	}
}

// cells brings the entries of shelf, whose hashes have the first used bits in common, to their places in to.
func cells(shelf, to []Entry, used int) {
	if len(shelf) <= smallCell {
		copy(to, shelf)
		sortCell(to)
		return
	}
	cell := func(e *Entry) uint64 { return e.hash() << used >> (64 - cellBits) }
	var starts [1<<cellBits + 1]int
	for i := range shelf {
		starts[cell(&shelf[i])+1]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	next := starts
	for i := range shelf {
		c := cell(&shelf[i])
		to[next[c]] = shelf[i]
		next[c]++
	}
	for c := range len(starts) - 1 {
		sortCell(to[starts[c]:starts[c+1]])
	}
}

// sortCell orders entries by key and leaves those of one key in their order.
func sortCell(cell []Entry) {
	byKey := func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) }
	if len(cell) > smallCell {
		if !slices.IsSortedFunc(cell, byKey) { // it is where one key has many rows
			slices.SortStableFunc(cell, byKey)
		}
		return
	}
	for i := 1; i < len(cell); i++ {
		e := cell[i]
		at := i
		for ; at > 0 && cell[at-1].Key > e.Key; at-- {
			cell[at] = cell[at-1]
		}
		cell[at] = e
	}
}
