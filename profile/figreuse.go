package profile

import (
	"cmp"
	"fmt"
	"slices"

	"tailgate/internal/chart"
	"tailgate/schemas"
)

func (p *Profile) hitsFigure() figure {
	f := figure{ID: "hits", Title: "Hits of a prefix cache"}
	rows := total(p.HitCurve)
	if len(rows) == 0 {
		f.Missing = "No hit curve: no request tells its blocks."
		return f
	}
	c := &chart.Chart{Title: "Hit ratio by size (LRU)", What: "share of blocks and of tokens that a cache of a size would hit", XLabel: "capacity, blocks", YLabel: "hit ratio", LogX: true, Shares: true}
	blocks, tokens := chart.Line{Name: "blocks"}, chart.Line{Name: "tokens"}
	g := grid{Title: "Numbers", Head: []string{"policy", "capacity (blocks)", "of blocks", "± of the sample", "of tokens", "mean of requests", "share of blocks sampled"}}
	for _, h := range rows {
		if h.CapacityBlocks == nil {
			if h.BlockHit != nil {
				c.Limits = []chart.Limit{{Value: *h.BlockHit, Text: "blocks, no limit to the cache"}}
			}
			g.row(h.Policy, "no limit", h.BlockHit, h.BlockHitError, h.TokenHit, h.RequestMeanHit, h.SampleRate)
			continue
		}
		g.row(h.Policy, *h.CapacityBlocks, h.BlockHit, h.BlockHitError, h.TokenHit, h.RequestMeanHit, h.SampleRate)
		if h.BlockHit != nil {
			x := float64(*h.CapacityBlocks)
			blocks.Add(x, *h.BlockHit)
			if e := deref(h.BlockHitError); e > 0 {
				c.Whiskers = append(c.Whiskers, chart.Whisker{X: x, Lo: max(*h.BlockHit-e, 0), Hi: min(*h.BlockHit+e, 1)})
			}
		}
		if h.TokenHit != nil {
			tokens.Add(float64(*h.CapacityBlocks), *h.TokenHit)
		}
	}
	for _, l := range []chart.Line{blocks, tokens} {
		if len(l.X) > 0 {
			c.Lines = append(c.Lines, l)
		}
	}
	if note := sampleNote(rows[0].SampleRate); note != "" {
		f.Notes = []string{note + " Bars: what the sample leaves of the 95 % interval."}
	}
	f.draw(c)
	f.Tables = []grid{g}
	return f
}

// sampleNote says that figures come from a sample of the blocks; "" where they do not.
func sampleNote(rate *float64) string {
	if rate == nil || *rate >= 1 {
		return ""
	}
	return fmt.Sprintf("From a sample of %s of the blocks: there are too many to follow all.", sig(*rate))
}

func (p *Profile) reuseFigure() figure {
	f := figure{ID: "reuse", Title: "From one use of a block to the next"}
	for _, unit := range []struct {
		name, title, label string
		scale              float64
	}{{UnitRequests, "Requests between two uses", "requests", 1}, {UnitUs, "Time between two uses", "seconds", 1e6}} {
		c := &chart.Chart{Title: unit.title, What: "share of uses of a block that come within a distance of the use before", XLabel: unit.label, YLabel: "share of reuses", LogX: true, Shares: true}
		g := grid{Title: "Numbers in " + unit.label, Head: []string{"from", "below", "reuses", "± of the sample"}}
		var bins []bin
		for _, r := range total(p.Reuse) {
			if r.Unit != unit.name {
				continue
			}
			g.row(float64(r.Lo)/unit.scale, float64(r.Hi)/unit.scale, r.N, r.NError)
			if note := sampleNote(r.SampleRate); note != "" {
				f.Notes = []string{note}
			}
			bins = append(bins, bin{(float64(r.Lo) - 1) / unit.scale, max(float64(r.Hi)-1, onLog) / unit.scale, r.N})
		}
		if len(bins) > 0 {
			c.Lines = []chart.Line{cumulative("", bins)}
			f.draw(c)
			f.Tables = append(f.Tables, g)
		}
	}
	if len(f.Charts) == 0 {
		f.Missing = "No reuse: no request tells its blocks, or no block is used twice."
	}
	return f
}

// maxGroupRows bounds the table of groups on the page.
const maxGroupRows = 200

// groupRow sums up a group.
type groupRow struct {
	key                        schemas.ProfileKey
	requests, failed, sessions int64
	tokensIn, tokensOut        int64
	cv, blockHit               *float64
	law                        string
}

func (p *Profile) groupsFigure() figure {
	f := figure{ID: "groups", Title: "Groups"}
	rows := p.groupRows()
	if len(rows) == 0 {
		f.Missing = "No groups: the profile was made of the total only."
		return f
	}
	f.Notes = []string{fmt.Sprintf("%d of tenant × class, by requests; tokens are those of requests that did not fail.", len(rows))}
	if len(rows) > maxGroupRows {
		f.Notes = append(f.Notes, fmt.Sprintf("The largest %d are shown; the tables have all.", maxGroupRows))
	}
	g := grid{Head: []string{"tenant", "class", "requests", "share", "failed", "sessions started", "input tokens", "output tokens", "CV of gaps", "law", "block hit, no limit"}}
	for _, r := range rows[:min(len(rows), maxGroupRows)] {
		g.row(label(r.key.Tenant), label(r.key.Class), r.requests, float64(r.requests)/float64(p.Meta[0].Requests), r.failed, r.sessions,
			r.tokensIn, r.tokensOut, r.cv, cmp.Or(r.law, "—"), r.blockHit)
	}
	f.Tables = []grid{g}
	return f
}

// groupRows are all groups, the largest first.
func (p *Profile) groupRows() []*groupRow {
	byKey := map[schemas.ProfileKey]*groupRow{}
	var out []*groupRow
	for _, r := range p.Rate {
		if isTotal(r.ProfileKey) || r.BinUs != binsUs[len(binsUs)-1] {
			continue
		}
		g := byKey[r.ProfileKey]
		if g == nil {
			g = &groupRow{key: r.ProfileKey}
			byKey[r.ProfileKey], out = g, append(out, g)
		}
		g.requests += r.Requests
		g.failed += r.Errors
		g.sessions += r.SessionsStarted
		g.tokensIn += r.TokensIn
		g.tokensOut += r.TokensOut
	}
	for _, r := range p.IAT {
		if g := byKey[r.ProfileKey]; g != nil {
			g.cv = r.CVRaw
		}
	}
	for _, r := range p.IATFit {
		if g := byKey[r.ProfileKey]; g != nil && r.Clock == ClockRaw && r.Selected {
			g.law = r.Dist
		}
	}
	for _, r := range p.HitCurve {
		if g := byKey[r.ProfileKey]; g != nil && r.CapacityBlocks == nil {
			g.blockHit = r.BlockHit
		}
	}
	slices.SortFunc(out, func(a, b *groupRow) int {
		return cmp.Or(cmp.Compare(b.requests, a.requests), cmp.Compare(a.key.Tenant, b.key.Tenant), cmp.Compare(a.key.Class, b.key.Class))
	})
	return out
}
