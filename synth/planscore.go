package synth

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mathext"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
	"tailgate/profile"
)

// judged tells that the profile has figures of the arrivals to compare with.
func (g *groupTables) judged() bool {
	return len(g.iat) == 1 && g.iat[0].CVRaw != nil && len(g.dispersion) > 0
}

// score is the root mean square of the log ratios of the figures of drawn arrivals and the profile's, each over the
// error that the difference of two samples has: 1 = as near as two hours of one process.
func (m *model) score(g *groupModel, p plan, c *curve) float64 {
	sum, n := 0.0, 0.0
	draws := planDraws
	if c.total() > 300_000 {
		draws = 1
	}
	for d := range draws {
		stamps := m.drawStamps(g, p, c, strconv.Itoa(d))
		if len(stamps) < 3 {
			continue
		}
		add := func(got, want, variance float64) { // variance of the logarithm of one of them
			if got > 0 && want > 0 {
				x := math.Log(got / want)
				sum, n = sum+x*x/(2*variance+leastError*leastError), n+1
			}
		}
		for i := range g.tables.dispersion {
			if row := &g.tables.dispersion[i]; row.IDC != nil {
				add(profile.Counts(stamps, row.ScaleUs).IDC(), *row.IDC, variance(row.IDCLo, row.IDCHi, 2/float64(row.Windows-1)))
			}
		}
		gapFigures(stamps, g.tables, add)
	}
	if n == 0 {
		return math.Inf(1)
	}
	return math.Sqrt(sum / n)
}

// gapFigures compares the gaps of stamps with a profile's: their variation, their quantiles, and by the law's shape how
// short the short ones are.
func gapFigures(stamps []int64, g *groupTables, add func(got, want, variance float64)) {
	row := &g.iat[0]
	gaps := make([]float64, len(stamps)-1)
	mean, squares, logs := 0.0, 0.0, 0.0
	for i := range gaps {
		gaps[i] = float64(stamps[i+1]-stamps[i]) / 1e6
		mean += gaps[i]
		squares += gaps[i] * gaps[i]
		logs += math.Log(max(gaps[i], 1e-6))
	}
	n := float64(len(gaps))
	mean /= n
	add(math.Sqrt(max(squares/n-mean*mean, 0))/mean, *row.CVRaw, variance(row.CVLo, row.CVHi, 1/n))
	for i := range g.fits {
		if f := &g.fits[i]; f.Clock == profile.ClockRaw && f.Dist == profile.Gamma && f.Method == profile.MethodMLE && f.P1 != nil {
			// ln(mean) − mean(ln) is all that the likelihood of a Gamma shape k knows: ln k − ψ(k).
			// It is about 1/k for small shapes, and so has their error.
			add(math.Log(mean)-logs/n, math.Log(*f.P1)-mathext.Digamma(*f.P1), variance(f.P1Lo, f.P1Hi, 1/n))
		}
	}
	slices.Sort(gaps)
	for _, q := range []struct {
		p    float64
		want *float64
	}{{.5, row.P50S}, {.9, row.P90S}, {.99, row.P99S}} {
		if q.want != nil {
			add(gaps[stats.Rank(len(gaps), q.p)-1], *q.want, 1/n)
		}
	}
}

// variance is that of the logarithm of a figure with a 95 % interval, or what stands in for it.
func variance(lo, hi *float64, otherwise float64) float64 {
	if lo == nil || hi == nil || !(*lo > 0) {
		return otherwise
	}
	sd := math.Log(*hi / *lo) / (2 * 1.96)
	return sd * sd
}

// drawStamps draws the arrivals of a group over the profile's window, sorted, later turns included.
func (m *model) drawStamps(g *groupModel, p plan, c *curve, draw string) []int64 {
	process := newProcess(c, p.law, rng.New(m.o.Seed, "synth", "trial", draw, g.tables.tenant, g.tables.class))
	var starts []int64
	for t, ok := process.next(); ok; t, ok = process.next() {
		starts = append(starts, micros(t))
	}
	if !g.tables.multiTurn() {
		return starts
	}
	seed := rng.Hash(g.seed, 3)
	end := micros(m.clock.length)
	shapes := newPlacer(g.own, seed, end, starts, m.requestCurve(g, 1, 1), nil).place(starts)
	all := slices.Clone(starts)
	for i, at := range starts {
		times := g.own.times(seed, shapes[i])
		for gap, ok := times.next(); ok; gap, ok = times.next() {
			if at += gap; at >= end {
				break
			}
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return all
}

// requestCurve is the rate of all requests of a group as the profile saw it, minute by minute, times k, over so many
// windows of the profile; nil where its bins are not that fine.
func (m *model) requestCurve(g *groupModel, k, windows float64) *curve {
	l := binCounts(m.clock, g.tables.rate, placeBinUs/1_000_000, false)
	if l == nil {
		return nil
	}
	c := &curve{}
	for i, r := range l.rates() {
		from := m.clock.origin + float64(i)*float64(l.width)
		c.add(max(from, 0), min(from+float64(l.width), m.clock.length), r*k, r*k)
	}
	if windows == 1 {
		return c
	}
	return c.tiled(m.clock.length, 0, windows*m.clock.length)
}
