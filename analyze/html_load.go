package analyze

import (
	"fmt"
	"math"
	"slices"

	"tailgate/schemas"
)

// inflight draws the requests on the way beside the servers' own counts, the most of each slice.
func (f *runFigures) inflight() drawing {
	c := f.empty("In flight and in the servers' queue", "requests", "requests on the way as the client saw them, and requests running and waiting at the servers, the most of each slice")
	own := make([]float64, f.slices)
	most := 0.0
	for k, p := range f.view.periods {
		for i, n := range peaks(f.view.inflight(p), p.start, p.close(), f.width) {
			own[f.first[k]+i] = n
			most = max(most, n)
		}
	}
	if most > 0 {
		c.Lines = append(c.Lines, f.line("in flight at the client", own))
	}
	looks := 0
	for _, s := range []struct{ metric, name string }{{schemas.MetricRequestsRunning, "running at the servers"}, {schemas.MetricRequestsWaiting, "waiting at the servers"}} {
		sum, n := f.serversSum(s.metric)
		if n > 0 {
			c.Lines = append(c.Lines, f.line(s.name, sum))
			looks = max(looks, n)
		}
	}
	note := fmt.Sprintf("n = %s; the most of each slice.", counted(f.Scheduled, "request", "requests"))
	if looks > 0 {
		note += fmt.Sprintf(" Servers: %s at %s, added up.", counted(looks, "look", "looks"), counted(len(f.view.targetsWith(schemas.MetricRequestsRunning, schemas.MetricRequestsWaiting)), "target", "targets"))
	} else {
		note += " The servers' queue is not known: the run has no telemetry of it."
	}
	return drawn(c, note, "No request was sent.")
}

// peaks is the largest number of open intervals in each of the stretches of one width that [from, to] is cut in.
func peaks(open []interval, from, to, width int64) []float64 {
	out := make([]float64, (to-from)/width+1)
	edges := edgesOf(open)
	now, e := 0, 0
	for ; e < len(edges) && edges[e].at < from; e++ {
		now += edges[e].step
	}
	for k := range out {
		end := from + int64(k+1)*width
		out[k] = float64(now)
		for ; e < len(edges) && edges[e].at < end; e++ {
			now += edges[e].step
			out[k] = max(out[k], float64(now))
		}
	}
	return out
}

// targetsWith are the targets that tell one of the metrics.
func (v *view) targetsWith(names ...string) []string {
	var out []string
	for _, p := range v.periods {
		for _, s := range v.seen(p) {
			if slices.Contains(names, s.metric) && !slices.Contains(out, s.target) {
				out = append(out, s.target)
			}
		}
	}
	return out
}

// serversSum is a level of all targets together, the most of each slice, and how many looks it comes from. Targets are
// added at each look of the first of them, each with its latest value.
func (f *runFigures) serversSum(metric string) ([]float64, int) {
	out := make([]float64, f.slices)
	for i := range out {
		out[i] = math.NaN()
	}
	looks := 0
	for k, p := range f.view.periods {
		var all []series
		for _, s := range f.view.seen(p) {
			if s.metric == metric {
				all = append(all, s)
			}
		}
		if len(all) == 0 {
			continue
		}
		for _, at := range all[0].at {
			if at < p.start || at > p.close() {
				continue
			}
			sum := 0.0
			for _, s := range all {
				i, found := slices.BinarySearch(s.at, at)
				if found {
					looks++
				} else {
					i-- // the latest before
				}
				if i >= 0 {
					sum += s.values[i]
				}
			}
			slice := f.slice(k, at)
			if math.IsNaN(out[slice]) || sum > out[slice] {
				out[slice] = sum
			}
		}
	}
	return out, looks
}

// clientChapter are the figures of our own side: a slow client must not be taken for a slow server.
func (f *runFigures) clientChapter() chapter {
	s := f.spreadOf(lag, f.cut)
	c := f.empty("Lag of the client over time", "ms", "median, 99th percentile and maximum of sent minus scheduled, per slice of the run")
	for _, list := range [][]float64{s.mid, s.top, s.most} {
		for i := range list {
			list[i] = max(list[i], 0)
		}
	}
	c.Lines = f.spreadLines(s)
	if c.LogY = wide(s.mid, s.most); c.LogY {
		c.YLabel = "ms, log scale"
	}
	note := fmt.Sprintf("n = %s. Lag is sent − scheduled: our own lateness, inside every latency that counts from the scheduled time.", counted(s.n, "successful request", "successful requests"))
	return chapter{ID: "client", Title: "The client's own lateness",
		Intro:    "A run in which requests leave late says little about the target; validity is judged on this before any verdict.",
		Drawings: []drawing{drawn(c, note, f.lacks(lag)), f.lagCDF()}}
}
