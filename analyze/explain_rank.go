package analyze

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"tailgate/internal/stats"
)

// A cause is named when it accounts for so large a share of the violations, by the lower bound too, and requests with the
// condition violate so many times as often as the others.
const (
	namedShare = .2
	namedLower = .1
	namedLift  = 2
	// namedExcess is how much more common the condition must be among violations than among the others: one that nearly all
	// requests meet is none.
	namedExcess = .2
	// nearBest is the part of the largest share from which a cause further out comes before it.
	nearBest = .8
)

// explain explains one bucket.
func (x *explainer) explain(c cell) Explained {
	b, rules := x.gather(c)
	out := Explained{By: c.by, Limits: []string{}, Requests: len(b.acts), Violations: b.violations(), Verdict: ExplainTooFew,
		Phases: []PhaseShare{}, Causes: []Cause{}, Sentences: []string{}}
	for _, r := range rules {
		name := r.Name + " " + r.Limit.Text + bucketSuffix(r.By)
		if slices.ContainsFunc(c.rows, r.in) && !slices.Contains(out.Limits, name) {
			out.Limits = append(out.Limits, name)
		}
	}
	for j, k := range b.acts {
		if b.broke[j] != noFamily && !x.acts[k].ok {
			out.Failed++
		}
	}
	if out.Violations < leastViolations {
		out.Sentences = append(out.Sentences, tooFewText(out, len(rules)))
		return out
	}
	b.cut(x)
	phases := x.phasesOf(b)
	out.Phases = b.phaseShares(phases)
	for _, s := range x.suspects {
		if cause, ok := x.weigh(b, s, phases); ok {
			out.Causes = append(out.Causes, cause)
		}
	}
	out.Causes = ranked(out.Causes)
	out.Verdict = ExplainNothing
	if len(out.Causes) > 0 && out.Causes[0].Named {
		out.Verdict = ExplainNamed
	}
	out.Sentences = out.say()
	return out
}

// weigh measures one suspect in a bucket; false when no violation meets its condition.
func (x *explainer) weigh(b *bucketActs, s *suspect, phases []string) (Cause, bool) {
	byCell := make([]tallies, b.cells)
	counts := map[string]int{}
	for j, k := range b.acts {
		a := &x.acts[k]
		sc, t := x.scenes[a.scene], &byCell[b.cell[j]]
		if f := b.broke[j]; f != noFamily {
			if s.holds(sc, a, f) {
				t[f].with++
				counts[phases[j]]++
			} else {
				t[f].without++
			}
			continue
		}
		for f := firstFamily; f < families; f++ {
			switch {
			case !b.used[f]:
			case s.holds(sc, a, f):
				t[f].othersWith++
			default:
				t[f].others++
			}
		}
	}
	var whole tallies
	for c := range byCell {
		whole.add(&byCell[c], 1)
	}
	all := whole.sum()
	if all.with == 0 {
		return Cause{}, false
	}
	lower, upper := b.attributable(s.cause+" "+s.target, byCell, &whole)
	out := Cause{Cause: s.cause, Target: s.target, Text: s.text, Share: Figure(whole.explained(&whole, &whole)), Lower: Figure(lower), Upper: Figure(upper),
		With: Figure(all.with / (all.with + all.without)), Others: unknown, Lift: unknown, Phase: mostOf(counts)}
	if n := all.othersWith + all.others; n > 0 {
		out.Others = Figure(all.othersWith / n)
	}
	if rest := all.without + all.others; rest > 0 {
		out.Lift = Figure(all.with / (all.with + all.othersWith) / (all.without / rest))
	}
	out.Named = out.convicts()
	return out, true
}

// convicts tells whether the figures are enough to name the cause. Where all requests violate there is nothing to compare with.
func (c *Cause) convicts() bool {
	return c.Share >= namedShare && c.Lower >= namedLower && c.Lift >= namedLift && c.With-c.Others >= namedExcess
}

// mostOf is the key with the most counts; of equals the first by name.
func mostOf(counts map[string]int) string {
	best := ""
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		if best == "" || counts[k] > counts[best] {
			best = k
		}
	}
	return best
}

// phasesOf is the phase of each violation, "" for the other requests.
func (x *explainer) phasesOf(b *bucketActs) []string {
	out := make([]string, len(b.acts))
	for j, k := range b.acts {
		if f := b.broke[j]; f != noFamily {
			a := &x.acts[k]
			out[j] = x.scenes[a.scene].phase(a, f)
		}
	}
	return out
}

// phaseShares are the shares of the phases with their intervals, the largest first.
func (b *bucketActs) phaseShares(phases []string) []PhaseShare {
	byPhase := map[string][]float64{}
	total := make([]float64, b.cells)
	for j, p := range phases {
		if p == "" {
			continue
		}
		if byPhase[p] == nil {
			byPhase[p] = make([]float64, b.cells)
		}
		byPhase[p][b.cell[j]]++
		total[b.cell[j]]++
	}
	var cells []int32 // with violations
	for c, n := range total {
		if n > 0 {
			cells = append(cells, int32(c))
		}
	}
	var out []PhaseShare
	for _, p := range slices.Sorted(maps.Keys(byPhase)) {
		part, all := 0.0, 0.0
		for _, c := range cells {
			part, all = part+byPhase[p][c], all+total[c]
		}
		lower, upper := b.interval("phase "+p, func(r *rand.Rand) float64 {
			part, all := 0.0, 0.0
			b.resample(r, cells, func(c int32, times float64) { part, all = part+times*byPhase[p][c], all+times*total[c] })
			return part / all
		})
		// Where all or none are in few cells, resampling cannot differ: the exact bounds of a share hold at least.
		tail := 1 - (1-b.o.Confidence)/2
		lower, upper = min(lower, stats.Lower(all, part/all, tail)), max(upper, stats.Upper(all, part/all, tail))
		out = append(out, PhaseShare{p, Figure(part / all), Figure(lower), Figure(upper)})
	}
	slices.SortStableFunc(out, func(a, b PhaseShare) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// ranked orders causes: named ones by their share, but of those with nearly the largest share left the outermost first; then
// the others by their share.
func ranked(list []Cause) []Cause {
	slices.SortStableFunc(list, func(a, b Cause) int {
		switch {
		case a.Named != b.Named && a.Named:
			return -1
		case a.Named != b.Named:
			return 1
		}
		return cmp.Compare(b.Share, a.Share)
	})
	for k := 0; k < len(list) && list[k].Named; k++ {
		best := k
		for j := k + 1; j < len(list) && list[j].Named; j++ {
			if list[j].Share >= nearBest*list[k].Share && slices.Index(tiers, list[j].Cause) < slices.Index(tiers, list[best].Cause) {
				best = j
			}
		}
		first := list[best]
		copy(list[k+1:best+1], list[k:best])
		list[k] = first
	}
	return list
}

// bucketSuffix names a rule's bucket behind its limit.
func bucketSuffix(t Tuple) string {
	if len(t) == 0 {
		return ""
	}
	return " (" + t.String() + ")"
}
