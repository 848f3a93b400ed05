package bpe

// greedy is what the checked greedy encoder needs beside the vocabulary. It takes the longest token that fits
// where plain merging could leave it beside the one before, and steps back where nothing does: the result is
// that of merging by rank, in time linear in the piece (H. van Antwerpen, A. Neubeck, "So many tokens, so little
// time: introducing a faster, more flexible byte-pair tokenizer", 2024). It is for vocabularies whose ids come in the order
// of merges, and in which the last merge of nearly every token joins two of lower id.
type greedy struct {
	trie   *trie
	pairs  *pairTable
	prefix []uint32    // longest shorter token that a token begins with, or none
	halves [][2]uint32 // what a token's last merge joined; a token of one byte has itself twice. And isHalf
	bytes  [256]uint32
	joints []uint32 // token of each two bytes, or none
	wild   []uint64 // a bit for each token that is not made of lower ids all the way down; nil when there is none
	wilds  int
}

// isHalf marks in halves[t][0] that t is the left half of some merge, in halves[t][1] that it is a right one. Most
// tokens are neither, and the pair table need not be asked.
const isHalf = 1 << 31

// newGreedy returns nil when too many tokens are not made of two of lower id. merges is nil where every pair whose
// joint is a token merges; else its joints come in the order of their ids. reach says which tokens merging can make.
func newGreedy(v *vocab, merges *rankTable) (g *greedy, reach []bool) {
	n := len(v.offsets) - 1
	sorted := sortTokens(v)
	g = &greedy{prefix: prefixes(v, sorted), halves: make([][2]uint32, n), pairs: newPairTable(n)}
	reach = make([]bool, n)
	highest := uint32(0)
	for b := range 256 {
		id, _ := v.find([]byte{byte(b)})
		g.bytes[b], g.halves[id], reach[id] = id, [2]uint32{id, id}, true
		highest = max(highest, id)
	}
	for id := range uint32(n) {
		size := v.size(id)
		if size < 2 {
			continue
		}
		l, r, ok := g.lastMerge(v, id, reach, merges)
		if ok && merges != nil {
			rank, _ := merges.find(l, r)
			ok = rank != none
		}
		if !ok && merges == nil || id < highest {
			return nil, nil
		}
		if !ok && size <= maxWildBytes {
			l, r, ok = g.wildMerge(v, id, merges.find)
		} else if !ok {
			return nil, nil
		}
		if !ok {
			continue
		}
		if (l > id || r > id || g.isWild(l) || g.isWild(r)) && !g.setWild(id) {
			return nil, nil
		}
		g.join(l, r, id)
		reach[id] = true
	}
	g.finish(v, sorted, reach)
	if g.trie == nil {
		return nil, nil
	}
	return g, reach
}

// join notes that the last merge to token id joins l and r.
func (g *greedy) join(l, r, id uint32) {
	g.pairs.insert(l, r, id)
	g.halves[id][0] |= l // a token of lower id may have marked it as its half
	g.halves[id][1] |= r
	g.halves[l][0] |= isHalf
	g.halves[r][1] |= isHalf
}

// lastMerge returns the two tokens of lower id that plain merging leaves in place of token id just before it.
func (g *greedy) lastMerge(v *vocab, id uint32, reach []bool, merges *rankTable) (l, r uint32, ok bool) {
	t := v.token(id)
	for l = g.prefix[id]; l != none; l = g.prefix[l] {
		if l >= id || !reach[l] {
			continue
		}
		r, found := v.find(t[v.size(l):])
		if found && r < id && reach[r] && g.beside(v, l, r, merges.find) {
			return l, r, true
		}
	}
	return 0, 0, false
}

// finish leaves tokens that no merge makes out of the prefixes and the trie, and fills joints.
func (g *greedy) finish(v *vocab, sorted []uint32, reach []bool) {
	kept := sorted[:0]
	for _, id := range sorted {
		for p := g.prefix[id]; p != none && !reach[p]; p = g.prefix[p] {
			g.prefix[id] = g.prefix[p]
		}
		if reach[id] {
			kept = append(kept, id)
		}
	}
	g.trie = newTrie(v, kept)
	g.joints = make([]uint32, 1<<16)
	for i := range g.joints {
		g.joints[i] = g.pairs.joint(g.bytes[i>>8], g.bytes[i&0xff])
	}
}

// sideBySide tells whether plain merging of the bytes of both tokens ends with l and r: it undoes their merges
// from the last one and looks whether one of lower rank would have crossed the border before.
func (g *greedy) sideBySide(l, r uint32) bool {
	limit := none
	a, b := g.halves[l], g.halves[r]
	for {
		if a[0]&b[1]&isHalf != 0 && g.pairs.joint(l, r) < limit {
			return false
		}
		inner, outer := a[1]&idMask, b[0]&idMask
		switch {
		case inner == l && outer == r: // two single bytes
			return true
		case outer == r, l > r && inner != l:
			limit, l = l, inner
			a = g.halves[l]
		default:
			limit, r = r+1, outer
			b = g.halves[r]
		}
	}
}

// appendGreedy appends the ids of piece.
func (e *Encoder) appendGreedy(dst []uint32, piece []byte) []uint32 {
	g, v := e.tables.greedy, e.enc.vocab
	dead := e.deadBits(len(piece) + 1)
	base, pos := len(dst), 0
	token, size := g.trie.longest(piece)
	for {
		end := pos + size
		if dead[end>>6]>>(end&63)&1 == 0 && (len(dst) == base || e.valid(dst[len(dst)-1], token)) {
			dst = append(dst, token)
			if end == len(piece) {
				return dst
			}
			pos = end
			token, size = g.trie.longest(piece[pos:])
			continue
		}
		if p := g.prefix[token]; p != none {
			token, size = p, v.size(p)
			continue
		}
		if len(dst) == base { // plain merging has an answer, so this cannot be
			return e.appendByRank(dst, piece)
		}
		dead[pos>>6] |= 1 << (pos & 63)
		token = dst[len(dst)-1]
		size = v.size(token)
		dst = dst[:len(dst)-1]
		pos -= size
	}
}

// valid is sideBySide behind a memo.
func (e *Encoder) valid(l, r uint32) bool {
	k := pairKey(l, r)
	slot := &e.memo[k*mix1>>(64-memoBits)]
	if *slot>>1 == k+1 {
		return *slot&1 != 0
	}
	g, ok := e.tables.greedy, false
	if g.wild != nil && (g.isWild(l) || g.isWild(r)) {
		ok = e.settles(l, r)
	} else {
		ok = g.sideBySide(l, r)
	}
	*slot = (k + 1) << 1
	if ok {
		*slot |= 1
	}
	return ok
}

func (e *Encoder) deadBits(n int) []uint64 {
	words := (n + 63) / 64
	if cap(e.dead) < words {
		e.dead = make([]uint64, words, words+words/2)
	}
	dead := e.dead[:words]
	clear(dead)
	return dead
}
