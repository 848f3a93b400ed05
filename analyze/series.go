package analyze

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/chart"
	"tailgate/internal/stats"
)

// maxSlices bounds the points of a chart over time.
const maxSlices = 120

// slice is one stretch of the schedule: the rows scheduled in it, and its middle on the time axis. Runs that do not
// share a clock stand one after the other.
type slice struct {
	at   float64
	rows []int32
	last bool // of its period
}

// timeAxis is the unit of charts over time in µs, and its name: minutes, or seconds for short runs.
func (v *view) timeAxis() (unit float64, label string) {
	if v.minutes() < 3 {
		return 1e6, "seconds of schedule"
	}
	return 6e7, "minutes of schedule"
}

// slices cuts every period in stretches of one round length.
func (v *view) slices() []slice {
	var span int64
	for _, p := range v.periods {
		span += p.last - p.start
	}
	width := roundWidth(span / maxSlices)
	unit, _ := v.timeAxis()
	var out []slice
	offset := 0.0
	for _, p := range v.periods {
		count := int((p.last-p.start)/width) + 1
		cut := make([]slice, count)
		for k := range cut {
			cut[k].at = offset + (float64(k)+.5)*float64(width)/unit
		}
		for _, i := range v.rows[p.from:p.to] {
			k := int((v.d.scheduled.at(i) - p.start) / width)
			cut[k].rows = append(cut[k].rows, i)
		}
		cut[count-1].last = true
		out = append(out, cut...)
		offset += float64(count) * float64(width) / unit
	}
	return out
}

// roundWidth is the next of 1, 2, 5, 10, 15, 30 s and their minutes and hours.
func roundWidth(us int64) int64 {
	for _, unit := range []int64{1_000_000, 60_000_000, 3_600_000_000} {
		for _, m := range []int64{1, 2, 5, 10, 15, 30} {
			if us <= m*unit {
				return m * unit
			}
		}
	}
	return us
}

// charts are the figures of the HTML report, those without data left out.
func (r *Report) charts() []*chart.Chart {
	v := r.view
	cut := v.slices()
	all := []*chart.Chart{
		v.cdf(), v.overTime("Time to first token over time", ttft, cut, r.limitOf(ttft)),
		v.overTime("End-to-end time over time", e2e, cut, r.limitOf(e2e)), v.inflightChart(),
		v.overTime("Lag of the client over time", lag, cut, nil),
	}
	return slices.DeleteFunc(all, func(c *chart.Chart) bool { return c.SVG() == "" })
}

// limitOf is the rule of the gate with the tightest limit on m for the whole run.
func (r *Report) limitOf(m metric) *Rule {
	if r.gate == nil {
		return nil
	}
	var best *Rule
	for i, rule := range r.gate.Rules {
		fits := rule.kind == percentileRule && rule.metric == m && len(rule.By) == 0
		if fits && (best == nil || rule.Limit.Value < best.Limit.Value) {
			best = &r.gate.Rules[i]
		}
	}
	return best
}

// overTime draws the median and the p99 of ok rows per slice, and marks the slices with failures.
func (v *view) overTime(title string, m metric, cut []slice, limit *Rule) *chart.Chart {
	c := &chart.Chart{Title: title, YLabel: "ms"}
	_, c.XLabel = v.timeAxis()
	p50, p99 := chart.Line{Name: "p50"}, chart.Line{Name: "p99"}
	failed := 0
	for _, s := range cut {
		var vals values
		bad := 0
		for _, i := range s.rows {
			if !v.d.ok(i) {
				bad++
			} else if x := v.d.value(m, i); !math.IsNaN(x) {
				vals = append(vals, x/1000)
			}
		}
		mid, top := math.NaN(), math.NaN()
		if n := len(vals); n > 0 {
			at := vals.smallest(stats.Rank(n, .5), stats.Rank(n, .99))
			mid, top = at[0], at[1]
		}
		p50.Add(s.at, mid)
		p99.Add(s.at, top)
		if s.last {
			p50.Add(s.at, math.NaN())
			p99.Add(s.at, math.NaN())
		}
		if bad > 0 && m != lag {
			failed += bad
			c.Marks = append(c.Marks, s.at)
		}
	}
	c.Lines = []chart.Line{p99, p50}
	c.What = fmt.Sprintf("median and 99th percentile of successful requests per slice of the schedule, %d failures marked at the top", failed)
	if limit != nil {
		ms := limit.Limit.Value / 1000
		c.Limit, c.LimitText = &ms, limit.Name+" "+limit.Limit.Text
	}
	return c
}

// cdf draws the distribution of both latencies over all scheduled requests; failures keep it below 1.
func (v *view) cdf() *chart.Chart {
	c := &chart.Chart{Title: "Distribution of latencies", XLabel: "ms", YLabel: "share of scheduled requests", LogX: true, Shares: true,
		What: "share of scheduled requests that were answered within a time; failures never are"}
	for _, m := range []metric{ttft, e2e} {
		x := slices.Clone(v.d.rowSample(v.rows, m).values)
		slices.Sort(x)
		l := chart.Line{Name: metrics[slices.IndexFunc(metrics, func(e metricName) bool { return e.metric == m })].label}
		const points = 200
		for k := range points + 1 {
			at := k * (len(x) - 1) / points
			if len(x) > 0 && !math.IsInf(x[at], 1) && (k == 0 || at > (k-1)*(len(x)-1)/points) {
				l.Add(max(x[at]/1000, .01), float64(at+1)/float64(len(x)))
			}
		}
		if len(l.X) > 0 {
			c.Lines = append(c.Lines, l)
		}
	}
	return c
}

// inflightChart draws the requests on the way.
func (v *view) inflightChart() *chart.Chart {
	c := &chart.Chart{Title: "Requests in flight over time", What: "requests sent and not yet ended", YLabel: "requests"}
	unit, label := v.timeAxis()
	c.XLabel = label
	l := chart.Line{Name: "in flight"}
	offset := 0.0
	for _, p := range v.periods {
		end := max(p.last, p.done)
		step := max(1_000_000, (end-p.start)/400)
		for k, n := range levels(v.inflight(p), p.start, end, step) {
			l.Add(offset+float64(int64(k)*step)/unit, n)
		}
		l.Add(offset, math.NaN())
		offset += float64(end-p.start) / unit
	}
	if slices.ContainsFunc(l.Y, func(y float64) bool { return y > 0 }) {
		c.Lines = []chart.Line{l}
	}
	return c
}
