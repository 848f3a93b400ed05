package analyze

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/rng"
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

// tally counts requests of one family: violating or not, with the condition or not.
type tally struct{ with, without, othersWith, others float64 }

// tallies are those of the families.
type tallies [families]tally

func (t *tallies) add(o *tallies, times float64) {
	for f := range t {
		t[f].with += times * o[f].with
		t[f].without += times * o[f].without
		t[f].othersWith += times * o[f].othersWith
		t[f].others += times * o[f].others
	}
}

// rate is bad / (bad + good), that of all requests where a resample holds none, 0 where there are none.
func rate(bad, good, allBad, allGood float64) float64 {
	switch {
	case bad+good > 0:
		return bad / (bad + good)
	case allBad+allGood > 0:
		return allBad / (allBad + allGood)
	}
	return 0
}

// leastCells is in how many cells of time a condition must have held for its blocks to be resampled; below that its requests
// are, one by one.
const leastCells = 12

// oneByOne resamples the requests with the condition.
func (t *tallies) oneByOne(r *rand.Rand) tallies {
	var out tallies
	for f := range t {
		n := t[f].with + t[f].othersWith
		if n == 0 {
			continue
		}
		out[f].with = distuv.Binomial{N: n, P: t[f].with / n, Src: r}.Rand()
		out[f].othersWith = n - out[f].with
	}
	return out
}

// unseen adds the violations without the condition that may be there although few or none were seen: so many that where none
// was, the upper quantiles of their number are those of a Poisson law (with none seen, 3.7 at 97.5 %).
func (t *tallies) unseen(r *rand.Rand, whole *tallies) {
	extra := r.ExpFloat64()
	violations := whole.sum()
	for f := range t {
		t[f].without += extra * (whole[f].with + whole[f].without) / (violations.with + violations.without)
	}
}

// explained is the attributable share: for each family 1 − P(violates | without) / P(violates), weighted by violations. The
// two rates are those of the tallies given for requests with the condition and for those without; how common the condition
// is stays as it was. NaN without violations.
func (t *tallies) explained(with, without *tallies) float64 {
	sum, n := 0.0, 0.0
	for f := range t {
		exposed, spared := t[f].with+t[f].othersWith, t[f].without+t[f].others
		if exposed+spared == 0 {
			continue
		}
		high, low := rate(with[f].with, with[f].othersWith, t[f].with, t[f].othersWith), rate(without[f].without, without[f].others, t[f].without, t[f].others)
		all := (exposed*high + spared*low) / (exposed + spared)
		violations := all * (exposed + spared)
		if all > 0 && spared > 0 && t[f].othersWith+t[f].others > 0 {
			sum += violations * (1 - low/all)
		}
		n += violations
	}
	return sum / n
}

// sum joins the families.
func (t *tallies) sum() tally {
	var all tally
	for f := range t {
		all.with, all.without = all.with+t[f].with, all.without+t[f].without
		all.othersWith, all.others = all.othersWith+t[f].othersWith, all.others+t[f].others
	}
	return all
}

// bucketActs is a bucket made ready: its acts with the family of what they violate, and the cell of time of each.
type bucketActs struct {
	acts     []int32 // of all scenes
	broke    []family
	cell     []int32
	cells    int
	perBlock int
	used     [families]bool // families with violations
	o        ExplainOptions
}

// gather collects the requests of a bucket that count.
func (x *explainer) gather(c cell) (*bucketActs, []limitRule) {
	rules := x.rulesOf(c)
	b := &bucketActs{o: x.o}
	for _, i := range c.rows {
		k := x.of[i]
		if !x.acts[k].measured {
			continue
		}
		f := x.broken(rules, i)
		b.acts, b.broke = append(b.acts, k), append(b.broke, f)
		b.used[f] = true
	}
	b.used[noFamily] = false
	return b, rules
}

func (b *bucketActs) violations() int {
	n := 0
	for _, f := range b.broke {
		if f != noFamily {
			n++
		}
	}
	return n
}

