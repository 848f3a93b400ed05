package profile

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/chart"
	"tailgate/schemas"
)

// curvePoints are the points of a fitted distribution.
const curvePoints = 160

func (p *Profile) gapsFigure() figure {
	f := figure{ID: "gaps", Title: "Gaps between arrivals"}
	g := p.shownGaps()
	if g == nil {
		f.Missing = "No gaps: fewer than two requests, or a profile of counts alone."
		return f
	}
	c := &chart.Chart{Title: "Distribution of the gaps", What: "measured quantiles of the gaps beside the laws fitted to them", XLabel: "seconds", YLabel: "share of gaps", LogX: true, Shares: true}
	seen := chart.Line{Name: "measured"}
	numbers := grid{Head: []string{"gaps", "mean (s)", "min", "p50", "p90", "p99", "max", "equal stamps", "CV", "CV from", "CV to", "CV, 60 s rate out", "CV, 300 s rate out"}}
	numbers.row(g.N, g.MeanS, g.MinS, g.P50S, g.P90S, g.P99S, g.MaxS, g.ZeroFrac, g.CVRaw, g.CVLo, g.CVHi, g.CVOp60, g.CVOp300)
	for _, q := range []struct {
		x     *float64
		share float64
	}{{g.MinS, 1 / float64(g.N)}, {g.P50S, .5}, {g.P90S, .9}, {g.P99S, .99}, {g.MaxS, 1}} {
		if q.x != nil && *q.x > 0 {
			seen.Add(*q.x, q.share)
		}
	}
	fits := total(p.IATFit)
	slices.SortStableFunc(fits, func(a, b schemas.ProfileIATFit) int { return chosenFirst(a.Selected) - chosenFirst(b.Selected) })
	if len(seen.X) > 0 {
		c.Lines = lawLines(fits, seen.X)
		c.Dots = []chart.Line{seen}
		f.draw(c)
	} else {
		f.Notes = append(f.Notes, "No distribution: every gap is below the clock's resolution.")
	}
	f.Tables = []grid{numbers}
	if acf := autocorrelations(g.ACF); len(acf.Rows) > 0 {
		f.Tables = append(f.Tables, acf)
	}
	if laws := lawTable(total(p.IATFit)); len(laws.Rows) > 0 {
		f.Tables = append(f.Tables, laws)
		f.Notes = append(f.Notes, "Laws by maximum likelihood; BIC chooses from 200 gaps on, KS is the size of the misfit. op60 and op300: gaps on the clock on which the rate of 60 or 300 s windows is steady, in expected arrivals.")
	} else {
		f.Notes = append(f.Notes, "No laws: fewer than two gaps, no spread, or a clock coarser than the mean gap.")
	}
	return f
}

func chosenFirst(selected bool) int {
	if selected {
		return 0
	}
	return 1
}

// lawLines are the likelihood fits on raw time over the range of the measured gaps.
func lawLines(fits []schemas.ProfileIATFit, seen []float64) []chart.Line {
	lo, hi := slices.Min(seen), slices.Max(seen)
	lo, hi = max(lo/2, hi/1e9), hi*2
	var out []chart.Line
	for _, fit := range fits {
		i := slices.IndexFunc(families(), func(f family) bool { return f.dist == fit.Dist })
		if fit.Clock != ClockRaw || fit.Method != MethodMLE || i < 0 {
			continue
		}
		cdf := families()[i].cdf(params{deref(fit.P1), deref(fit.P2), deref(fit.P3)})
		l := chart.Line{Name: fit.Dist}
		if fit.Selected {
			l.Name += " (chosen)"
		}
		for k := range curvePoints + 1 {
			x := lo * math.Pow(hi/lo, float64(k)/curvePoints)
			l.Add(x, cdf(x))
		}
		out = append(out, l)
	}
	return out
}

func lawTable(fits []schemas.ProfileIATFit) grid {
	g := grid{Head: []string{"clock", "law", "method", "chosen", "p1", "p1 from", "p1 to", "p2", "p3", "log-likelihood", "BIC", "KS"}}
	for _, f := range fits {
		chosen := ""
		if f.Selected {
			chosen = "chosen"
		}
		g.row(f.Clock, f.Dist, f.Method, chosen, f.P1, f.P1Lo, f.P1Hi, f.P2, f.P3, f.LogLik, f.BIC, f.KS)
	}
	return g
}

func autocorrelations(acf []float64) grid {
	g := grid{Title: "Autocorrelation of the gaps", Head: []string{"lag", "autocorrelation"}}
	for i, v := range acf {
		g.row(int64(i+1), v)
	}
	return g
}

func (p *Profile) dispersionFigure() figure {
	f := figure{ID: "idc", Title: "Dispersion of counts by scale"}
	c := &chart.Chart{Title: "Index of dispersion", What: "variance over mean of the arrivals in windows of each width, with 95 % intervals; 1 = Poisson",
		XLabel: "window, seconds", YLabel: "variance / mean", LogX: true, LogY: true, Limits: []chart.Limit{{Value: 1, Text: "Poisson"}}}
	l := chart.Line{}
	g := grid{Title: "Numbers", Head: []string{"window (s)", "windows", "mean", "variance", "IDC", "from", "to", "peak/mean"}}
	for _, d := range total(p.Dispersion) {
		g.row(float64(d.ScaleUs)/1e6, d.Windows, d.Mean, d.Var, d.IDC, d.IDCLo, d.IDCHi, d.PeakToMean)
		if d.IDC == nil || *d.IDC <= 0 {
			continue
		}
		x := float64(d.ScaleUs) / 1e6
		l.Add(x, *d.IDC)
		if d.IDCLo != nil && d.IDCHi != nil {
			c.Whiskers = append(c.Whiskers, chart.Whisker{X: x, Lo: *d.IDCLo, Hi: *d.IDCHi})
		}
	}
	if len(l.X) == 0 {
		f.Missing = fmt.Sprintf("No dispersion: no scale at or above the clock's resolution has %d windows with counts that differ.", MinWindows)
		f.Tables = []grid{g}
		return f
	}
	c.Lines = []chart.Line{l}
	f.Notes = []string{fmt.Sprintf("Unknown (—): fewer than %d whole windows, or below the clock's resolution. Bars: 95 %% intervals, up to 60 s.", MinWindows)}
	f.draw(c)
	f.Tables = []grid{g}
	return f
}
