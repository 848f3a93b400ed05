package profile

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"tailgate/schemas"
)

// rootTable lists the first blocks that most requests begin with.
func (u *usage) rootTable(key schemas.ProfileKey) []schemas.ProfileRoot {
	ids, counts := u.in.roots.ids, []uint32{}
	r := rootPlaces{num: &u.scratch.roots} // a trace may have millions of roots, of which a group has few
	r.num.reset(len(ids) + 1)
	for i := range u.in.each(u.g) {
		if u.in.root[i] == 0 {
			continue
		}
		k, isNew := r.num.of(u.in.root[i])
		if isNew {
			counts = append(counts, 0)
		}
		counts[k]++
	}
	top := topRoots(key, counts, func(k int) int64 { return ids[r.num.dense[k]-1] })
	rank := map[int64]int{}
	for i := range top {
		rank[top[i].BlockID] = i
	}
	for _, root := range r.num.dense {
		i, ok := rank[ids[root-1]]
		if !ok {
			i = none
		}
		r.places = append(r.places, int32(i))
	}
	sessions := make([]float64, len(top)) // whose prompts are kept whole
	for row := range u.in.each(u.g) {
		if !u.in.is(row, rowStarts) {
			continue
		}
		i := r.of(u.in.root[row])
		if i < 0 {
			continue
		}
		top[i].Sessions++
		if u.in.whole != nil && u.in.whole.has.has(int(row)) {
			sessions[i]++
		}
	}
	if u.in.whole == nil {
		u.depths(top, rank, r)
	} else {
		u.sampledDepths(top, rank, sessions)
	}
	return top
}

// topRoots ranks the roots by their requests; the k-th has so many, and an id. Those of one request are not among them.
func topRoots(key schemas.ProfileKey, counts []uint32, id func(k int) int64) []schemas.ProfileRoot {
	var top []schemas.ProfileRoot
	least := uint32(2) // what a root must have to be among the top ones
	place := func(a, b schemas.ProfileRoot) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.BlockID, b.BlockID))
	}
	for k, n := range counts {
		if n < least {
			continue
		}
		top = append(top, schemas.ProfileRoot{ProfileKey: key, BlockID: id(k), Requests: int64(n)})
		if len(top) == 16*maxRoots {
			slices.SortFunc(top, place)
			top = top[:maxRoots]
			least = uint32(top[maxRoots-1].Requests)
		}
	}
	slices.SortFunc(top, place)
	top = top[:min(len(top), maxRoots)]
	for i := range top {
		top[i].Rank = int32(i + 1)
	}
	return top
}

// rootPlaces are the places of a group's roots among the top ones.
type rootPlaces struct {
	num    *numbering
	places []int32 // by number; none = it is not among them
}

// of is the place of a root, none where it has none; 0 is no root.
func (r rootPlaces) of(root uint32) int32 {
	if root == 0 {
		return none
	}
	k, _ := r.num.of(root)
	return r.places[k]
}

// depths tells how many leading blocks at least half of a root's requests have in common.
func (u *usage) depths(top []schemas.ProfileRoot, rank map[int64]int, places rootPlaces) {
	type shared struct {
		root  int
		depth int32
	}
	kept := map[uint32]shared{} // nodes that at least half of their root's requests go through
	least := int64(math.MaxInt64)
	for i := range top {
		least = min(least, top[i].Requests)
		top[i].DepthError = new(int32)
	}
	for node, requests := range u.members() { // a node comes after the one above it
		if 2*int64(requests) < least {
			continue
		}
		n, s, ok := u.in.tree.nodes[node], shared{}, false
		if n.parent == 0 {
			s.root, ok = rank[n.id]
		} else {
			s, ok = kept[n.parent]
		}
		s.depth++
		if !ok || 2*int64(requests) < top[s.root].Requests || s.depth > deepest {
			continue
		}
		kept[node] = s
		top[s.root].DepthBlocks = max(top[s.root].DepthBlocks, s.depth)
	}
	if least == 2 { // each block of each of two is one that half of them have
		for i := range u.in.each(u.g) {
			if k := places.of(u.in.root[i]); k >= 0 && top[k].Requests == 2 {
				top[k].DepthBlocks = max(top[k].DepthBlocks, min(u.in.blocks(i), deepest))
			}
		}
	}
}

