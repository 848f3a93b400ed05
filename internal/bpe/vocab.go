package bpe

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// vocab finds a token's id by its bytes. Tokens of up to 8 bytes, of up to 16, and longer ones have tables of
// their own with open addressing, filled at most to three quarters in the order of ids, so that frequent tokens
// lie where the first probe looks.
type vocab struct {
	short      []shortEntry
	middle     []middleEntry
	filter     []uint64 // bits of the hashes in middle: most pieces that are no token end here, in the cache
	long       []longEntry
	shortShift uint
	midShift   uint
	bitShift   uint
	longShift  uint
	longest    int // bytes of the longest token

	arena   []byte   // the bytes of all tokens
	offsets []uint32 // token id is arena[offsets[id]:offsets[id+1]]; empty is a hole
}

// An entry of size 0 is free. The size tells "a" from "a\x00", which load alike.
type shortEntry struct {
	key      uint64
	id, size uint32
}

type middleEntry struct {
	lo, hi   uint64
	id, size uint32
}

// A longEntry of id 0 is free: the tag is the low half of the hash, so that few strangers are compared.
type longEntry struct {
	tag uint32
	id  uint32 // + 1
}

const (
	mix1 = 0x9E3779B97F4A7C15
	mix2 = 0xC2B2AE3D27D4EB4F
)

func (v *vocab) token(id uint32) []byte { return v.arena[v.offsets[id]:v.offsets[id+1]] }

func (v *vocab) size(id uint32) int { return int(v.offsets[id+1] - v.offsets[id]) }

// newVocab copies tokens and indexes them all.
func newVocab(tokens [][]byte) *vocab {
	v := &vocab{offsets: make([]uint32, len(tokens)+1)}
	total := 0
	for id, t := range tokens {
		total += len(t)
		v.longest = max(v.longest, len(t))
		v.offsets[id+1] = uint32(total)
	}
	v.arena = make([]byte, 0, total)
	for _, t := range tokens {
		v.arena = append(v.arena, t...)
	}
	v.index(func(int) bool { return true })
	return v
}

// index fills the tables anew with the tokens that are wanted.
func (v *vocab) index(wanted func(id int) bool) {
	var count [3]int
	each := func(visit func(id uint32, token []byte)) {
		for id := range len(v.offsets) - 1 {
			if t := v.token(uint32(id)); len(t) > 0 && wanted(id) {
				visit(uint32(id), t)
			}
		}
	}
	each(func(_ uint32, t []byte) { count[kind(len(t))]++ })
	var sizes [3]int
	for i, n := range count {
		sizes[i] = 1 << max(4, bits.Len(uint(n+n/3)))
	}
	v.short, v.shortShift = make([]shortEntry, sizes[0]), shift(sizes[0])
	v.middle, v.midShift = make([]middleEntry, sizes[1]), shift(sizes[1])
	v.filter, v.bitShift = make([]uint64, sizes[1]*16/64), shift(sizes[1]*16)
	sizes[2] *= 4 // small, and asked in vain for every long piece
	v.long, v.longShift = make([]longEntry, sizes[2]), shift(sizes[2])
	each(v.insert)
}

func kind(size int) int { return min((size-1)/8, 2) }

func shift(size int) uint { return uint(64 - bits.TrailingZeros(uint(size))) }

func (v *vocab) insert(id uint32, t []byte) {
	switch kind(len(t)) {
	case 0:
		k := load(t)
		i := k * mix1 >> v.shortShift
		for v.short[i].size != 0 {
			i = (i + 1) & uint64(len(v.short)-1)
		}
		v.short[i] = shortEntry{k, id, uint32(len(t))}
	case 1:
		lo, hi := load(t[:8]), load(t[8:])
		h := hash16(lo, hi)
		f := h >> v.bitShift
		v.filter[f>>6] |= 1 << (f & 63)
		i := h >> v.midShift
		for v.middle[i].size != 0 {
			i = (i + 1) & uint64(len(v.middle)-1)
		}
		v.middle[i] = middleEntry{lo, hi, id, uint32(len(t))}
	default:
		h := hashBytes(t)
		i := h >> v.longShift
		for v.long[i].id != 0 {
			i = (i + 1) & uint64(len(v.long)-1)
		}
		v.long[i] = longEntry{uint32(h), id + 1}
	}
}

// find returns the id of a token. Of no bytes there is none.
func (v *vocab) find(t []byte) (id uint32, ok bool) {
	switch {
	case len(t) == 0:
		return 0, false
	case len(t) <= 8:
		return v.findShort(load(t), uint32(len(t)))
	case len(t) <= 16:
		return v.findMiddle(load(t[:8]), load(t[8:]), uint32(len(t)))
	}
	return v.findLong(t)
}

func (v *vocab) findShort(key uint64, size uint32) (id uint32, ok bool) {
	for i := key * mix1 >> v.shortShift; ; i = (i + 1) & uint64(len(v.short)-1) {
		s := &v.short[i]
		if s.key == key && s.size == size {
			return s.id, true
		}
		if s.size == 0 {
			return 0, false
		}
	}
}

func (v *vocab) findMiddle(lo, hi uint64, size uint32) (id uint32, ok bool) {
	h := hash16(lo, hi)
	if f := h >> v.bitShift; v.filter[f>>6]>>(f&63)&1 == 0 {
		return 0, false
	}
	for i := h >> v.midShift; ; i = (i + 1) & uint64(len(v.middle)-1) {
		s := &v.middle[i]
		if s.lo == lo && s.hi == hi && s.size == size {
			return s.id, true
		}
		if s.size == 0 {
			return 0, false
		}
	}
}

func (v *vocab) findLong(t []byte) (id uint32, ok bool) {
	if len(t) > v.longest {
		return 0, false
	}
	h := hashBytes(t)
	for i := h >> v.longShift; ; i = (i + 1) & uint64(len(v.long)-1) {
		s := v.long[i]
		if s.id == 0 {
			return 0, false
		}
		if s.tag == uint32(h) && bytes.Equal(v.token(s.id-1), t) {
			return s.id - 1, true
		}
	}
}

// twins returns two ids of the same bytes, if there are any.
func (v *vocab) twins() (a, b uint32, same bool) {
	for id := range uint32(len(v.offsets) - 1) {
		if t := v.token(id); len(t) > 0 {
			if other, _ := v.find(t); other != id {
				return other, id, true
			}
		}
	}
	return 0, 0, false
}

// within tells that every token is in set.
func (v *vocab) within(set []bool) bool {
	for id, in := range set {
		if !in && v.size(uint32(id)) > 0 {
			return false
		}
	}
	return true
}

// load reads up to 8 bytes as a little-endian word, zeros above.
func load(t []byte) (w uint64) {
	if len(t) >= 8 {
		return binary.LittleEndian.Uint64(t)
	}
	if len(t) >= 4 {
		lo := uint64(binary.LittleEndian.Uint32(t))
		return lo | uint64(binary.LittleEndian.Uint32(t[len(t)-4:]))<<(8*(len(t)-4))
	}
	for i := len(t) - 1; i >= 0; i-- {
		w = w<<8 | uint64(t[i])
	}
	return w
}

func hash16(lo, hi uint64) uint64 {
	a, b := bits.Mul64(lo^mix1, hi^mix2)
	return (a ^ b) * mix1
}

func hashBytes(t []byte) uint64 {
	h := uint64(len(t)) * mix2
	for len(t) > 8 {
		h = hash16(h^load(t), mix1)
		t = t[8:]
	}
	return hash16(h^load(t), 0)
}
