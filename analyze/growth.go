package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// noGrowth is the only limit of queue_growth.
const noGrowth = "no_sustained_growth"

// The queue-growth rule: on client in-flight requests every 5 s, growth is the Theil–Sen slope of 30 s means times
// the length over the mean, floor the least of the last quarter over the mean of the first. Both thresholds are
// exceeded in 0 % of 20-minute runs at 85 % of capacity, and in about 80 % of those at 102 %.
const (
	gridUs        = 5_000_000
	gridPerMean   = 6
	growthLimit   = 0.10
	floorLimit    = 0.80
	growthMinutes = 20
	maxGrid       = 12_000 // points of the grid, which is coarser beyond 16 hours
)

// interval is the time that one request spent somewhere, µs.
type interval struct{ from, to int64 }

// inflight returns when requests of the period's clock were on the way, warm-up rows included: they are load too.
// A request that never ended stays until the end.
func (v *view) inflight(p period) []interval {
	return v.intervals(p, func(i int32) interval {
		to := v.d.done(i)
		if to == noTime {
			to = math.MaxInt64
		}
		return interval{v.d.sent.at(i), to}
	})
}

// intervals collects f of every sent row that shares the period's clock.
func (v *view) intervals(p period, f func(i int32) interval) []interval {
	d := v.d
	clock := d.Inputs[d.input.at(v.rows[p.from])].clock
	var out []interval
	for i := range int32(d.n) {
		if d.sent.at(i) != noTime && d.Inputs[d.input.at(i)].clock == clock {
			if x := f(i); x.to > x.from {
				out = append(out, x)
			}
		}
	}
	return out
}

// levels counts the open intervals at from, from+step, … up to to.
func levels(open []interval, from, to, step int64) []float64 {
	starts, ends := make([]int64, len(open)), make([]int64, len(open))
	for i, x := range open {
		starts[i], ends[i] = x.from, x.to
	}
	slices.Sort(starts)
	slices.Sort(ends)
	out := make([]float64, 0, max(0, (to-from)/step)+1)
	s, e := 0, 0
	for at := from; at <= to; at += step {
		for s < len(starts) && starts[s] <= at {
			s++
		}
		for e < len(ends) && ends[e] <= at {
			e++
		}
		out = append(out, float64(s-e))
	}
	return out
}

// edge is where an interval opens, step 1, or closes, step −1.
type edge struct {
	at   int64
	step int
}

// edgesOf are the edges of intervals in order of time; of one instant, those that close come first.
func edgesOf(open []interval) []edge {
	edges := make([]edge, 0, 2*len(open))
	for _, x := range open {
		edges = append(edges, edge{x.from, 1}, edge{x.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), a.step-b.step) })
	return edges
}

// deepest is the largest number of intervals open at one time in [from, to].
func deepest(open []interval, from, to int64) int {
	edges := edgesOf(open)
	most, now := 0, 0
	for k, e := range edges {
		now += e.step
		lasts := k+1 == len(edges) || edges[k+1].at >= from // still so when the period begins
		if e.at <= to && lasts {
			most = max(most, now)
		}
	}
	return most
}

// growth returns the two figures of the queue-growth rule for one series.
func growth(inflight []float64) (grown, floor float64) {
	var means []float64
	for c := range slices.Chunk(inflight, gridPerMean) {
		if len(c) == gridPerMean {
			means = append(means, stats.Mean(c))
		}
	}
	if all := stats.Mean(inflight); all > 0 {
		grown = stats.TheilSen(means) * float64(len(means)) / all
	}
	quarter := len(inflight) / 4
	if quarter == 0 {
		return grown, 0
	}
	least := slices.Min(inflight[len(inflight)-quarter:])
	return grown, least / max(1, stats.Mean(inflight[:quarter]))
}

// judgeGrowth judges queue_growth: the run grows when one of its periods does.
func (v *view) judgeGrowth(r *RuleReport) {
	if len(v.periods) == 0 {
		inconclusive(r, "insufficient: no data")
		return
	}
	longest, worst := 0.0, grown{excess: math.Inf(-1)}
	near := ""
	for _, p := range v.periods {
		minutes := float64(p.end-p.start) / 6e7
		longest = max(longest, minutes)
		bursts := v.burstsOf(p)
		if !nearly(minutes, growthMinutes) {
			continue
		}
		if near = v.tooNear(p, bursts); near != "" {
			continue
		}
		step := max(gridUs, (p.last-p.start)/maxGrid)
		worst = worst.orWorse(grownBy("in-flight requests", levels(v.inflight(p), p.start, p.last, step), len(bursts) > 0))
		if queue := v.waiting(p, p.start, p.last, step); queue != nil {
			worst = worst.orWorse(grownBy("requests waiting at the servers", queue, len(bursts) > 0))
		}
	}
	switch {
	case math.IsInf(worst.excess, -1) && near != "":
		inconclusive(r, "cannot tell: "+near)
		return
	case math.IsInf(worst.excess, -1):
		inconclusive(r, fmt.Sprintf("cannot tell: %s min, the rule needs %d", minutesText(longest), growthMinutes))
		r.NeedsMinutes = Figure(math.Ceil(growthMinutes - longest))
		return
	}
	r.Observed, r.Reason, r.Verdict = Figure(worst.growth), worst.text, schemas.VerdictPass
	if worst.excess > 1 {
		r.Verdict = schemas.VerdictFail
	}
}

