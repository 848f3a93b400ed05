package bpe

// Some vocabularies are monotone but for a few tokens: Llama 3 makes 107 of its 128,000 by way of a token of higher
// id, and 588 not at all. Whatever the ranks are, plain merging never crosses the border between two tokens of its
// result, so that each part of a text merges as if it were alone: the greedy encoder is right for every
// vocabulary whose tokens and pairs of tokens are judged right. Undoing merges from the last one judges a pair only
// where ids grow from halves to joints. Tokens that are made otherwise are wild; a pair with one is judged by
// merging it.

// Bounds of what is merged by trying every pair: beyond them a vocabulary merges by rank as a whole.
const (
	maxWildBytes = 256
	wildShare    = 16 // one wild token of so many tokens
)

// rules finds the rank and joint of a merge; none when there is none.
type rules func(l, r uint32) (rank, joint uint32)

// settle merges ids by rank, in place. last is what the last merge joined.
func settle(ids []uint32, rule rules) (merged []uint32, last [2]uint32) {
	for {
		best, at, joint := none, -1, uint32(0)
		for i := 0; i+1 < len(ids); i++ {
			if rank, j := rule(ids[i], ids[i+1]); rank < best {
				best, at, joint = rank, i, j
			}
		}
		if at < 0 {
			return ids, last
		}
		last = [2]uint32{ids[at], ids[at+1]}
		ids[at] = joint
		ids = append(ids[:at+1], ids[at+2:]...)
	}
}

// wildMerge returns the two tokens that the last merge to token id joins, of any ids; false when its bytes do not
// merge to it.
func (g *greedy) wildMerge(v *vocab, id uint32, rule rules) (l, r uint32, ok bool) {
	ids := g.singles(nil, v.token(id))
	ids, last := settle(ids, rule)
	return last[0], last[1], len(ids) == 1 && ids[0] == id
}

// beside is sideBySide while the tables are built: rule knows all merges, the table of pairs not yet.
func (g *greedy) beside(v *vocab, l, r uint32, rule rules) bool {
	if !g.isWild(l) && !g.isWild(r) {
		return g.sideBySide(l, r)
	}
	ids, _ := settle(g.singles(g.singles(nil, v.token(l)), v.token(r)), rule)
	// The pair may have a joint itself: it is asked whether these two come before that.
	if joint, _ := v.find(append(append([]byte(nil), v.token(l)...), v.token(r)...)); len(ids) == 1 {
		first, second, _ := g.wildMerge(v, joint, rule)
		return first == l && second == r
	}
	return len(ids) == 2 && ids[0] == l && ids[1] == r
}

func (g *greedy) singles(ids []uint32, text []byte) []uint32 {
	for _, b := range text {
		ids = append(ids, g.bytes[b])
	}
	return ids
}

func (g *greedy) isWild(id uint32) bool { return g.wild != nil && g.wild[id>>6]>>(id&63)&1 != 0 }

// setWild marks a token; false when there are too many of them.
func (g *greedy) setWild(id uint32) bool {
	if g.wild == nil {
		g.wild = make([]uint64, len(g.halves)/64+1)
	}
	g.wild[id>>6] |= 1 << (id & 63)
	g.wilds++
	return g.wilds <= len(g.halves)/wildShare
}

// settles tells whether l and r stay as they are when their bytes are merged.
func (e *Encoder) settles(l, r uint32) bool {
	v := e.enc.vocab
	e.pairText = append(append(e.pairText[:0], v.token(l)...), v.token(r)...)
	e.pairIDs = e.appendByRank(e.pairIDs[:0], e.pairText)
	return len(e.pairIDs) == 2 && e.pairIDs[0] == l && e.pairIDs[1] == r
}
