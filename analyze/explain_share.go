package analyze

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
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

// cut lays cells of time over the bucket. A block of the bootstrap is six consecutive cells: at least a minute and ten times
// the time over which violations follow each other, at most a fifth of the run.
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