// cut lays cells of time over the bucket. A block of the bootstrap is six consecutive cells: at least a minute and ten times the time over which violations follow each other, at most a fifth of the run.
func (b *bucketActs) cut(x *explainer) {
	var total int64
	starts := make([]int64, len(x.scenes))
	for k, s := range x.scenes {
		starts[k] = total
		total += s.lastArrival() - s.from + 1
	}
	var bad stats.Bits
	for _, f := range b.broke {
		bad.Append(f != noFamily)
	}
	span := time.Duration(total) * time.Microsecond
	block := min(blockLength(bad.Tau(), span, len(b.acts)), max(5*time.Second, span/5))
	size := max(1, (block / cellsPerBlock).Microseconds())
	b.cells, b.perBlock = int((total-1)/size)+1, cellsPerBlock
	b.cell = make([]int32, len(b.acts))
	for j, k := range b.acts {
		a := &x.acts[k]
		b.cell[j] = int32((starts[a.scene] + a.at - x.scenes[a.scene].from) / size)
	}
}

// resample draws blocks of consecutive cells of the list with replacement, as many as it has cells, and calls visit with how
// often each was drawn. The list is a circle (Politis and Romano 1992), so that its ends are drawn as often as its middle.
func (b *bucketActs) resample(r *rand.Rand, cells []int32, visit func(cell int32, times float64)) {
	block := max(1, min(b.perBlock, len(cells)/4))
	times := make([]int32, len(cells))
	for range (len(cells) + block - 1) / block {
		start := r.IntN(len(cells))
		for k := range block {
			times[(start+k)%len(cells)]++
		}
	}
	for k, n := range times {
		if n > 0 {
			visit(cells[k], float64(n))
		}
	}
}

// interval is the percentile interval of a statistic over resamples; NaN values are left out.
func (b *bucketActs) interval(name string, statistic func(r *rand.Rand) float64) (lower, upper float64) {
	r := rng.New(b.o.Seed, "explain", name)
	var list []float64
	for range b.o.Resamples {
		if v := statistic(r); !math.IsNaN(v) {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return math.NaN(), math.NaN()
	}
	sort.Float64s(list)
	tail := (1 - b.o.Confidence) / 2
	at := func(p float64) float64 { return list[min(len(list)-1, int(p*float64(len(list))))] }
	return at(tail), at(1 - tail)
}

// explain explains one bucket.
func (x *explainer) explain(c cell) Explained {
	b, rules := x.gather(c)
	out := Explained{By: c.by, Limits: []string{}, Requests: len(b.acts), Violations: b.violations(), Verdict: ExplainTooFew,
		Phases: []PhaseShare{}, Causes: []Cause{}, Sentences: []string{}}
	for _, r := range rules {
		name := r.Name + " " + r.Limit.Text + bucketSuffix(r.By)
		if !slices.Contains(out.Limits, name) {
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
	out.Named = out.Share >= namedShare && out.Lower >= namedLower && out.Lift >= namedLift && out.With-out.Others >= namedExcess
	return out, true
}

// attributable is the interval of the attributable share. Requests with the condition and those without are resampled apart, as
// the groups of a cohort study are.
func (b *bucketActs) attributable(name string, byCell []tallies, whole *tallies) (lower, upper float64) {
	var exposed, spared []int32 // cells with requests that meet the condition, and with others
	for c := range byCell {
		t := byCell[c].sum()
		if t.with+t.othersWith > 0 {
			exposed = append(exposed, int32(c))
		}
		if t.without+t.others > 0 {
			spared = append(spared, int32(c))
		}
	}
	return b.interval(name, func(r *rand.Rand) float64 {
		var with, without tallies
		if len(exposed) < leastCells {
			with = whole.oneByOne(r)
		} else {
			b.resample(r, exposed, func(c int32, times float64) { with.add(&byCell[c], times) })
		}
		if len(spared) > 0 {
			b.resample(r, spared, func(c int32, times float64) { without.add(&byCell[c], times) })
			without.unseen(r, whole)
		}
		return whole.explained(&with, &without)
	})
}

// mostOf is the key with the most counts; of equals the first by name.
func mostOf(counts map[string]int) string {
	best := ""
	for _, k := range sortedKeys(counts) {
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
	for _, p := range sortedKeys(byPhase) {
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
	slices.SortStableFunc(out, func(a, b PhaseShare) int { return int(math.Copysign(1, float64(b.Share-a.Share))) })
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
		case a.Share == b.Share:
			return 0
		}
		return int(math.Copysign(1, float64(b.Share-a.Share)))
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
