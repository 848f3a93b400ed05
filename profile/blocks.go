package profile

import (
	"cmp"
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
	maxRoots = 100
	maxPairs = 100
)

// usage follows the blocks of a group: how often each is used, and how long it rests between two uses.
type usage struct {
	in      *input
	g       group
	uses    map[int64]int64
	resting map[string]map[int64]int64 // by unit: lower border of the bin → uses
}

func (in *input) use(g group) *usage {
	u := &usage{in: in, g: g, uses: map[int64]int64{}, resting: map[string]map[int64]int64{UnitRequests: {}, UnitUs: {}}}
	type seen struct{ at, request int64 }
	last := map[int64]seen{}
	request := int64(0)
	for r := range in.each(g) {
		for _, id := range r.HashIDs {
			if before, ok := last[id]; ok && before.request < request {
				lo, _ := logBin(request - before.request)
				u.resting[UnitRequests][lo]++
				gap := r.ScheduledUs - before.at
				if lo, _ = logBin(gap); gap < in.resolution {
					lo = 0
				}
				u.resting[UnitUs][lo]++
			}
			if last[id].request < request || u.uses[id] == 0 {
				u.uses[id]++
			}
			last[id] = seen{r.ScheduledUs, request}
		}
		request++
	}
	return u
}

// popularity counts blocks by uses; a request that holds a block twice uses it once.
func (u *usage) popularity(key schemas.ProfileKey) []schemas.ProfilePopularity {
	bins := map[int64]*schemas.ProfilePopularity{}
	for _, n := range u.uses {
		lo, hi := logBin(n)
		b, ok := bins[lo]
		if !ok {
			b = &schemas.ProfilePopularity{ProfileKey: key, LoUses: lo, HiUses: hi}
			bins[lo] = b
		}
		b.Blocks++
		b.Uses += n
	}
	out := make([]schemas.ProfilePopularity, 0, len(bins))
	for _, b := range bins {
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b schemas.ProfilePopularity) int { return cmp.Compare(a.LoUses, b.LoUses) })
	return out
}

// reuse is the histogram of the distances from one use of a block to its next.
func (u *usage) reuse(key schemas.ProfileKey) []schemas.ProfileReuse {
	var out []schemas.ProfileReuse
	for unit, bins := range u.resting {
		for lo, n := range bins {
			_, hi := logBin(lo)
			if unit == UnitUs && lo == 0 {
				hi = max(hi, u.in.resolution)
			}
			out = append(out, schemas.ProfileReuse{ProfileKey: key, Unit: unit, Lo: lo, Hi: hi, N: n})
		}
	}
	slices.SortFunc(out, func(a, b schemas.ProfileReuse) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Lo, b.Lo))
	})
	return out
}

// roots are the first blocks that most requests begin with.
func (u *usage) roots(key schemas.ProfileKey) []schemas.ProfileRoot {
	requests, sessions := map[int64]int64{}, map[int64]int64{}
	for r := range u.in.each(u.g) {
		if len(r.HashIDs) > 0 {
			requests[r.HashIDs[0]]++
		}
	}
	for _, rows := range u.g.sessions {
		if ids := u.in.t.Rows[rows[0]].HashIDs; len(ids) > 0 {
			sessions[ids[0]]++
		}
	}
	var top []schemas.ProfileRoot
	for id, n := range requests {
		if n > 1 {
			top = append(top, schemas.ProfileRoot{ProfileKey: key, BlockID: id, Requests: n, Sessions: sessions[id]})
		}
	}
	slices.SortFunc(top, func(a, b schemas.ProfileRoot) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.BlockID, b.BlockID))
	})
	top = top[:min(len(top), maxRoots)]
	for i := range top {
		top[i].Rank = int32(i + 1)
	}
	u.depths(top)
	return top
}

// depths tells how many leading blocks at least half of a root's requests have in common. Ids are chained, so the
// block that half of them hold at a place stands for all before it.
func (u *usage) depths(top []schemas.ProfileRoot) {
	at := map[int64]int{}
	for i := range top {
		at[top[i].BlockID] = i
	}
	counts := make([][]map[int64]int64, len(top))
	const deepest = 64
	for r := range u.in.each(u.g) {
		if len(r.HashIDs) == 0 {
			continue
		}
		i, ok := at[r.HashIDs[0]]
		if !ok {
			continue
		}
		for d := 0; d < min(len(r.HashIDs), deepest); d++ {
			if len(counts[i]) == d {
				counts[i] = append(counts[i], map[int64]int64{})
			}
			counts[i][d][r.HashIDs[d]]++
		}
	}
	for i := range top {
		for _, c := range counts[i] {
			most := int64(0)
			for _, n := range c {
				most = max(most, n)
			}
			if 2*most < top[i].Requests {
				break
			}
			top[i].DepthBlocks++
		}
	}
}

// crossShare counts the blocks that two tenants both use, the pairs with the most first; none when the trace has
// fewer than two tenants.
func (in *input) crossShare(key schemas.ProfileKey) []schemas.ProfileCrossShare {
	names := map[string]int{}
	var tenants []string
	holders := map[int64][]int{}
	for i := range in.t.Rows {
		r := &in.t.Rows[i]
		if r.Tenant == nil {
			continue
		}
		k, ok := names[*r.Tenant]
		if !ok {
			k = len(tenants)
			names[*r.Tenant] = k
			tenants = append(tenants, *r.Tenant)
		}
		for _, id := range r.HashIDs {
			if h := holders[id]; len(h) == 0 || h[len(h)-1] != k && !slices.Contains(h, k) {
				holders[id] = append(h, k)
			}
		}
	}
	counts := map[[2]string]int64{}
	for _, h := range holders {
		for i := range h {
			for _, other := range h[i+1:] {
				a, b := tenants[h[i]], tenants[other]
				counts[[2]string{min(a, b), max(a, b)}]++
			}
		}
	}
	out := make([]schemas.ProfileCrossShare, 0, len(counts))
	for p, n := range counts {
		out = append(out, schemas.ProfileCrossShare{ProfileKey: key, TenantA: p[0], TenantB: p[1], Blocks: n})
	}
	slices.SortFunc(out, func(a, b schemas.ProfileCrossShare) int {
		return cmp.Or(cmp.Compare(b.Blocks, a.Blocks), cmp.Compare(a.TenantA, b.TenantA), cmp.Compare(a.TenantB, b.TenantB))
	})
	return out[:min(len(out), maxPairs)]
}
