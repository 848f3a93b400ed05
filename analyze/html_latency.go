package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tailgate/internal/chart"
)

// origin is metric m from the origin that the gate takes.
func (r *Report) origin(m metric) metric {
	if r.gate != nil && r.gate.FromSent {
		return m.fromSent()
	}
	return m
}

// originText names it.
func (r *Report) originText() string {
	if r.gate != nil && r.gate.FromSent {
		return "from the time of sending"
	}
	return "from the scheduled time"
}

// pace is the metric that shows how fast tokens follow each other: the one that the gate limits, else the best one known.
func (r *Report) pace() (metric, string) {
	names := []struct {
		m     metric
		title string
	}{{itl, "Time between tokens (ITL)"}, {tpot, "Time per output token (TPOT)"}, {interChunk, "Time between events (inter_chunk)"}}
	for _, limited := range []bool{true, false} {
		for _, n := range names {
			if r.known(n.m) > 0 && (!limited || len(r.limitsOf(n.m, nil)) > 0) {
				return n.m, n.title
			}
		}
	}
	return itl, names[0].title
}

// gaps is the pooled metric that is known.
func (r *Report) gaps() (metric, string) {
	if r.known(itl) == 0 && r.known(interChunk) > 0 {
		return interChunk, "Time between events (inter_chunk)"
	}
	return itl, "Time between tokens (ITL)"
}

// known counts the values of m over the whole run.
func (r *Report) known(m metric) int {
	i := slices.IndexFunc(metrics, func(e metricName) bool { return e.metric == m })
	return r.Buckets[0].Metrics[i].N
}

// limitsOf are the limits of the gate on percentiles of m in the bucket by.
func (r *Report) limitsOf(m metric, by Tuple) []chart.Limit {
	var out []chart.Limit
	if r.gate == nil {
		return nil
	}
	for _, rule := range r.gate.Rules {
		if rule.kind == percentileRule && r.gate.of(rule) == r.origin(m) && rule.By.json() == by.json() {
			out = append(out, chart.Limit{Value: rule.Limit.Value / 1000, Text: rule.Name + " " + rule.Limit.Text})
		}
	}
	return out
}

// overTime are the figures of what the users of the system saw.
func (f *runFigures) overTime() chapter {
	pace, title := f.pace()
	return chapter{ID: "time", Title: "Over the run",
		Intro: fmt.Sprintf("By scheduled time, in slices of %s; latencies %s. %s", f.widthText(), f.originText(), f.burstsText()),
		Drawings: []drawing{
			f.latency("Time to first token (TTFT)", ttft),
			f.latency(title, pace),
			f.latency("End-to-end time (E2E)", e2e),
			f.inflight(),
			f.requestRate(),
			f.errors(),
		}}
}

// latency draws p50, p99 and the maximum of ok rows per slice, and marks the slices with failures.
func (f *runFigures) latency(title string, m metric) drawing {
	s := f.spreadOf(f.origin(m), f.cut)
	c := f.empty(title, "ms", "median, 99th percentile and maximum of successful requests per slice of the run")
	c.Lines = f.spreadLines(s)
	if c.LogY = wide(s.mid, s.most); c.LogY {
		c.YLabel = "ms, log scale"
	}
	c.Limits = f.limitsOf(m, nil)
	failed := 0
	for i, rows := range f.cut {
		bad := 0
		for _, row := range rows {
			if !f.view.d.ok(row) {
				bad++
			}
		}
		if failed += bad; bad > 0 {
			c.Marks = append(c.Marks, f.middle(i))
		}
	}
	unit := counted(s.n, "successful request", "successful requests")
	if m.pooled() {
		unit = counted(s.n, "gap", "gaps")
	}
	note := fmt.Sprintf("n = %s. Percentiles within each slice are no verdict: the gate takes the whole run.", unit)
	if failed > 0 {
		note = fmt.Sprintf("n = %s; %s not in the lines, their slices are marked at the top.", unit, counted(failed, "failure is", "failures are"))
	}
	return drawn(c, note, f.lacks(m))
}

