package profile

import "tailgate/schemas"

// history counts how much of their parents' prompts later turns share. In a sample, a turn tells whether it branches
// when the last full block of its parent is in the sample, or is one that no other request has; and of the blocks that
// it shares it tells those that are in it.
type history struct {
	in                *input
	turns, blocks     int // later turns whose parent has a full block, and these blocks
	told, branches    [parts]int
	certain, branched int // told without a sample
	kept              [parts]int
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
			h.branched++
		}
		h.kept[0] += min(shared, blocks)
		return
	}
	end := uint32(blocks)
	last := in.tree.at(in.leaf[parent], end)
	node = in.tree.at(node, end)
	switch {
	case blocks > int(in.followed(parent)):
		h.certain++
		h.branched++
	case last != 0 && in.tree.places[last] == end-1:
		p := in.partAt(last)
		if h.told[p]++; node != last {
			h.branches[p]++
		}
	}
	for ; node != 0; node = in.tree.nodes[node].parent {
		h.kept[in.partAt(node)]++
	}
}

// partAt is the part of a node's block.
func (in *input) partAt(node uint32) uint64 {
	return samplePart(sampleHash(uint64(in.tree.nodes[node].id)))
}

// fill tells the shares, null where nothing tells them.
func (h *history) fill(row *schemas.ProfileSessionStat) {
	kept, told, branches := 0, 0, 0
	for p := range parts {
		kept, told, branches = kept+h.kept[p], told+h.told[p], branches+h.branches[p]
	}
	row.Carry = share(min(kept<<h.in.skip, h.blocks), h.blocks)
	of := func(branches, told int) *float64 {
		switch {
		case h.turns == h.certain:
			return share(h.branched, h.turns)
		case told == 0:
			return nil
		}
		return val((float64(h.branched) + float64(h.turns-h.certain)*float64(branches)/float64(told)) / float64(h.turns))
	}
	if row.Branches = of(branches, told); row.Branches != nil {
		var without [parts]float64
		for p := range parts {
			if x := of(branches-h.branches[p], told-h.told[p]); x != nil {
				without[p] = *x
			} else {
				without[p] = *row.Branches
			}
		}
		row.BranchError = val(leftOutError(without))
	}
	if row.Carry != nil {
		var sums [parts]float64
		for p, n := range h.kept {
			sums[p] = float64(n) / float64(h.blocks)
		}
		row.CarryError = val(h.in.skip.sumError(sums))
	}
}
