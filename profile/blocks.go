package profile

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"tailgate/schemas"
)

// Units of the reuse table.
const (
	UnitRequests = "requests"
	UnitUs       = "us"
)

// Sizes of the tables of blocks.
const (
	maxRoots  = 100
	maxPairs  = 100
	deepest   = 64 // blocks that the depth of a root counts at most
	maxShared = 1 << 25
)

// scratch is memory that the tables of one group after the other use.
type scratch struct {
	num     numbering
	lengths [2]lengthCounts
	cells   []int64
	path    []uint32
	limits  hitLimits
	salt    uint64 // of the sample
}

// usage follows the blocks of a group: how often each is used, and how long it rests between two uses.
type usage struct {
	in      *input
	g       group
	num     *numbering // nil for the total, whose blocks have their own numbers
	uses    []uint32   // requests by block
	last    []uint32   // request that used it last, from 1
	first   []uint32   // requests that begin with it
	private int64      // blocks of one request that are not followed
	resting [2][logBins]int64
}

func (in *input) use(g group, scratch *scratch) *usage {
	u := &usage{in: in, g: g}
	if nodes := len(in.tree.nodes); g.total {
		u.uses, u.last, u.first = make([]uint32, nodes), make([]uint32, nodes), make([]uint32, nodes)
	} else {
		u.num = &scratch.num
		u.num.reset(nodes)
	}
	request := uint32(0)
	for i := range in.each(g) {
		request++
		u.private += int64(in.blocks(i) - in.depth[i])
		scratch.path = in.tree.path(scratch.path, in.leaf[i], in.depth[i])
		for place, at := range scratch.path {
			k := u.number(in.tree.nodes[at].block)
			if place == 0 {
				u.first[k]++
			}
			before := u.last[k]
			if before == request {
				continue
			}
			if before > 0 {
				u.rest(request-before, in.at[i]-in.at[u.row(before)])
			}
			u.uses[k]++
			u.last[k] = request
		}
	}
	return u
}

// number is the number of a block in the group.
func (u *usage) number(block uint32) uint32 {
	if u.num == nil {
		return block
	}
	k, isNew := u.num.of(block)
	if isNew {
		u.uses, u.last, u.first = append(u.uses, 0), append(u.last, 0), append(u.first, 0)
	}
	return k
}

// block is the block of a number.
func (u *usage) block(number int) uint32 {
	if u.num == nil {
		return uint32(number)
	}
	return u.num.dense[number]
}

// row is the row of the group's n-th request, from 1.
func (u *usage) row(n uint32) int32 {
	if u.g.total {
		return int32(n - 1)
	}
	return u.g.rows[n-1]
}

// rest takes the distance from one use of a block to the next.
func (u *usage) rest(requests uint32, us int64) {
	u.resting[0][logPlace(int64(requests))]++
	if us < u.in.resolution {
		us = 0
	}
	u.resting[1][logPlace(us)]++
}

// different is the number of blocks that are followed.
func (u *usage) different() (n int) {
	for _, uses := range u.uses {
		if uses > 0 {
			n++
		}
	}
	return n
}

// popularity counts blocks by uses; a request that holds a block twice uses it once.
func (u *usage) popularity(key schemas.ProfileKey) []schemas.ProfilePopularity {
	var blocks, uses [logBins]int64
	blocks[1], uses[1] = u.private, u.private
	for _, n := range u.uses {
		if n > 0 {
			place := logPlace(int64(n))
			blocks[place]++
			uses[place] += int64(n)
		}
	}
	var out []schemas.ProfilePopularity
	for place, n := range blocks {
		if n > 0 {
			lo, hi := logBorders(place)
			out = append(out, schemas.ProfilePopularity{ProfileKey: key, LoUses: lo, HiUses: hi, Blocks: n, Uses: uses[place]})
		}
	}
	return out
}

// reuse is the histogram of the distances from one use of a block to its next.
func (u *usage) reuse(key schemas.ProfileKey) []schemas.ProfileReuse {
	var out []schemas.ProfileReuse
	for k, unit := range []string{UnitRequests, UnitUs} {
		for place, n := range u.resting[k] {
			if n == 0 {
				continue
			}
			lo, hi := logBorders(place)
			if unit == UnitUs && lo == 0 {
				hi = max(hi, u.in.resolution)
			}
			out = append(out, schemas.ProfileReuse{ProfileKey: key, Unit: unit, Lo: lo, Hi: hi, N: n})
		}
	}
	return out
}

// roots are the first blocks that most requests begin with.
func (u *usage) roots(key schemas.ProfileKey) []schemas.ProfileRoot {
	nodes := u.in.tree.nodes
	var top []schemas.ProfileRoot
	least := uint32(2) // what a root must have to be among the top ones
	place := func(a, b schemas.ProfileRoot) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.BlockID, b.BlockID))
	}
	for k, n := range u.first {
		if n < least {
			continue
		}
		top = append(top, schemas.ProfileRoot{ProfileKey: key, BlockID: nodes[u.block(k)].id, Requests: int64(n)})
		if len(top) == 16*maxRoots {
			slices.SortFunc(top, place)
			top = top[:maxRoots]
			least = uint32(top[maxRoots-1].Requests)
		}
	}
	slices.SortFunc(top, place)
	top = top[:min(len(top), maxRoots)]
	rank := map[int64]int{}
	for i := range top {
		top[i].Rank = int32(i + 1)
		rank[top[i].BlockID] = i
	}
	for rows := range u.in.eachSession(u.g) {
		if i, ok := rank[u.in.rootID(rows[0])]; ok {
			top[i].Sessions++
		}
	}
	u.depths(top, rank)
	return top
}

// rootID is the id of the first block of row i, or −1.
func (in *input) rootID(i int32) int64 {
	if in.depth[i] == 0 {
		return none
	}
	at := in.leaf[i]
	for range in.depth[i] - 1 {
		at = in.tree.nodes[at].parent
	}
	return in.tree.nodes[at].id
}

// depths tells how many leading blocks at least half of a root's requests have in common.
func (u *usage) depths(top []schemas.ProfileRoot, rank map[int64]int) {
	type shared struct {
		root  int
		depth int32
	}
	kept := map[uint32]shared{} // nodes that at least half of their root's requests go through
	least := int64(math.MaxInt64)
	for _, root := range top {
		least = min(least, root.Requests)
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
			if root, ok := rank[u.in.rootID(i)]; ok && top[root].Requests == 2 {
				top[root].DepthBlocks = max(top[root].DepthBlocks, min(u.in.blocks(i), deepest))
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
