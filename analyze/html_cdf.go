package analyze

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/chart"
	"tailgate/internal/stats"
)

// cdfPoints is how many points a curve has at most.
const cdfPoints = 200

// cumulative is the share of n values at most so large, failed ones never. Half of the points lie evenly, half as densely
// as the nines, so the tail is drawn as exactly as the middle; the least and the largest value are among them. div makes the unit of x,
// and floor is the least x drawn.
func cumulative(name string, q quantiles, failed int, div, floor float64) chart.Line {
	l := chart.Line{Name: name}
	finite := q.count()
	n := finite + failed
	if finite == 0 {
		return l
	}
	nines := math.Log10(2 * float64(n)) // of the share just before the last value
	var ranks []int
	for k := 1; k <= cdfPoints/2; k++ {
		even := float64(k) / (cdfPoints / 2)
		dense := 1 - math.Pow(10, -nines*even)
		ranks = append(ranks, min(stats.Rank(n, even), finite), min(stats.Rank(n, dense), finite))
	}
	ranks = append(ranks, 1, finite)
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	for i, x := range q.smallest(ranks...) {
		l.Add(max(x/div, floor), min(float64(ranks[i])/float64(n), 1-.5/float64(n)))
	}
	return l
}

// cdf is an empty figure of a distribution.
func cdf(title, unit, what string) *chart.Chart {
	return &chart.Chart{Title: title, What: what, XLabel: unit, YLabel: "% of requests", LogX: true, Percentiles: true}
}

// cdfChapter are the distributions of the latencies.
func (r *Report) cdfChapter() chapter {
	gaps, title := r.gaps()
	return chapter{ID: "distributions", Title: "Distribution of latencies",
		Intro: "Share of all scheduled requests that were answered within a time; a failure never is, so with failures a curve ends below the top. " +
			"Each further nine takes the same room, and the time axis is logarithmic: a curve that bends to the right near the top has a long tail. " +
			"A percentile keeps its limit where the curve crosses that percentile to the left of the dashed line.",
		Drawings: []drawing{
			r.latencyCDF("Time to first token (TTFT)", ttft),
			r.latencyCDF(title, gaps),
			r.latencyCDF("Time per output token (TPOT)", tpot),
			r.latencyCDF("End-to-end time (E2E)", e2e),
		}}
}

func (r *Report) latencyCDF(title string, m metric) drawing {
	c := cdf(title, "ms, log scale", "share of scheduled requests answered within a time")
	rows := r.view.d.tails(r.view.rows)
	n := 0
	add := func(name string, m metric) {
		q, failed := r.view.d.finiteOf(rows, m), 0
		for _, i := range rows {
			if !r.view.d.ok(i) {
				failed++
			}
		}
		if m.pooled() {
			failed = r.view.d.gapSample(rows, m).infinite()
		}
		if l := cumulative(name, q, failed, 1000, .001); len(l.X) > 0 {
			c.Lines = append(c.Lines, l)
			n = max(n, q.count()+failed)
		}
	}
	switch m {
	case ttft, e2e:
		add("from scheduled", m)
		add("from sent", m.fromSent())
	default:
		add("", m)
	}
	for _, l := range r.limitsOf(m, nil) {
		l.OnX = true
		c.Limits = append(c.Limits, l)
	}
	unit := counted(n, "scheduled request", "scheduled requests")
	if m.pooled() {
		unit = counted(n, "gap", "gaps")
	}
	return drawn(c, fmt.Sprintf("n = %s, failures as infinitely late.%s", unit, coincide(c)), r.lacks(m))
}

// coincide says so when the second of two curves hides the first.
func coincide(c *chart.Chart) string {
	if len(c.Lines) == 2 && slices.Equal(c.Lines[0].X, c.Lines[1].X) && slices.Equal(c.Lines[0].Y, c.Lines[1].Y) {
		return " Both curves are the same."
	}
	return ""
}

// lagCDF is the distribution of the client's lag, of everything that was sent.
func (f *runFigures) lagCDF() drawing {
	c := cdf("Distribution of the client's lag", "ms, log scale", "share of sent requests that left at most so late")
	q := make(values, 0, len(f.view.rows))
	for _, i := range f.view.rows {
		if x := f.view.d.value(lag, i); !math.IsNaN(x) {
			q = append(q, x)
		}
	}
	if n := len(q); n > 0 && slices.Max(q) <= 0 {
		return drawing{Title: c.Title, Why: fmt.Sprintf("All %s left at their scheduled time, to the µs (a virtual clock, or results without a schedule).", counted(n, "request", "requests"))}
	}
	if l := cumulative("", q, 0, 1000, .001); len(l.X) > 0 {
		c.Lines = append(c.Lines, l)
	}
	limit := lagLimit(f.gate.TTFTLimit()) / 1000
	c.Limits = []chart.Limit{{Value: limit, Text: fmt.Sprintf("p99 over %.4g ms: invalid run", limit), OnX: true}}
	return drawn(c, fmt.Sprintf("n = %s.", counted(len(q), "sent request", "sent requests")), "No request was sent.")
}

// lengthsChapter compares what was asked for with what came.
func (r *Report) lengthsChapter() chapter {
	d := r.view.d
	intro := "Lengths that the trace asked for beside those that the target's usage told. Curves that part mean another workload than the one that was planned."
	if w := r.Workload; w.N > 0 {
		intro += fmt.Sprintf(" Output tokens got / asked: %s, distance (KS) %s, over %s.", short(w.OutputTokensRatio), short(w.OutputTokensKS), counted(w.N, "request that tells both", "requests that tell both"))
	}
	return chapter{ID: "lengths", Title: "Lengths asked and got", Intro: intro, Drawings: []drawing{
		r.lengths("Input tokens", &d.inputLength, &d.inputTokens),
		r.lengths("Output tokens", &d.outputLength, &d.outputTokens),
	}}
}

func (r *Report) lengths(title string, asked, got *column[int32]) drawing {
	c := cdf(title, "tokens, log scale", "share of successful requests with at most so many tokens, as asked and as got")
	c.Percentiles, c.Shares, c.YLabel = false, true, "share of requests"
	var note string
	for _, s := range []struct {
		name string
		of   *column[int32]
	}{{"asked", asked}, {"got", got}} {
		q := make(values, 0, len(r.view.rows))
		for _, i := range r.view.rows {
			if n := s.of.at(i); r.view.d.ok(i) && n != noCount {
				q = append(q, float64(n))
			}
		}
		if l := cumulative(s.name, q, 0, 1, 1); len(l.X) > 0 {
			c.Lines = append(c.Lines, l)
		}
		note += fmt.Sprintf("%s n = %s; ", s.name, grouped(len(q)))
		if len(q) == 0 {
			note += "(not told) "
		}
	}
	return drawn(c, note+"successful requests."+coincide(c), "No successful request tells how many were asked or got.")
}
