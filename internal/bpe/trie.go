package bpe

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// trie is a double array that finds the longest token a text begins with. The child of node n for byte b is
// at base(n) ^ b and carries the label b; no two nodes have the same base, so that label tells whose child it is.
// A unit packs base (22 bits), token + 1 (22 bits), and label + 1 (9 bits, 0 is free).
type trie struct {
	units []uint64
	heads []uint64 // unit after each first two bytes, 0 when there is none
	first [256]uint32
}

const (
	unitBits  = 22
	unitMask  = 1<<unitBits - 1
	labelAt   = 2 * unitBits
	maxUnits  = 1 << unitBits
	blockSize = 256
)

// longest returns the longest token that text begins with, and its length; every single byte is one.
func (t *trie) longest(text []byte) (token uint32, size int) {
	token, size = t.first[text[0]], 1
	if len(text) == 1 {
		return token, size
	}
	units := t.units
	u := t.heads[uint(text[0])<<8|uint(text[1])]
	for i := 2; u != 0; i++ {
		if v := uint32(u>>unitBits) & unitMask; v != 0 {
			token, size = v-1, i
		}
		base := u & unitMask
		if base == 0 || i >= len(text) {
			break
		}
		b := uint64(text[i])
		at := base ^ b
		if at >= uint64(len(units)) {
			break
		}
		u = units[at]
		if u>>labelAt != b+1 {
			break
		}
	}
	return token, size
}

// sortTokens returns the ids of all tokens in the order of their bytes.
func sortTokens(v *vocab) []uint32 {
	type row struct {
		key uint64
		id  uint32
	}
	rows := make([]row, 0, len(v.offsets))
	for id := range uint32(len(v.offsets) - 1) {
		t := v.token(id)
		if len(t) == 0 {
			continue
		}
		var head [8]byte
		copy(head[:], t)
		rows = append(rows, row{binary.BigEndian.Uint64(head[:]), id})
	}
	slices.SortFunc(rows, func(a, b row) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return slices.Compare(v.token(a.id), v.token(b.id))
	})
	ids := make([]uint32, len(rows))
	for i, r := range rows {
		ids[i] = r.id
	}
	return ids
}

// prefixes returns for each token the longest shorter token that it begins with, or none. sorted is all of them.
func prefixes(v *vocab, sorted []uint32) []uint32 {
	out := make([]uint32, len(v.offsets)-1)
	for i := range out {
		out[i] = none
	}
	var open []uint32
	for _, id := range sorted {
		t := v.token(id)
		for len(open) > 0 {
			last := v.token(open[len(open)-1])
			if len(last) < len(t) && string(t[:len(last)]) == string(last) {
				out[id] = open[len(open)-1]
				break
			}
			open = open[:len(open)-1]
		}
		open = append(open, id)
	}
	return out
}

// newTrie builds the trie of the tokens in sorted; nil when it has more nodes than a unit can address.
func newTrie(v *vocab, sorted []uint32) *trie {
	b := &trieBuilder{v: v, t: &trie{heads: make([]uint64, 1<<16)}}
	b.grow()
	b.take(0)
	b.t.units[0] = 1 << labelAt // the root; base 0 is taken, so no node has it
	if !b.children(0, 0, sorted) {
		return nil
	}
	root := b.t.units[0] & unitMask
	for first := range uint64(256) {
		u := b.t.units[root^first]
		if u>>labelAt != first+1 {
			continue
		}
		b.t.first[first] = uint32(u>>unitBits)&unitMask - 1
		for second := range uint64(256) {
			if base := u & unitMask; base != 0 && b.t.units[base^second]>>labelAt == second+1 {
				b.t.heads[first<<8|second] = b.t.units[base^second]
			}
		}
	}
	return b.t
}

// trieBuilder places nodes in blocks of 256 units. Only the last blocks are searched for room, as in darts-clone.
type trieBuilder struct {
	v    *vocab
	t    *trie
	used []bool   // bases that a node has
	free [][]byte // by block: positions that are free, in no order; empty for closed blocks
	open []int    // blocks that are searched
}

const openBlocks = 16

func (b *trieBuilder) grow() {
	block := len(b.free)
	b.t.units = append(b.t.units, make([]uint64, blockSize)...)
	b.used = append(b.used, make([]bool, blockSize)...)
	all := make([]byte, blockSize)
	for i := range all {
		all[i] = byte(i)
	}
	b.free = append(b.free, all)
	b.open = append(b.open, block)
	if len(b.open) > openBlocks {
		b.free[b.open[0]] = nil
		b.open = b.open[1:]
	}
}

// take marks unit i as no longer free.
func (b *trieBuilder) take(i int) {
	free := b.free[i/blockSize]
	if at := slices.Index(free, byte(i)); at >= 0 {
		free[at] = free[len(free)-1]
		b.free[i/blockSize] = free[:len(free)-1]
	}
}

// children places the children of node at depth; tokens are those that begin with the node's bytes, sorted.
func (b *trieBuilder) children(node, depth int, tokens []uint32) bool {
	if len(b.v.token(tokens[0])) == depth {
		b.t.units[node] |= uint64(tokens[0]+1) << unitBits
		tokens = tokens[1:]
	}
	if len(tokens) == 0 {
		return true
	}
	var labels [256]byte
	var ends [256]int
	n := 0
	for i, id := range tokens {
		c := b.v.token(id)[depth]
		if n == 0 || labels[n-1] != c {
			labels[n] = c
			n++
		}
		ends[n-1] = i + 1
	}
	base := b.place(labels[:n])
	if base >= maxUnits {
		return false
	}
	b.used[base] = true
	b.t.units[node] |= uint64(base)
	for _, c := range labels[:n] {
		b.t.units[base^int(c)] = (uint64(c) + 1) << labelAt
		b.take(base ^ int(c))
	}
	begin := 0
	for i, c := range labels[:n] {
		if !b.children(base^int(c), depth+1, tokens[begin:ends[i]]) {
			return false
		}
		begin = ends[i]
	}
	return true
}

// place finds a base that no node has and whose units for labels are free.
func (b *trieBuilder) place(labels []byte) int {
	for {
		for _, block := range b.open {
			for _, at := range b.free[block] {
				base := block*blockSize | int(at^labels[0])
				if base != 0 && !b.used[base] && b.fits(base, labels) {
					return base
				}
			}
		}
		b.grow()
	}
}

func (b *trieBuilder) fits(base int, labels []byte) bool {
	for _, c := range labels[1:] {
		if b.t.units[base^int(c)] != 0 {
			return false
		}
	}
	return true
}
