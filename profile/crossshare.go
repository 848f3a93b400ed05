package profile

import (
	"cmp"
	"slices"

	"tailgate/schemas"
)

// crossShare counts the blocks that two tenants both use, the pairs with the most first; none when the trace has
// fewer than two tenants.
func (in *input) crossShare(key schemas.ProfileKey) []schemas.ProfileCrossShare {
	if len(in.labels.tenants.words) < 3 {
		return nil
	}
	holder := make([]uint32, len(in.tree.nodes)) // the first tenant of a block
	more := newHashSet()                         // the others, with the block
	var pairs [][2]uint32
	for i := range in.each(group{total: true}) {
		tenant := in.labels.groups[in.group[i]].tenant
		if tenant == 0 {
			continue
		}
		for at := in.leaf[i]; at != 0; at = in.tree.nodes[at].parent {
			block := in.tree.nodes[at].block
			switch {
			case holder[block] == 0:
				holder[block] = tenant
			case holder[block] != tenant && more.n < maxShared:
				if known := more.n; more.number(hashID(int64(block)<<32|int64(tenant))|1) == known {
					pairs = append(pairs, [2]uint32{block, tenant})
				}
			}
		}
	}
	return in.rankPairs(holder, pairs, key)
}

// rankPairs counts the blocks of each pair of tenants; others lists blocks with their second and later tenants.
func (in *input) rankPairs(holder []uint32, others [][2]uint32, key schemas.ProfileKey) []schemas.ProfileCrossShare {
	slices.SortFunc(others, func(a, b [2]uint32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	counts := map[[2]string]int64{}
	words := in.labels.tenants.words
	for i := 0; i < len(others); {
		end := i
		for end < len(others) && others[end][0] == others[i][0] {
			end++
		}
		holders := []uint32{holder[others[i][0]]}
		for _, o := range others[i:end] {
			for _, h := range holders {
				a, b := words[h], words[o[1]]
				counts[[2]string{min(a, b), max(a, b)}]++
			}
			holders = append(holders, o[1])
		}
		i = end
	}
	out := make([]schemas.ProfileCrossShare, 0, len(counts))
	rate := in.skip.rate()
	for p, n := range counts {
		out = append(out, schemas.ProfileCrossShare{ProfileKey: key, TenantA: p[0], TenantB: p[1], Blocks: n << in.skip, SampleRate: &rate,
			BlocksError: in.skip.drawError(float64(n))})
	}
	slices.SortFunc(out, func(a, b schemas.ProfileCrossShare) int {
		return cmp.Or(cmp.Compare(b.Blocks, a.Blocks), cmp.Compare(a.TenantA, b.TenantA), cmp.Compare(a.TenantB, b.TenantB))
	})
	return out[:min(len(out), maxPairs)]
}
