package analyze

import (
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

// deepest is the largest number of intervals open at one time in [from, to].
func deepest(open []interval, from, to int64) int {
	type edge struct {
		at   int64
		step int
	}
	edges := make([]edge, 0, 2*len(open))
	for _, x := range open {
		edges = append(edges, edge{x.from, 1}, edge{x.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			if a.at < b.at {
				return -1
			}
			return 1
		}
		return a.step - b.step
	})
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
			means = append(means, mean(c))
		}
	}
	if all := mean(inflight); all > 0 {
		grown = stats.TheilSen(means) * float64(len(means)) / all
	}
	quarter := len(inflight) / 4
	if quarter == 0 {
		return grown, 0
	}
	least := slices.Min(inflight[len(inflight)-quarter:])
	return grown, least / max(1, mean(inflight[:quarter]))
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(1, len(x)))
}

// judgeGrowth judges queue_growth: the run grows when one of its periods does.
func (v *view) judgeGrowth(r *RuleReport) {
	if len(v.periods) == 0 {
		inconclusive(r, "insufficient: no data")
		return
	}
	longest, worstFloor := 0.0, 0.0
	worst := math.Inf(-1)
	for _, p := range v.periods {
		minutes := float64(p.end-p.start) / 6e7
		longest = max(longest, minutes)
		if !nearly(minutes, growthMinutes) {
			continue
		}
		step := max(gridUs, (p.last-p.start)/maxGrid)
		grown, floor := growth(levels(v.inflight(p), p.start, p.last, step))
		if min(grown/growthLimit, floor/floorLimit) > worst {
			worst = min(grown/growthLimit, floor/floorLimit)
			r.Observed, worstFloor = Figure(grown), floor
		}
	}
	if math.IsInf(worst, -1) {
		inconclusive(r, fmt.Sprintf("cannot tell: %s min, the rule needs %d", minutesText(longest), growthMinutes))
		r.NeedsMinutes = Figure(math.Ceil(growthMinutes - longest))
		return
	}
	r.Reason = fmt.Sprintf("in-flight requests changed by %s of their mean, the last quarter stays above %s of the first",
		percent(float64(r.Observed)), percent(worstFloor))
	r.Verdict = schemas.VerdictPass
	if worst > 1 {
		r.Verdict = schemas.VerdictFail
	}
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