// grown is what the rule makes of one series: growing when excess > 1.
type grown struct {
	growth, excess float64
	text           string
}

func (g grown) orWorse(o grown) grown {
	if o.excess > g.excess {
		return o
	}
	return g
}

// grownBy applies the rule to one series. With declared bursts it is the staircase form: the low level (the 10 %
// quantile) of the second third above that of the first, and of the last third above 0.9 times the second's, beside the
// floor; bursts that go back leave low levels where they were.
func grownBy(what string, series []float64, bursts bool) grown {
	rise, floor := growth(series)
	g := grown{growth: rise, excess: min(rise/growthLimit, floor/floorLimit)}
	g.text = fmt.Sprintf("%s changed by %s of their mean, the last quarter stays above %s of the first", what, percent(rise), percent(floor))
	if !bursts {
		return g
	}
	third := len(series) / 3
	var low [3]float64
	for i := range low {
		part := slices.Clone(series[i*third : (i+1)*third])
		slices.Sort(part)
		low[i] = part[stats.Rank(len(part), .1)-1]
	}
	g.excess = 0
	if low[1] > low[0] && low[2] > .9*low[1] {
		g.excess = floor / floorLimit
	}
	g.text = fmt.Sprintf("with declared bursts, %s had low levels of %.4g, %.4g and %.4g in the thirds of the run, the last quarter stays above %s of the first",
		what, low[0], low[1], low[2], percent(floor))
	return g
}

// burstsOf are the declared bursts of the period's run.
func (v *view) burstsOf(p period) []schemas.BurstSpan {
	clock := v.d.Inputs[v.d.input.at(v.rows[p.from])].clock
	for _, in := range v.d.Inputs {
		if in.clock == clock && in.Manifest != nil && in.Manifest.Run != nil && len(in.Manifest.Run.Bursts) > 0 {
			return in.Manifest.Run.Bursts
		}
	}
	return nil
}

// burstLoad is the share of capacity at which the time that a burst takes to drain is reckoned; the true one is what a
// search looks for.
const burstLoad = .75

// tooNear says why a run that ends soon after a declared burst tells nothing: its backlog may still be going down. A burst of
// x times the rate drains in its length × (x·load − 1)/(1 − load); the rule waits twice as long.
func (v *view) tooNear(p period, bursts []schemas.BurstSpan) string {
	for _, b := range bursts {
		length := float64(b.ToUs - b.FromUs)
		x := float64(v.factor(p, b, bursts))
		if math.IsNaN(x) {
			continue
		}
		drain := length * max(0, x*burstLoad-1) / (1 - burstLoad)
		if after := float64(p.last - b.ToUs); after < 2*drain {
			return fmt.Sprintf("the run goes on for %s min after a burst of %.3g times the rate, %s are needed", minutesText(after/6e7), x, minutesText(2*drain/6e7))
		}
	}
	return ""
}

// judgeDepth judges queue_depth_max on the requests that waited at the server: for as long as the server told, else
// until the first token, which can only be longer.
func (v *view) judgeDepth(r *RuleReport, l Limit) {
	if len(v.periods) == 0 {
		inconclusive(r, "insufficient: no data")
		return
	}
	most, told, guessed := 0, 0, 0
	for _, p := range v.periods {
		waiting := v.intervals(p, func(i int32) interval {
			from := v.d.sent.at(i)
			if q := v.d.queue.at(i); q != noTime {
				told++
				return interval{from, from + q}
			}
			guessed++
			return interval{from, v.answered(i)}
		})
		most = max(most, deepest(waiting, p.start, p.end))
	}
	r.N, r.Observed = told+guessed, Figure(most)
	found := fmt.Sprintf("%d requests waited at one time", most)
	if guessed > 0 {
		found = fmt.Sprintf("%d requests waited for their first token at one time, an upper bound of the queue: the server told its queue time for %d of %d",
			most, told, told+guessed)
	}
	switch {
	case !l.breaks(float64(most)):
		r.Verdict, r.Reason = schemas.VerdictPass, found
	case guessed == 0:
		r.Verdict, r.Reason = schemas.VerdictFail, found
	default:
		inconclusive(r, found)
	}
}

// answered is when the server had surely taken the request up: its first token, else its end.
func (v *view) answered(i int32) int64 {
	if t := v.d.first.at(i); t != noTime {
		return t
	}
	if t := v.d.done(i); t != noTime {
		return t
	}
	return math.MaxInt64
}
