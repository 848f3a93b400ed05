package analyze

import (
	"context"
	"fmt"
	"math"
	"time"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// Warmup is what the start of a run looks like: MSER-5 (White, "An effective truncation heuristic for bias reduction in
// simulation output", 1997) on the requests in flight. It never moves the cut; it only keeps a cold start from
// being taken for a slow system. Of several runs it is the coldest.
type Warmup struct {
	CutS  Figure `json:"cut_s"`  // the warm-up in effect, since the start of the load
	MSERS Figure `json:"mser_s"` // d*: where MSER-5 would cut
	// Means of the requests in flight before and after d*, and of them per request offered.
	InflightRatio Figure `json:"inflight_ratio"`
	LoadRatio     Figure `json:"load_ratio"`
	ColdStart     bool   `json:"cold_start"` // d* is later than the cut, and much more was in flight before it
	AtHalf        bool   `json:"at_half"`    // d* is at half of the run: the start took longer than that can be told in
	// Verdict is that of the gate on the rows after d*, "" without a gate or a cold start.
	Verdict string `json:"verdict,omitempty"`
}

// coldRatio is how many times as many requests must be in flight before d* as after it, in all and per request offered.
const coldRatio = 1.3

// mserCellUs is the length of a cell of MSER-5: 5 s.
const mserCellUs = 5_000_000

// fewestCells is the shortest series that MSER-5 is taken of, 5 min.
const fewestCells = 60

// warmup checks the start of every period, and returns the check of the coldest; null when none is long enough.
func (v *view) warmup() *Warmup {
	var worst *Warmup
	for _, p := range v.periods {
		if w := v.warmupOf(p); w != nil && (worst == nil || w.colder(*worst)) {
			worst = w
		}
	}
	return worst
}

func (w Warmup) colder(o Warmup) bool {
	if w.ColdStart != o.ColdStart {
		return w.ColdStart
	}
	return w.MSERS > o.MSERS
}

func (v *view) warmupOf(p period) *Warmup {
	zero := v.zero(p)
	cell := max(mserCellUs, (p.until-zero)/maxGrid)
	n := int((p.until - zero) / cell)
	if n < fewestCells {
		return nil
	}
	o := v.occupied(p, zero, cell, n)
	inflight := o.means()
	d := mser(inflight)
	w := &Warmup{CutS: Figure(float64(p.start-zero) / 1e6), MSERS: Figure(float64(d) * float64(cell) / 1e6),
		InflightRatio: unknown, LoadRatio: unknown}
	if d == 0 {
		return w
	}
	at := zero + int64(d)*cell
	w.InflightRatio, w.LoadRatio = ratio(inflight, d), ratio(o.arrivals[:n], d)
	// More in flight because more was offered is no cold start.
	w.ColdStart = at > p.start && float64(w.InflightRatio) > coldRatio*max(1, float64(w.LoadRatio))
	w.AtHalf = w.ColdStart && d >= len(inflight)/2
	return w
}

// ratio is the mean of the first d values over that of the others, unknown where those are 0.
func ratio(y []float64, d int) Figure {
	if rest := stats.Mean(y[d:]); rest > 0 {
		return Figure(stats.Mean(y[:d]) / rest)
	}
	return unknown
}

// zero is when the load of the period began: the schedule's zero where a manifest tells it, else the first row.
func (v *view) zero(p period) int64 {
	return min(v.zeros[v.clocks[v.d.input.at(v.rows[p.from])]], p.start)
}

// mser returns how many leading values to leave out, at most half of them: the d that makes the variance of the mean of
// the others, Σ(y − ȳ)²/(n − d)², smallest.
func mser(y []float64) int {
	best, least := 0, math.Inf(1)
	sum, squares := 0.0, 0.0
	centre := y[len(y)-1] // sums of distances from it lose less to rounding
	for d := len(y) - 1; d >= 0; d-- {
		x := y[d] - centre
		sum, squares = sum+x, squares+x*x
		n := float64(len(y) - d)
		if d > len(y)/2 {
			continue
		}
		if m := max(0, squares-sum*sum/n) / (n * n); m <= least+1e-12*(1+least) {
			best, least = d, m
		}
	}
	return best
}

// occupancy collects the mean number of requests inside in cells of equal length, and the requests scheduled in them.
type occupancy struct {
	from, cell int64
	// An interval adds to the cells of its two ends in part, and to those between as a whole, which the running sum
	// of change adds.
	part, change []float64
	arrivals     []float64
}

func newOccupancy(from, cell int64, n int) *occupancy {
	return &occupancy{from: from, cell: cell, part: make([]float64, n+1), change: make([]float64, n+2), arrivals: make([]float64, n+1)}
}

// at returns the cell of a time and how much of it is left; times outside fall to the first or behind the last cell.
func (o *occupancy) at(t int64) (k int64, left float64) {
	t = min(max(t, o.from), o.from+int64(len(o.part)-1)*o.cell) - o.from
	return t / o.cell, float64(o.cell-t%o.cell) / float64(o.cell)
}

func (o *occupancy) add(x interval) {
	k, left := o.at(x.from)
	o.part[k] += left
	o.change[k+1]++
	k, left = o.at(x.to)
	o.part[k] -= left
	o.change[k+1]--
}

func (o *occupancy) means() []float64 {
	out, level := make([]float64, len(o.part)-1), 0.0
	for k := range out {
		level += o.change[k]
		out[k] = level + o.part[k]
	}
	return out
}

// occupied collects every row that shares the period's clock, warm-up rows included.
func (v *view) occupied(p period, from, cell int64, n int) *occupancy {
	d, o := v.d, newOccupancy(from, cell, n)
	clock := d.Inputs[d.input.at(v.rows[p.from])].clock
	for i := range int32(d.n) {
		if d.Inputs[d.input.at(i)].clock != clock {
			continue
		}
		k, _ := o.at(d.scheduled.at(i))
		o.arrivals[k]++
		if sent := d.sent.at(i); sent != noTime {
			to := d.done(i)
			if to == noTime {
				to = math.MaxInt64
			}
			o.add(interval{sent, to})
		}
	}
	return o
}

// text says what a cold start was seen by.
func (w *Warmup) text() string {
	s := fmt.Sprintf("cold start: %.3g times as much in flight in the first %.0f s as after them, %.0f s are left out as warm-up",
		float64(w.InflightRatio), float64(w.MSERS), float64(w.CutS))
	switch {
	case w.AtHalf:
		s += "; it takes half of the run: extend it, or repeat it warm"
	case w.Verdict != "":
		s += "; the gate on the rest: " + w.Verdict
	}
	return s
}

// settleWarmup judges the gate once more on the rows after d* where a cold start is seen, and takes back what only the
// start explains: a rule passes only when it passes with the cut in effect, and fails only when it fails after d* too.
// The coldest run's d* is the cut of all.
func (r *Report) settleWarmup(ctx context.Context, g *Gate) error {
	w := r.Warmup
	if w == nil || !w.ColdStart || len(r.Invalid) > 0 {
		return nil
	}
	after := *r
	after.Warmup, after.view = nil, newView(r.view.d, time.Duration(float64(w.MSERS)*1e9), r.view.override)
	if err := after.judge(ctx, g); err != nil {
		return err
	}
	w.Verdict = after.Gate.Verdict
	for i := range r.Gate.Rules {
		w.settle(&r.Gate.Rules[i], after.Gate.Rules[i].Verdict)
	}
	r.Gate.Verdict = worstOf(r.Gate.Rules)
	return nil
}

// settle decides a rule whose verdict on the rows after the cold start is later.
func (w *Warmup) settle(r *RuleReport, later string) {
	failed := r.Verdict == schemas.VerdictFail
	if !failed && r.Verdict != schemas.VerdictInconclusive {
		return
	}
	why := fmt.Sprintf("cold start seen, %.3g times as much in flight in the first %.3g s", float64(w.InflightRatio), float64(w.MSERS))
	switch {
	case w.AtHalf:
		inconclusive(r, why+", which is half of the run: extend it, or repeat it warm; with the start: "+r.Reason)
	case later == schemas.VerdictPass:
		inconclusive(r, why+", the rest passes: repeat it warm; with the start: "+r.Reason)
	case failed && later == schemas.VerdictInconclusive:
		inconclusive(r, why+", the rest is too little to tell: repeat it warm; with the start: "+r.Reason)
	case failed:
		r.Reason += "; " + why + ", and the rest fails too"
	}
}

// worstOf is the verdict of a gate with these rules.
func worstOf(rules []RuleReport) string {
	worst := schemas.VerdictPass
	for _, rule := range rules {
		if severity[rule.Verdict] > severity[worst] {
			worst = rule.Verdict
		}
	}
	return worst
}
