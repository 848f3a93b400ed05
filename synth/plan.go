package synth

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

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
