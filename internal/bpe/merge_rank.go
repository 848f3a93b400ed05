package bpe

import "math"

// Merging by rank: join the leftmost pair of lowest rank until none is left. It is the definition, and right for every vocabulary.

// shortPiece is how long a piece merges by rank at most where the greedy encoder could take it: below, arrays on the
// stack are faster.
const shortPiece = 12

// appendShort merges a piece of at most shortPiece bytes of a monotone vocabulary, where a joint's id is the rank.
func (e *Encoder) appendShort(dst []uint32, piece []byte) []uint32 {
	g := e.tables.greedy
	var ids, joints [shortPiece + 1]uint32
	n := len(piece)
	if n > shortPiece {
		return e.appendGreedy(dst, piece)
	}
	for i := 0; i < n; i++ {
		ids[i] = g.bytes[piece[i]]
	}
	for i := 0; i+1 < n; i++ {
		joints[i] = g.joints[uint(piece[i])<<8|uint(piece[i+1])]
	}
	for n > 1 {
		best, at := none, 0
		for i, j := range joints[:n-1] {
			if j < best {
				best, at = j, i
			}
		}
		if best == none {
			break
		}
		n--
		ids[at] = best
		for i := at + 1; i < n; i++ {
			ids[i], joints[i-1] = ids[i+1], joints[i]
		}
		if at > 0 {
			joints[at-1] = g.pairs.joint(ids[at-1], best)
		}
		if at < n-1 {
			joints[at] = g.pairs.joint(best, ids[at+1])
		}
	}
	return append(dst, ids[:n]...)
}

// scanPiece is up to how many bytes the lowest rank is found by looking at all of them.
const scanPiece = 128

// link is one token of a piece while it merges.
type link struct {
	id         uint32
	rank       uint32 // of the merge with next; none when they do not merge
	joint      uint32
	prev, next int32 // -1 at the ends
}

// appendByRank appends the ids of piece for any vocabulary.
func (e *Encoder) appendByRank(dst []uint32, piece []byte) []uint32 {
	if len(piece) > math.MaxInt32 {
		// Nothing sends a piece of 2 GiB; halves of it at least stay tokens of the text.
		dst = e.appendByRank(dst, piece[:math.MaxInt32])
		return e.appendByRank(dst, piece[math.MaxInt32:])
	}
	links := e.links[:0]
	for i, b := range piece {
		links = append(links, link{id: e.enc.bytes[b], rank: none, prev: int32(i) - 1, next: int32(i) + 1})
	}
	links[len(links)-1].next = -1
	e.links = links
	for i := range links {
		e.rate(links, int32(i))
	}
	if len(piece) <= scanPiece {
		e.mergeByScan(links)
	} else {
		e.mergeByHeap(links)
	}
	for i := int32(0); i >= 0; i = links[i].next {
		dst = append(dst, links[i].id)
	}
	return dst
}

// rate looks up the merge of link i with the one after it.
func (e *Encoder) rate(links []link, i int32) {
	a := &links[i]
	if a.next < 0 {
		a.rank = none
		return
	}
	b := links[a.next].id
	switch t := e.tables; {
	case t == nil:
		a.joint = e.jointByBytes(a.id, b)
	case t.merges != nil:
		a.rank, a.joint = t.merges.find(a.id, b)
		return
	default:
		a.joint = t.greedy.pairs.joint(a.id, b)
	}
	a.rank = a.joint
}

// jointByBytes returns the token of the bytes of both, or none: where every pair whose joint is a token merges, the
// vocabulary tells the merges without a table.
func (e *Encoder) jointByBytes(l, r uint32) uint32 {
	v := e.enc.vocab
	e.pairText = append(append(e.pairText[:0], v.token(l)...), v.token(r)...)
	if id, ok := v.find(e.pairText); ok {
		return id
	}
	return none
}

// join replaces link i and the next one by their joint.
func (e *Encoder) join(links []link, i int32) {
	a := &links[i]
	gone := &links[a.next]
	a.id, a.next = a.joint, gone.next
	gone.rank = none
	if a.next >= 0 {
		links[a.next].prev = i
	}
	e.rate(links, i)
	if a.prev >= 0 {
		e.rate(links, a.prev)
	}
}

func (e *Encoder) mergeByScan(links []link) {
	for {
		best, at := none, int32(-1)
		for i := int32(0); i >= 0; i = links[i].next {
			if links[i].rank < best {
				best, at = links[i].rank, i
			}
		}
		if at < 0 {
			return
		}
		e.join(links, at)
	}
}

// mergeByHeap keeps candidates as rank and place in a heap; one that is out of date no longer has its link's rank.
func (e *Encoder) mergeByHeap(links []link) {
	h := e.heap[:0]
	for i := range links {
		if links[i].rank != none {
			h = append(h, uint64(links[i].rank)<<32|uint64(i))
		}
	}
	h.init()
	for len(h) > 0 {
		top := h.pop()
		i := int32(top & math.MaxUint32)
		if links[i].rank != uint32(top>>32) {
			continue
		}
		e.join(links, i)
		if r := links[i].rank; r != none {
			h.push(uint64(r)<<32 | uint64(i))
		}
		if p := links[i].prev; p >= 0 && links[p].rank != none {
			h.push(uint64(links[p].rank)<<32 | uint64(p))
		}
	}
	e.heap = h
}

// minHeap is a binary heap of numbers.
type minHeap []uint64

func (h minHeap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *minHeap) push(x uint64) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up] <= s[i] {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *minHeap) pop() uint64 {
	s := *h
	top := s[0]
	s[0] = s[len(s)-1]
	*h = s[:len(s)-1]
	h.down(0)
	return top
}

func (h minHeap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
