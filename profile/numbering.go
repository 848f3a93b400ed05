package profile

// numbering gives the nodes that a group uses small numbers, in order of first sight, without clearing anything
// between groups (Briggs and Torczon, "An efficient representation for sparse sets", 1993).
type numbering struct {
	sparse []uint32
	dense  []uint32
}

func (n *numbering) reset(nodes int) {
	if len(n.sparse) < nodes {
		n.sparse = make([]uint32, nodes)
	}
	n.dense = n.dense[:0]
}

// of is the number of a node; isNew tells that it was seen for the first time.
func (n *numbering) of(node uint32) (number uint32, isNew bool) {
	if k := n.sparse[node]; int(k) < len(n.dense) && n.dense[k] == node {
		return k, false
	}
	k := uint32(len(n.dense))
	n.sparse[node] = k
	n.dense = append(n.dense, node)
	return k, true
}
