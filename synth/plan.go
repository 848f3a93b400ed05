package synth

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"gonum.org/v1/gonum/mathext"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
)

// plan is a way to draw the arrivals of a group: a law of the gaps on the operational time of a rate curve of some
// resolution.
type plan struct {
	base   int64 // s
	dist   string
	law    func(t float64) gapLaw // at a moment of the profile's window
	chance func(mean float64) float64
}

func (p plan) String() string { return fmt.Sprintf("%s gaps on a rate of %d s", p.dist, p.base) }

// lawWindow is a law and when it stands, on the schedule's clock.
type lawWindow struct {
	from, to float64
	law      gapLaw
}

// fittedPlan takes the law that the profile chose on a clock, window by window; false when it chose none.
func (m *model) fittedPlan(g *groupModel, clock string, base int64) (plan, bool) {
	var windows []lawWindow
	dists := map[string]int{}
	for i := range g.tables.fits {
		f := &g.tables.fits[i]
		if f.Clock != clock || !f.Selected {
			continue
		}
		if law, ok := fittedGaps(f); ok {
			windows = append(windows, lawWindow{m.clock.seconds(f.WindowStart), m.clock.seconds(f.WindowEnd), law})
			dists[law.dist]++
		}
	}
	if windows == nil {
		return plan{}, false
	}
	slices.SortStableFunc(windows, func(a, b lawWindow) int { return cmp.Compare(a.from, b.from) })
	cvs := make([]float64, len(windows))
	for i, w := range windows {
		cvs[i] = w.law.cv2
	}
	slices.Sort(cvs)
	p := plan{base: base, dist: mostOf(dists), chance: renewalChance(cvs[len(cvs)/2])}
	p.law = func(t float64) gapLaw {
		at := sort.Search(len(windows), func(i int) bool { return windows[i].from > t }) - 1
		if len(windows) == 1 || at >= 0 && t < windows[at].to {
			return windows[max(at, 0)].law
		}
		return exponentialGaps
	}
	return p, true
}

func mostOf(counts map[string]int) (name string) {
	best := 0
	for s, n := range counts {
		if n > best || n == best && s < name {
			name, best = s, n
		}
	}
	return name
}

func poissonPlan(base int64) plan {
	return plan{base: base, dist: profile.Exponential, law: always(exponentialGaps), chance: poissonChance}
}

// weibullPlan has gaps that cluster more than exponential ones on a clock for which the profile fits no law.
func weibullPlan(base int64, shape float64) plan {
	scale := 1.0
	f := schemas.ProfileIATFit{Dist: profile.Weibull, P1: &shape, P2: &scale}
	law, _ := fittedGaps(&f)
	return plan{base: base, dist: fmt.Sprintf("%s (shape %g)", profile.Weibull, shape), law: always(law), chance: renewalChance(law.cv2)}
}

// searched lists laws for clocks on which the profile fits none: gaps that cluster, and batches of requests that come
// as one.
func (m *model) searched(g *groupModel) []plan {
	var out []plan
	width := g.tables.width() / 1_000_000
	for _, base := range []int64{10, 1} {
		if base < width || base*1_000_000 < m.p.Meta[0].TimeResolutionUs {
			continue
		}
		for _, shape := range []float64{0.8, 0.65, 0.5, 0.4} {
			out = append(out, weibullPlan(base, shape))
		}
		for _, share := range []float64{0.1, 0.2, 0.3, 0.4, 0.5} {
			for _, gap := range []float64{0.1, 0.02, 0.005, 0.001} {
				out = append(out, batchPlan(base, share, gap))
			}
		}
	}
	return out
}

// batchPlan has a share of gaps with a short mean (of the mean gap 1), the others exponential too.
func batchPlan(base int64, share, gap float64) plan {
	q, a, b := share, 1/gap, (1-share)/(1-share*gap)
	on := q*a + (1-q)*b
	back := a * b / on
	law := gapLaw{dist: profile.OnOff, p: [3]float64{on, a + b - on - back, back}, mean: 1, cv2: 2*(q/(a*a)+(1-q)/(b*b)) - 1}
	return plan{base: base, dist: fmt.Sprintf("batched (%.0f %% of gaps about 0) exponential", 100*share), law: always(law), chance: renewalChance(law.cv2)}
}

// candidates lists the ways to draw a group's arrivals, the profile's own law first.
func (m *model) candidates(g *groupModel) []plan {
	width := g.tables.width() / 1_000_000
	var out []plan
	add := func(p plan, ok bool) {
		if ok && p.base >= width && p.base%width == 0 && p.base*1_000_000 >= m.p.Meta[0].TimeResolutionUs {
			out = append(out, p)
		}
	}
	fitted := func(clock string, base int64) { p, ok := m.fittedPlan(g, clock, base); add(p, ok) }
	if m.p.Meta[0].Source == profile.SourceServeGen {
		fitted(profile.ClockRaw, 600)
	}
	fitted(profile.ClockOp60, 60)
	fitted(profile.ClockOp300, 300)
	add(poissonPlan(60), true)
	fitted(profile.ClockOp60, 10)
	add(poissonPlan(10), true)
	fitted(profile.ClockOp60, 1)
	add(poissonPlan(1), true)
	if out == nil {
		out = append(out, poissonPlan(max(width, 1)))
	}
	return out
}

// Choosing among the candidates: a later one must come nearer by a tenth.
const (
	planDraws  = 3
	planBetter = 0.9
	planNear   = 1.2  // what is nearer cannot be told from the profile's own arrivals
	leastError = 0.03 // of a logarithm: nearer than this is no merit
)

// choosePlans chooses for every group.
func (m *model) choosePlans(ctx context.Context) error {
	scores := make([]float64, len(m.groups))
	err := overGroups(ctx, m.groups, func(i int, g *groupModel) { g.plan, g.curve, scores[i] = m.chosen(g) })
	for i, g := range m.groups[:min(len(m.groups), 10)] {
		if !math.IsInf(scores[i], 1) {
			m.note("arrivals of %s: %s (distance %.2g; 1 = as near as two samples)", g, g.plan, scores[i])
		}
	}
	return err
}

// chosen draws from every candidate and takes the one whose arrivals come nearest to the profile's: the index of
// dispersion at every scale, the coefficient of variation, the quantiles and the shape of the gaps. The score is
// infinite where there was nothing to choose by.
func (m *model) chosen(g *groupModel) (best plan, c *curve, score float64) {
	score = math.Inf(1)
	candidates := m.candidates(g)
	told := len(candidates)
	for i := 0; i < len(candidates); i++ {
		p := candidates[i]
		day := dayCurve(m.clock, g.tables.rate, p.base, g.tables.multiTurn(), p.chance, g.shared)
		if day != nil && day.total() > 0 {
			if c == nil {
				best, c = p, day
				if len(candidates) == 1 || !g.tables.judged() {
					return best, c, score
				}
			}
			if s := m.score(g, p, day); s < planBetter*score {
				best, c, score = p, day, s
			}
			if score <= planNear {
				break
			}
		}
		if i == told-1 {
			candidates = append(candidates, m.searched(g)...)
		}
	}
	if c == nil { // bins too many or too wide: a flat rate
		c = &curve{}
		c.add(0, m.clock.length, g.rate, g.rate)
		best = poissonPlan(1)
	}
	return best, c, score
}

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
			add(gaps[max(int(math.Ceil(q.p*n))-1, 0)], *q.want, 1/n)
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
	shapes := newPlacer(g.own, seed, end, starts, m.requestCurve(g, 1, 1)).place(starts)
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
