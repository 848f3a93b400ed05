package profile

import (
	"cmp"
	"math"
	"slices"

	"tailgate/internal/chart"
	"tailgate/schemas"
)

// onLog is where a token count of 0 stands on a logarithmic axis.
const onLog = .5

func (p *Profile) lengthsFigure() figure {
	f := figure{ID: "lengths", Title: "Lengths"}
	for _, dim := range []string{DimInput, DimOutput} {
		c := &chart.Chart{Title: "Tokens of the " + dim, What: "share of requests by length: bins per sixteenth of an octave, and exact values", XLabel: "tokens", YLabel: "share of requests", LogX: true}
		g := grid{Title: "Numbers of the " + dim, Head: []string{"from", "below", "requests", "kind"}}
		var n int64
		for _, b := range total(p.Lengths) {
			if b.Dim == dim {
				n += b.N
			}
		}
		if n == 0 {
			f.Notes = append(f.Notes, "No "+dim+" lengths: every request failed or its length is not known.")
			continue
		}
		for _, b := range total(p.Lengths) {
			if b.Dim != dim {
				continue
			}
			kind, series := "bin", 0
			if b.IsAtom {
				kind, series = "exact", 1
			}
			g.row(b.LoTok, b.HiTok, b.N, kind)
			bar := chart.Bar{X0: max(float64(b.LoTok), onLog), X1: float64(b.HiTok), Y: float64(b.N) / float64(n), Series: series}
			if !b.IsAtom {
				bar.Y /= 16 * math.Log2(bar.X1/bar.X0) // else the bins' own widths would be seen
			}
			c.Bars = append(c.Bars, bar)
		}
		slices.SortStableFunc(c.Bars, func(a, b chart.Bar) int { return cmp.Compare(a.Series, b.Series) })
		f.draw(c, chart.SeriesKey(0, "bins, per 1/16 octave"), chart.SeriesKey(1, "exact values"))
		f.Tables = append(f.Tables, g)
	}
	if len(f.Charts) == 0 {
		f.Missing, f.Notes = "No lengths: every request failed or its length is not known.", nil
	}
	return f
}

func (p *Profile) jointFigure() figure {
	f := figure{ID: "joint", Title: "Lengths together"}
	cells := p.jointCells()
	if len(cells) == 0 {
		f.Missing = "No joint lengths: no request that did not fail tells both of its lengths."
		return f
	}
	most := int64(0)
	for _, j := range cells {
		most = max(most, j.N)
	}
	c := &chart.Chart{Title: "Input and output", What: "number of requests by both lengths, darker is more", XLabel: "input tokens", YLabel: "output tokens", LogX: true, LogY: true}
	g := grid{Title: "Numbers", Head: []string{"input from", "below", "output from", "below", "requests"}}
	for _, j := range cells {
		series := 0
		if spike(j.InLo, j.InHi) || spike(j.OutLo, j.OutHi) {
			series = 1
		}
		c.Cells = append(c.Cells, chart.Cell{X0: max(float64(j.InLo), onLog), X1: float64(j.InHi), Y0: max(float64(j.OutLo), onLog), Y1: float64(j.OutHi),
			Share: .1 + .9*math.Log1p(float64(j.N))/math.Log1p(float64(most)), Series: series})
		g.row(j.InLo, j.InHi, j.OutLo, j.OutHi, j.N)
	}
	slices.SortStableFunc(c.Cells, func(a, b chart.Cell) int { return cmp.Compare(a.Series, b.Series) })
	f.draw(c, chart.SeriesKey(0, "bins"), chart.SeriesKey(1, "an exact length"))
	for _, s := range total(p.JointStat) {
		stat := grid{Head: []string{"requests", "Spearman", "mutual information (nats)", "of a Gaussian", "Spearman of requests/min and mean output"}}
		stat.row(s.N, s.Spearman, s.MINats, s.MIGaussNats, s.SpearmanRateOut)
		f.Tables = append(f.Tables, stat)
	}
	f.Tables = append(f.Tables, g)
	return f
}

// spike tells an exact length from the bins, which have one value below 4 only.
func spike(lo, hi int32) bool { return lo >= 4 && hi-lo == 1 }