// lacks says why there is no value of m.
func (r *Report) lacks(m metric) string {
	switch {
	case r.Scheduled == 0:
		return "No request was measured: all rows are warm-up."
	case r.OK == 0:
		return "No request succeeded."
	case m == itl:
		return "No answer tells the times of its tokens or events."
	case r.ExcludedNonStream == r.OK:
		return "No answer was streamed."
	}
	return "No successful request tells it."
}

// requestRate draws arrivals and completions per second, in the slices that lie wholly before the last arrival and the
// last answer.
func (f *runFigures) requestRate() drawing {
	per := float64(f.width) / 1e6
	arrived, ended := make([]float64, f.slices), make([]float64, f.slices)
	n := 0
	for k, p := range f.view.periods {
		n += p.to - p.from
		for _, i := range f.view.rows[p.from:p.to] {
			arrived[f.slice(k, f.view.d.scheduled.at(i))] += 1 / per
			if at := f.view.d.done(i); f.view.d.ok(i) && at >= p.start {
				ended[f.slice(k, at)] += 1 / per
			}
		}
		for s := f.slice(k, p.last); s <= f.slice(k, p.close()); s++ {
			if s > f.first[k] && f.first[k]+int((p.end-p.start)/f.width) <= s {
				arrived[s] = math.NaN()
			}
		}
		if s := f.slice(k, p.close()); s > f.first[k] {
			ended[s] = math.NaN()
		}
	}
	c := f.empty("Request rate", "requests/s", "requests scheduled and requests completed per second, by slice of the run")
	c.Lines = []chart.Line{f.line("scheduled", arrived), f.line("completed ok", ended)}
	return drawn(c, fmt.Sprintf("n = %s. Completions below arrivals for long: the target falls behind.", counted(n, "scheduled request", "scheduled requests")), f.lacks(lag))
}

// errors draws what did not succeed by kind, stacked.
func (f *runFigures) errors() drawing {
	d := f.view.d
	c := f.empty("Failures by kind", "requests", "requests that did not succeed by their kind, per slice of the run")
	var kinds []int32
	total := 0
	for _, rows := range f.cut {
		for _, i := range rows {
			if code := d.status.at(i); code != statusOK {
				total++
				if !slices.Contains(kinds, code) {
					kinds = append(kinds, code)
				}
			}
		}
	}
	slices.SortFunc(kinds, func(a, b int32) int { return cmp.Compare(d.statusName(a), d.statusName(b)) })
	var keys []chart.Key
	for k, code := range kinds {
		keys = append(keys, chart.SeriesKey(k, fmt.Sprintf("%s (%s)", d.statusName(code), grouped(f.countOf(code)))))
	}
	for s, rows := range f.cut {
		base := 0.0
		for k, code := range kinds {
			n := 0
			for _, i := range rows {
				if d.status.at(i) == code {
					n++
				}
			}
			if n > 0 {
				x := float64(s) * float64(f.width) / f.unit
				c.Bars = append(c.Bars, chart.Bar{X0: x, X1: x + float64(f.width)/f.unit, Base: base, Y: base + float64(n), Series: k})
				base += float64(n)
			}
		}
	}
	return drawn(c, fmt.Sprintf("n = %s of %s, at the time they were scheduled for.", counted(total, "failure", "failures"), counted(f.Scheduled, "request", "requests")),
		fmt.Sprintf("None of %s failed.", counted(f.Scheduled, "request", "requests")), keys...)
}

func (f *runFigures) countOf(code int32) int {
	if code == statusNotSent {
		return f.NotSent
	}
	return f.Errors[f.view.d.statusName(code)]
}

// statusName is the word of a status code; a row without one has none.
func (d *Data) statusName(code int32) string {
	if code < 0 {
		return "unknown"
	}
	return d.status.dict.Words[code]
}