// members yields every node in order, and how many requests of the group go through it.
func (u *usage) members() iter.Seq2[uint32, uint32] {
	return func(yield func(node, requests uint32) bool) {
		num, counts := u.num, u.uses
		if u.in.tree.aliases > 0 { // a block may be several nodes: count these
			num, counts = u.countNodes()
		}
		for k, n := range counts {
			node := uint32(k)
			if num != nil {
				node = num.dense[k]
			}
			if n > 0 && !yield(node, n) {
				return
			}
		}
	}
}

func (u *usage) countNodes() (num *numbering, counts []uint32) {
	num = &numbering{}
	num.reset(len(u.in.tree.nodes))
	var path []uint32
	for i := range u.in.each(u.g) {
		path = u.in.tree.path(path, u.in.leaf[i], u.in.depth[i])
		for _, at := range path {
			k, isNew := num.of(at)
			if isNew {
				counts = append(counts, 0)
			}
			counts[k]++
		}
	}
	return num, counts
}

// sampledDepths is depths from the prompts that are kept whole; of those of sampled sessions each stands for as many as
// the sample has one of. The error is the distance to the depths at the borders of the interval of the half.
func (u *usage) sampledDepths(top []schemas.ProfileRoot, rank map[int64]int, sessions []float64) {
	type shared struct {
		root  int
		depth [3]int32 // by limit; 0 = too few go through the node
	}
	nodes, weights := u.in.wholeWeights(u.g, &u.scratch.prompts)
	kept, totals := map[uint32]shared{}, make([]int64, len(top))
	deep := make([][3]int32, len(top))
	limits := make([][3]float64, len(top))
	for i := range top {
		off := min(.98/math.Sqrt(max(sessions[i], 1)), .5)
		limits[i] = [3]float64{.5, .5 + off, .5 - off}
	}
	for k, node := range nodes { // a node comes after the one above it
		n := u.in.whole.tree.nodes[node]
		s, ok := kept[n.parent]
		if n.parent == 0 {
			if s.root, ok = rank[n.id]; ok {
				totals[s.root] = weights[k]
			}
		}
		if !ok {
			continue
		}
		share, through := float64(weights[k])/float64(totals[s.root]), false
		for k, limit := range limits[s.root] {
			if share < limit || n.parent != 0 && s.depth[k] == 0 || s.depth[k] == deepest {
				s.depth[k] = 0
				continue
			}
			s.depth[k]++
			deep[s.root][k], through = max(deep[s.root][k], s.depth[k]), true
		}
		if through {
			kept[node] = s
		}
	}
	for i, d := range deep {
		top[i].DepthBlocks = max(d[0], 1) // its requests have the root itself
		if totals[i] > 0 {
			top[i].DepthError = new(max(d[2]-d[0], d[0]-d[1]))
		}
	}
}

// wholeWeights lists the nodes of the whole prompts of g in order, and tells how many requests go through each.
func (in *input) wholeWeights(g group, num *numbering) (nodes []uint32, weights []int64) {
	w, own := in.whole, map[uint32]int64{}
	for i := range in.each(g) {
		if !w.has.has(int(i)) {
			continue
		}
		weight := int64(1)
		if in.sessionOf(int(i)) != none {
			weight <<= in.skip.prompts()
		}
		own[w.leaf[i]] += weight
	}
	num.reset(len(w.tree.nodes))
	for leaf := range own {
		for n, isNew := leaf, true; n != 0 && isNew; n = w.tree.nodes[n].parent {
			_, isNew = num.of(n)
		}
	}
	nodes = num.dense
	slices.Sort(nodes)
	for k, n := range nodes {
		num.sparse[n] = uint32(k) // the list has a new order
		weights = append(weights, own[n])
	}
	for k := len(nodes) - 1; k >= 0; k-- {
		if above := w.tree.nodes[nodes[k]].parent; above != 0 {
			weights[num.sparse[above]] += weights[k]
		}
	}
	return nodes, weights
}