// jointCells are the cells of the total over all hours, in order of their borders.
func (p *Profile) jointCells() []schemas.ProfileJoint {
	sums := map[[4]int32]int64{}
	for _, j := range total(p.Joint) {
		sums[[4]int32{j.InLo, j.InHi, j.OutLo, j.OutHi}] += j.N
	}
	out := make([]schemas.ProfileJoint, 0, len(sums))
	for k, n := range sums {
		out = append(out, schemas.ProfileJoint{InLo: k[0], InHi: k[1], OutLo: k[2], OutHi: k[3], N: n})
	}
	slices.SortFunc(out, func(a, b schemas.ProfileJoint) int {
		return cmp.Or(cmp.Compare(a.InLo, b.InLo), cmp.Compare(a.InHi, b.InHi), cmp.Compare(a.OutLo, b.OutLo), cmp.Compare(a.OutHi, b.OutHi))
	})
	return out
}

func (p *Profile) turnsFigure() figure {
	f := figure{ID: "turns", Title: "Turns of a session"}
	rows := total(p.Sessions)
	if len(rows) == 0 {
		f.Missing = "No sessions are known."
		return f
	}
	c := &chart.Chart{Title: "Sessions by number of turns", What: "number of sessions by how many requests they have", XLabel: "turns", YLabel: "sessions", LogX: true, LogY: true}
	g := grid{Title: "Numbers", Head: []string{"turns", "sessions"}}
	for _, s := range rows {
		t := float64(s.Turns)
		c.Bars = append(c.Bars, chart.Bar{X0: t - .4, X1: t + .4, Y: float64(s.Sessions)})
		g.row(s.Turns, s.Sessions)
	}
	f.draw(c)
	for _, s := range total(p.SessionStat) {
		stat := grid{Head: []string{"sessions", "turns", "with several turns", "later turns", "shorter than before", "branches", "blocks carried on"}}
		stat.row(s.Sessions, s.Turns, s.MultiTurn, s.LaterTurns, s.NegativeGrowth, s.Branches, s.Carry)
		f.Tables = append(f.Tables, stat)
	}
	f.Tables = append(f.Tables, g)
	return f
}

func (p *Profile) turnGapsFigure() figure {
	f := figure{ID: "turn-gaps", Title: "Time from turn to turn"}
	c := &chart.Chart{Title: "Arrival to arrival", What: "share of turns that follow the turn before within a time, by place of the turn", XLabel: "seconds", YLabel: "share of turns", LogX: true, Shares: true}
	g := grid{Title: "Numbers", Head: []string{"turn", "from (s)", "below (s)", "turns"}}
	var names []string
	bins := map[string][]bin{}
	for _, s := range total(p.SessionGap) {
		g.row(s.Turn, float64(s.LoUs)/1e6, float64(s.HiUs)/1e6, s.N)
		if bins[s.Turn] == nil {
			names = append(names, s.Turn)
		}
		bins[s.Turn] = append(bins[s.Turn], bin{float64(s.LoUs) / 1e6, float64(s.HiUs) / 1e6, s.N})
	}
	if len(names) == 0 {
		f.Missing = "No times between turns: no session has a second turn."
		return f
	}
	for _, name := range names {
		c.Lines = append(c.Lines, cumulative("turn "+name, bins[name]))
	}
	f.draw(c)
	f.Tables = []grid{g}
	return f
}

// bin is a count of values above one edge and up to another.
type bin struct {
	from, to float64
	n        int64
}

// cumulative is the distribution function of bins in rising order, from the first edge on.
func cumulative(name string, bins []bin) chart.Line {
	l := chart.Line{Name: name}
	var all, below int64
	for _, b := range bins {
		all += b.n
	}
	l.Add(bins[0].from, 0)
	for _, b := range bins {
		below += b.n
		l.Add(b.to, float64(below)/float64(all))
	}
	return l
}

func (p *Profile) growthFigure() figure {
	f := figure{ID: "growth", Title: "Growth of the prompt"}
	rows := total(p.Growth)
	if len(rows) == 0 {
		f.Missing = "No growth: no session has a second turn of known lengths."
		return f
	}
	c := &chart.Chart{Title: "Tokens a turn adds", What: "share of later turns that add at most so many tokens to the prompt and the answer before; below 0 the history was cut",
		XLabel: "tokens added", YLabel: "share of later turns", SymX: true, Shares: true}
	g := grid{Title: "Numbers", Head: []string{"from", "below", "turns"}}
	var bins []bin
	for _, r := range rows {
		bins = append(bins, bin{float64(r.LoTok) - 1, float64(r.HiTok) - 1, r.N})
		g.row(r.LoTok, r.HiTok, r.N)
	}
	c.Lines = []chart.Line{cumulative("", bins)}
	f.draw(c)
	f.Tables = []grid{g}
	return f
}
