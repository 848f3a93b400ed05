package synth

import (
	"cmp"
	"slices"

	"tailgate/profile"
	"tailgate/schemas"
)

// groupTables are the rows of one tenant × class of a profile.
type groupTables struct {
	tenant, class string // profile.All where the profile has no such parts
	rate          []schemas.ProfileRate
	iat           []schemas.ProfileIAT
	fits          []schemas.ProfileIATFit
	dispersion    []schemas.ProfileDispersion
	lengths       []schemas.ProfileLength
	joint         []schemas.ProfileJoint
	turns         []schemas.ProfileSession
	sessions      []schemas.ProfileSessionStat
	gaps          []schemas.ProfileSessionGap
	growth        []schemas.ProfileGrowth
	roots         []schemas.ProfileRoot
	hits          []schemas.ProfileHitCurve
}

// groupsOf splits a profile into its tenant × class groups, in their order; the total stands alone where it is the
// only one.
func groupsOf(p *profile.Profile) (groups []*groupTables, total *groupTables) {
	at := map[[2]string]*groupTables{}
	of := func(k schemas.ProfileKey) *groupTables {
		key := [2]string{k.Tenant, k.Class}
		g, ok := at[key]
		if !ok {
			g = &groupTables{tenant: k.Tenant, class: k.Class}
			at[key] = g
		}
		return g
	}
	share(p.Rate, of, func(g *groupTables) *[]schemas.ProfileRate { return &g.rate })
	share(p.IAT, of, func(g *groupTables) *[]schemas.ProfileIAT { return &g.iat })
	share(p.IATFit, of, func(g *groupTables) *[]schemas.ProfileIATFit { return &g.fits })
	share(p.Dispersion, of, func(g *groupTables) *[]schemas.ProfileDispersion { return &g.dispersion })
	share(p.Lengths, of, func(g *groupTables) *[]schemas.ProfileLength { return &g.lengths })
	share(p.Joint, of, func(g *groupTables) *[]schemas.ProfileJoint { return &g.joint })
	share(p.Sessions, of, func(g *groupTables) *[]schemas.ProfileSession { return &g.turns })
	share(p.SessionStat, of, func(g *groupTables) *[]schemas.ProfileSessionStat { return &g.sessions })
	share(p.SessionGap, of, func(g *groupTables) *[]schemas.ProfileSessionGap { return &g.gaps })
	share(p.Growth, of, func(g *groupTables) *[]schemas.ProfileGrowth { return &g.growth })
	share(p.Roots, of, func(g *groupTables) *[]schemas.ProfileRoot { return &g.roots })
	share(p.HitCurve, of, func(g *groupTables) *[]schemas.ProfileHitCurve { return &g.hits })
	total = at[[2]string{profile.All, profile.All}]
	for key, g := range at {
		if key != [2]string{profile.All, profile.All} && g.requests() > 0 {
			groups = append(groups, g)
		}
	}
	if groups == nil && total != nil {
		groups = []*groupTables{total}
	}
	slices.SortFunc(groups, func(a, b *groupTables) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.class, b.class))
	})
	return groups, total
}

func share[T interface{ Key() schemas.ProfileKey }](rows []T, of func(schemas.ProfileKey) *groupTables, to func(*groupTables) *[]T) {
	for _, r := range rows {
		list := to(of(r.Key()))
		*list = append(*list, r)
	}
}

// requests is the number of requests of the group.
func (g *groupTables) requests() int64 {
	width, n := g.width(), int64(0)
	for i := range g.rate {
		if g.rate[i].BinUs == width {
			n += g.rate[i].Requests
		}
	}
	return n
}

// width is the narrowest bin of the group's rate curve, 0 without one.
func (g *groupTables) width() int64 {
	width := int64(0)
	for i := range g.rate {
		if b := g.rate[i].BinUs; width == 0 || b < width {
			width = b
		}
	}
	return width
}

// multiTurn tells that some session has more than one request.
func (g *groupTables) multiTurn() bool {
	return slices.ContainsFunc(g.turns, func(s schemas.ProfileSession) bool { return s.Turns > 1 && s.Sessions > 0 })
}

// label is a tenant or class as a row has it: null for none.
func label(s string) *string {
	if s == "" || s == profile.All {
		return nil
	}
	return &s
}
