package profile

import (
	"math/bits"

	"github.com/zeebo/xxh3"
)

// hashSet numbers 64-bit hashes in order of first sight, 12 bytes of a slot each: open addressing, linear probing.
// Two names of the same hash would be one; among 10 million names that happens once in 370,000 days.
type hashSet struct {
	keys   []uint64 // 0 = free
	values []uint32
	n      uint32
	seen   uint64 // keeps the early looks of numbers
}

func newHashSet() *hashSet {
	return &hashSet{keys: make([]uint64, 1<<10), values: make([]uint32, 1<<10)}
}

// hashName is the hash of a name, never 0.
func hashName(name string) uint64 { return max(xxh3.HashString(name), 1) }

// number is the number of h, a new one at first sight.
func (s *hashSet) number(h uint64) uint32 {
	if 4*int(s.n+1) > 3*len(s.keys) {
		s.grow()
	}
	at := s.place(h)
	if s.keys[at] == 0 {
		s.keys[at], s.values[at] = h, s.n
		s.n++
	}
	return s.values[at]
}

// numbers appends the numbers of several hashes, none for 0. The slots of some are looked at before the first of them is
// needed, so that the waits for memory overlap.
func (s *hashSet) numbers(hashes []uint64, to []int32) []int32 {
	const ahead = 32
	for len(hashes) > 0 {
		n := min(ahead, len(hashes))
		shift := s.shift()
		for _, h := range hashes[:n] {
			s.seen += s.keys[h>>shift] + uint64(s.values[h>>shift])
		}
		for _, h := range hashes[:n] {
			k := int32(none)
			if h != 0 {
				k = int32(s.number(h))
			}
			to = append(to, k)
		}
		hashes = hashes[n:]
	}
	return to
}

// shift is from a hash to its slot.
func (s *hashSet) shift() uint { return 64 - uint(bits.Len(uint(len(s.keys)-1))) }

// place is where h is, or would be.
func (s *hashSet) place(h uint64) int {
	mask := len(s.keys) - 1
	at := int(h >> s.shift())
	for s.keys[at] != 0 && s.keys[at] != h {
		at = (at + 1) & mask
	}
	return at
}

func (s *hashSet) grow() {
	old := *s
	s.keys, s.values = make([]uint64, 2*len(old.keys)), make([]uint32, 2*len(old.keys))
	for i, h := range old.keys {
		if h != 0 {
			at := s.place(h)
			s.keys[at], s.values[at] = h, old.values[i]
		}
	}
}

// into adds all hashes to another set and gives their numbers there by their numbers here.
func (s *hashSet) into(to *hashSet) []uint32 {
	out := make([]uint32, s.n)
	for i, h := range s.list() {
		out[i] = to.number(h)
	}
	return out
}

// list gives the hashes by their numbers.
func (s *hashSet) list() []uint64 {
	out := make([]uint64, s.n)
	for i, h := range s.keys {
		if h != 0 {
			out[s.values[i]] = h
		}
	}
	return out
}
