package synth

import (
	"math/rand/v2"

	"tailgate/profile"
	"tailgate/schemas"
)

// prefixModel says which blocks a session shares with others: system prompts by popularity. All else is its own.
type prefixModel struct {
	block  int // tokens per hash id; 0 = no ids
	roots  []root
	choose weighted // place in roots; past the end = none
	share  *float64 // of a first prompt's whole blocks, instead of the depth of the root
	blocks *blockIDs
}

// root is a shared prefix.
type root struct {
	key   rootKey
	depth int // blocks
}

// rootKey names a shared prefix over all groups: prompts that tenants have in common stay common.
type rootKey struct {
	group int   // −1 = of the profile
	id    int64 // first block of the profile, or a number
}

// blockIDs gives ids: dense, in order of first use.
type blockIDs struct {
	last  int64
	roots map[rootKey][]int64
}

func (b *blockIDs) fresh(n int, to []int64) []int64 {
	for range n {
		b.last++
		to = append(to, b.last)
	}
	return to
}

// prefix is the first n ids of a root.
func (b *blockIDs) prefix(k rootKey, n int) []int64 {
	ids := b.roots[k]
	if len(ids) < n {
		ids = b.fresh(n-len(ids), ids)
		b.roots[k] = ids
	}
	return ids[:n:n]
}

// newPrefixModel reads the roots of a group.
func newPrefixModel(number int, g *groupTables, block int, o *ModelOptions, blocks *blockIDs) *prefixModel {
	m := &prefixModel{block: block, share: o.PrefixShare, blocks: blocks}
	if block == 0 {
		return m
	}
	// The same root may stand in several windows of a merged profile.
	at := map[int64]int{}
	weights := []float64{}
	for i := range g.roots {
		r := &g.roots[i]
		if r.Sessions < 2 {
			continue // a session's own chain
		}
		k, ok := at[r.BlockID]
		if !ok {
			k = len(m.roots)
			at[r.BlockID] = k
			m.roots = append(m.roots, root{key: rootKey{-1, r.BlockID}})
			weights = append(weights, 0)
		}
		m.roots[k].depth = max(m.roots[k].depth, int(r.DepthBlocks))
		weights[k] += float64(r.Sessions)
	}
	if o.PrefixShare != nil && (o.Prefixes > 0 || len(m.roots) == 0) {
		m.roots, weights = nil, nil
		for i := range max(o.Prefixes, 1) {
			m.roots = append(m.roots, root{key: rootKey{number, int64(i)}})
			weights = append(weights, 1)
		}
	}
	known := 0.0
	for i, w := range weights {
		m.choose.add(int64(i), int64(i), w)
		known += w
	}
	if o.PrefixShare == nil {
		sessions := 0.0
		for i := range g.turns {
			sessions += float64(g.turns[i].Sessions)
		}
		m.choose.add(int64(len(m.roots)), int64(len(m.roots)), sessions-known)
	}
	return m
}

// first gives the ids of a first prompt, and how many of them are those of a shared prefix.
func (m *prefixModel) first(tokens int32, r *rand.Rand) (ids []int64, common int) {
	if m.block == 0 {
		return nil, 0
	}
	full := int(tokens) / m.block
	ids = make([]int64, 0, m.count(tokens))
	if !m.choose.empty() {
		if k := int(m.choose.draw(r)); k < len(m.roots) {
			depth := m.roots[k].depth
			if m.share != nil {
				depth = roundShare(*m.share*float64(full), r)
			}
			ids = append(ids, m.blocks.prefix(m.roots[k].key, min(depth, full))...)
		}
	}
	common = len(ids)
	return m.blocks.fresh(m.count(tokens)-common, ids), common
}

// roundShare rounds up or down at random, so that short prompts share as much as they should on average.
func roundShare(x float64, r *rand.Rand) int {
	n := int(x)
	if r.Float64() < x-float64(n) {
		n++
	}
	return n
}

// later gives the ids of a later prompt after a parent's, of which the common ones always stay. A partial last block is
// never shared.
func (m *prefixModel) later(parent []int64, common int, parentTokens, tokens int32, c carryModel, r *rand.Rand) []int64 {
	if m.block == 0 {
		return nil
	}
	whole := int(parentTokens) / m.block
	keep := min(max(c.kept(whole, r), min(common, whole)), int(tokens)/m.block)
	ids := append(make([]int64, 0, m.count(tokens)), parent[:keep]...)
	return m.blocks.fresh(m.count(tokens)-keep, ids)
}

func (m *prefixModel) count(tokens int32) int { return (int(tokens) + m.block - 1) / m.block }

// hitOf is the block hit ratio of an infinite cache in a profile's group; false where it is not told.
func hitOf(hits []schemas.ProfileHitCurve) (float64, bool) {
	for i := range hits {
		if hits[i].Policy == profile.PolicyInfinite && hits[i].BlockHit != nil {
			return *hits[i].BlockHit, true
		}
	}
	return 0, false
}
