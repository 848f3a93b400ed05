package analyze

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"tailgate/internal/stats"
)

// span is a stretch of time in µs, half-open.
type span struct{ from, to int64 }

// spans are disjoint and in order.
type spans []span

// joined sorts spans and joins those that touch.
func joined(list []span) spans {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out spans
	for _, s := range list {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// overlap is how much of [from, to] the spans cover; a window of no length counts as 1 µs.
func (s spans) overlap(from, to int64) int64 {
	to = max(to, from+1)
	covered := int64(0)
	for k := sort.Search(len(s), func(k int) bool { return s[k].to > from }); k < len(s) && s[k].from < to; k++ {
		covered += min(to, s[k].to) - max(from, s[k].from)
	}
	return covered
}

// touch tells whether a window lies in the spans: in part for the wait for a first token, by a quarter for a whole answer,
// whose windows are long enough to meet anything.
func (s spans) touch(f family, from, to int64) bool {
	n := s.overlap(from, to)
	if f == firstFamily {
		return n > 0
	}
	return 4*n >= max(1, to-from)
}

// surge is a window of a series that is far above what is usual around it.
type surge struct {
	span
	factor float64
}

// surgeRule says what is far: factor times the local median, and deviations above it by a number of its spread.
type surgeRule struct {
	windows []int64 // µs, each cut in cells of a fifth
	factor  float64
	spread  func(median, mad float64) float64
	least   float64
}

// surges finds windows of the points (ascending times with weights) that break the rule; their quiet ends are cut off.
func surges(at []int64, weight []float64, from, to int64, rule surgeRule) []surge {
	const cells = 5
	var out []surge
	for _, w := range rule.windows {
		cell := w / cells
		n := int((to-from)/cell) + 1
		if n < 3*cells {
			continue
		}
		counts := make([]float64, n)
		for k, t := range at {
			if t >= from && t <= to {
				counts[(t-from)/cell] += weight[k]
			}
		}
		sums := make([]float64, n-cells+1)
		for b := range sums {
			for _, c := range counts[b : b+cells] {
				sums[b] += c
			}
		}
		median, mad := localMedian(sums, int(600_000_000/cell))
		for b, sum := range sums {
			m := median[b]
			if sum < rule.least || sum < rule.factor*m || sum-m < rule.spread(m, mad[b]) {
				continue
			}
			lo, hi := b, b+cells
			for lo < hi-1 && counts[lo] <= 1.3*m/cells {
				lo++
			}
			for hi > lo+1 && counts[hi-1] <= 1.3*m/cells {
				hi--
			}
			out = append(out, surge{span{from + int64(lo)*cell, from + int64(hi)*cell}, sum / max(m, 1)})
		}
	}
	return out
}

// localMedian is the median of the values within half of each, and the median absolute deviation from it, both scaled to a
// normal law's standard deviation; they are worked out at some points and held between them.
func localMedian(x []float64, half int) (median, mad []float64) {
	median, mad = make([]float64, len(x)), make([]float64, len(x))
	step := max(1, half/4)
	for from := 0; from < len(x); from += step {
		to := min(len(x), from+step)
		near := slices.Clone(x[max(0, from-half):min(len(x), to+half)])
		m := medianOf(near)
		for k := range near {
			near[k] = math.Abs(near[k] - m)
		}
		d := 1.4826 * medianOf(near)
		for k := from; k < to; k++ {
			median[k], mad[k] = m, d
		}
	}
	return median, mad
}

// aftermath extends each span by the time for which the requests in flight stay above what is usual outside of all spans:
// the backlog that it left. It is at most as long as fifteen minutes, and six times the span with a minute more.
func (s *scene) aftermath(list spans, acts []int32) spans {
	if len(list) == 0 {
		return nil
	}
	level := s.inflight(acts)
	var calm []float64
	for k, n := range level {
		if at := s.from + int64(k)*lookUs; list.overlap(at, at+1) == 0 {
			calm = append(calm, n)
		}
	}
	usual := 0.0
	if len(calm) > 0 {
		slices.Sort(calm)
		usual = calm[stats.Rank(len(calm), .5)-1]
	}
	out := make([]span, len(list))
	for k, sp := range list {
		until := sp.to + min(900_000_000, 60_000_000+6*(sp.to-sp.from))
		end := sp.to
		for end < until {
			if j := int((end - s.from) / lookUs); j >= len(level) || level[max(j, 0)] <= 1.3*usual+1 {
				break
			}
			end += lookUs
		}
		out[k] = span{sp.from, end}
	}
	return joined(out)
}

// inflight counts the requests on the way at each second of the scene.
func (s *scene) inflight(acts []int32) []float64 {
	level := make([]float64, int((s.to-s.from)/lookUs)+2)
	slot := func(t int64) int { return int(min(max(0, (t-s.from)/lookUs), int64(len(level)-1))) }
	for _, k := range acts {
		a := &s.acts[k]
		if a.sent == noTime {
			continue
		}
		level[slot(a.sent)]++
		if a.end != noTime {
			level[min(slot(a.end)+1, len(level)-1)]--
		}
	}
	for k := 1; k < len(level); k++ {
		level[k] += level[k-1]
	}
	return level
}
