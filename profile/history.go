package profile

import "tailgate/schemas"

// history counts how much of their parents' prompts later turns share. With a sample, a turn tells whether it branches
// when the last full block of its parent is in the sample, or is one that no other request has; and of the full blocks
// of the parent those in the sample tell which it shares.
type history struct {
	in              *input
	turns           int // later turns whose parent has a full block
	certain, branch int // of these: told without a sample, and those that branch
	told, branches  [parts]int
	blocks, private int // full blocks of the parents, and those that no other request has
	kept, lost      [parts]int
}

func (h *history) take(parent, child int32) {
	in := h.in
	blocks := in.fullBlocks(parent)
	if !in.is(child, rowPrompt) || blocks == 0 {
		return
	}
	h.turns, h.blocks = h.turns+1, h.blocks+blocks
	node, shared := in.tree.common(in.leaf[parent], in.depth[parent], in.leaf[child], in.depth[child])
	if in.skip == 0 {
		h.certain++
		if shared < blocks {
			h.branch++
		}
		h.kept[0] += min(shared, blocks)
		return
	}
	end := uint32(blocks)
	last := in.tree.at(in.leaf[parent], end)
	node = in.tree.at(node, end)
	if alone := blocks - int(in.followed(parent)); alone > 0 {
		h.private += alone
		h.certain++
		h.branch++
	} else if last != 0 && in.tree.places[last] == end-1 {
		p := in.partAt(last)
		if h.told[p]++; node != last {
			h.branches[p]++
		}
	}
	for is := false; last != 0; last = in.tree.nodes[last].parent {
		if is = is || last == node; is {
			h.kept[in.partAt(last)]++
		} else {
			h.lost[in.partAt(last)]++
		}
	}
}

// partAt is the part of a node's block.
func (in *input) partAt(node uint32) uint64 {
	return samplePart(sampleHash(uint64(in.tree.nodes[node].id)))
}

// fill tells the shares, null where nothing tells them.
func (h *history) fill(row *schemas.ProfileSessionStat) {
	if h.turns == 0 {
		return
	}
	row.Branches, row.BranchError = h.branching()
	row.Carry, row.CarryError = h.carry()
}

// branching is the share of the turns that branch. Those that are certain are known; of the others the sample tells some,
// and they stand for all.
func (h *history) branching() (share, off *float64) {
	of := func(branches, told int) *float64 {
		if h.turns == h.certain {
			return val(float64(h.branch) / float64(h.turns))
		}
		return val((float64(h.branch) + float64(h.turns-h.certain)*float64(branches)/float64(told)) / float64(h.turns))
	}
	branches, told := 0, 0
	for p := range parts {
		branches, told = branches+h.branches[p], told+h.told[p]
	}
	switch share = of(branches, told); {
	case share == nil:
		return nil, nil
	case h.turns == h.certain:
		return share, new(float64)
	}
	var without [parts]float64
	for p := range parts {
		without[p] = *share
		if x := of(branches-h.branches[p], told-h.told[p]); x != nil {
			without[p] = *x
		}
	}
	return share, val(leftOutError(without))
}

// carry is the share of the parents' full blocks that later turns share. It comes from the rarer of those that are shared
// and those that are not: blocks that very many requests have, a system prompt's, are all among the others, and whether
// the sample has them then does not matter.
func (h *history) carry() (share, off *float64) {
	kept, lost := 0, 0
	for p := range parts {
		kept, lost = kept+h.kept[p], lost+h.lost[p]
	}
	rarer, all := &h.kept, float64(h.blocks)
	x := float64(kept<<h.in.skip) / all
	if h.in.skip > 0 && kept > lost {
		rarer, x = &h.lost, 1-float64(h.private+(lost<<h.in.skip))/all
	}
	var sums [parts]float64
	for p, n := range rarer {
		sums[p] = float64(n) / all
	}
	return val(max(0, min(x, 1))), val(h.in.skip.sumError(sums))
}
