package bpe

import "math/bits"

const (
	idBits = 21
	idMask = 1<<idBits - 1
)

// pairTable finds the token that two neighbours join to. An entry packs both ids and the joint into 63 bits, 0 is
// free (a joint is never id 0: it is greater than its halves). Most questions are answered no, by a bit filter
// of half a megabyte that stays in the cache.
type pairTable struct {
	slots       []uint64
	filter      []uint64
	shift       uint
	filterShift uint
}

func newPairTable(n int) *pairTable {
	size := 1 << max(4, bits.Len(uint(n+n/4)))
	filter := 16 * size
	return &pairTable{slots: make([]uint64, size), filter: make([]uint64, filter/64), shift: shift(size), filterShift: shift(filter)}
}

func pairKey(l, r uint32) uint64 { return uint64(l)<<idBits | uint64(r) }

func (p *pairTable) insert(l, r, joint uint32) {
	k := pairKey(l, r)
	h := k * mix1
	f := h >> p.filterShift
	p.filter[f>>6] |= 1 << (f & 63)
	i := h >> p.shift
	for p.slots[i] != 0 {
		i = (i + 1) & uint64(len(p.slots)-1)
	}
	p.slots[i] = k<<idBits | uint64(joint)
}

// none is no id.
const none = ^uint32(0)

// joint returns the token that l and r join to, or none.
func (p *pairTable) joint(l, r uint32) uint32 {
	if f := pairKey(l, r) * mix1 >> p.filterShift; p.filter[f>>6]>>(f&63)&1 == 0 {
		return none
	}
	return p.probe(l, r)
}

func (p *pairTable) probe(l, r uint32) uint32 {
	k := pairKey(l, r)
	for i := k * mix1 >> p.shift; ; i = (i + 1) & uint64(len(p.slots)-1) {
		s := p.slots[i]
		if s>>idBits == k && s != 0 {
			return uint32(s & idMask)
		}
		if s == 0 {
			return none
		}
	}
}

// rankTable finds the rank and the joint of a merge where ids do not tell the rank.
type rankTable struct {
	slots []rankEntry
	shift uint
}

// rankEntry is one merge; a free entry has rank 0.
type rankEntry struct {
	key         uint64
	rank, joint uint32 // rank + 1
}

func newRankTable(n int) *rankTable {
	size := 1 << max(4, bits.Len(uint(n+n/3)))
	return &rankTable{slots: make([]rankEntry, size), shift: shift(size)}
}

// insert keeps the first rank of a pair.
func (t *rankTable) insert(l, r, rank, joint uint32) {
	k := pairKey(l, r)
	i := k * mix1 >> t.shift
	for t.slots[i].rank != 0 {
		if t.slots[i].key == k {
			return
		}
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	t.slots[i] = rankEntry{k, rank + 1, joint}
}

// find returns none for the rank when the two do not merge.
func (t *rankTable) find(l, r uint32) (rank, joint uint32) {
	k := pairKey(l, r)
	for i := k * mix1 >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		s := &t.slots[i]
		if s.rank == 0 {
			return none, 0
		}
		if s.key == k {
			return s.rank - 1, s.joint
		}
	}
}
