package analyze

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/chart"
)

// tailMetric is one that the tails are shown of.
type tailMetric struct {
	name  string
	m     metric
	title string
}

// tailMetrics are the columns of the table of tails, and the figures beside it.
var tailMetrics = []tailMetric{
	{"ttft_ms", ttft, "Time to first token (TTFT)"},
	{"tpot_ms", tpot, "Time per output token (TPOT)"},
	{"e2e_ms", e2e, "End-to-end time (E2E)"},
}

// tailFigures are the metrics above and the gaps.
func (r *Report) tailFigures() []tailMetric {
	m, title := r.gaps()
	i := slices.IndexFunc(metrics, func(e metricName) bool { return e.metric == m })
	return slices.Insert(slices.Clone(tailMetrics), 1, tailMetric{metrics[i].json, m, title})
}

// maxStrips is how many buckets a figure of tails shows; the tables have them all.
const maxStrips = 16

// tailsChapter shows the tails per bucket.
func (r *Report) tailsChapter() chapter {
	c := chapter{ID: "tails", Title: "Tails per bucket",
		Intro: "Over all scheduled requests, failures as infinitely late (a triangle at the right edge); from the scheduled time."}
	shown := r.Buckets
	if len(shown) > maxStrips {
		shown = r.largest()
		c.Intro += fmt.Sprintf(" The figures show the whole run and the %d largest of %d buckets, the table has all.", maxStrips-1, len(r.Buckets)-1)
	}
	for _, t := range r.tailFigures() {
		c.Drawings = append(c.Drawings, r.strips(t, shown))
	}
	return c
}

// largest are the whole run and the largest buckets, in the order of the report.
func (r *Report) largest() []Bucket {
	order := make([]int, len(r.Buckets)-1)
	for i := range order {
		order[i] = i + 1
	}
	slices.SortStableFunc(order, func(a, b int) int { return r.Buckets[b].Scheduled - r.Buckets[a].Scheduled })
	order = order[:maxStrips-1]
	slices.Sort(order)
	out := r.Buckets[:1:1]
	for _, i := range order {
		out = append(out, r.Buckets[i])
	}
	return out
}

func (r *Report) strips(of tailMetric, buckets []Bucket) drawing {
	m := of.m
	s := chart.Strips{Title: of.title, What: "p50, p95 and p99 of each bucket over all its scheduled requests", XLabel: "ms, log scale"}
	n, intervals, limits := 0, false, false
	for i, b := range buckets {
		at := slices.IndexFunc(b.Metrics, func(m Metric) bool { return m.Name == of.name })
		t := b.Metrics[at].Tail
		if i == 0 {
			n = t.N
		}
		row := chart.Strip{Name: fmt.Sprintf("%s, n = %s", b.By, grouped(t.N)), Limits: r.limitsOf(m, b.By)}
		limits = limits || len(row.Limits) > 0
		for _, x := range []struct {
			name   string
			v      Figure
			p      float64
			colour int
		}{{"p50", t.P50, .5, colourP50}, {"p95", t.P95, .95, colourP95}, {"p99", t.P99, .99, colourP99}} {
			lo, hi := r.interval(m, b.By, t, x.name, x.p)
			text := fmt.Sprintf("%s %s ms", x.name, short(x.v))
			if !math.IsNaN(lo) || !math.IsNaN(hi) {
				intervals = true
				text += fmt.Sprintf(" [%s, %s]", short(Figure(lo)), short(Figure(hi)))
			}
			row.Places = append(row.Places, chart.Place{Series: x.colour - 1, X: float64(x.v), Lo: lo, Hi: hi, Text: text})
		}
		s.Rows = append(s.Rows, row)
	}
	d := drawing{Title: of.title, SVG: s.SVG(), Keys: []chart.Key{chart.SeriesKey(colourP50-1, "p50"), chart.SeriesKey(colourP95-1, "p95"), chart.SeriesKey(colourP99-1, "p99")},
		Note: fmt.Sprintf("n = %s.", counted(n, "scheduled request", "scheduled requests"))}
	if m.pooled() {
		d.Note = fmt.Sprintf("n = %s.", counted(n, "gap", "gaps"))
	}
	if intervals {
		d.Note += " Bars: intervals of the percentile, else the bounds of the gate's rule on it; one that reaches an edge is open there."
	}
	if limits {
		d.Keys = append(d.Keys, chart.Key{Class: "kl", Name: "limit"})
	}
	if d.SVG == "" {
		return drawing{Title: of.title, Why: r.lacks(m)}
	}
	return d
}

// interval are the bounds of a percentile of a bucket's tail in ms: those that the tail has, else those of the gate's rule on
// it. NaN where there are none.
func (r *Report) interval(m metric, by Tuple, t Tail, name string, p float64) (lo, hi float64) {
	in, ok := t.Intervals.of(name)
	switch {
	case ok && (in.Lower.Known() || in.Upper.Known()):
		return float64(in.Lower), float64(in.Upper)
	case r.gate == nil || r.gate.FromSent:
		return math.NaN(), math.NaN()
	}
	for i, rule := range r.gate.Rules {
		if v := r.Gate.Rules[i]; rule.kind == percentileRule && rule.metric == m && rule.p == p && rule.By.json() == by.json() && v.Lower.Known() && v.Upper.Known() {
			return float64(v.Lower), float64(v.Upper)
		}
	}
	return math.NaN(), math.NaN()
}

// sweepChapter draws several runs as curves over their request rates.
func (r *Report) sweepChapter() chapter {
	c := chapter{ID: "sweep", Title: "Runs by request rate",
		Intro: "Each point is one of the runs, at the rate that its schedule asked for. All other parts of this page take the runs together."}
	for _, t := range tailMetrics {
		c.Drawings = append(c.Drawings, r.sweep(t))
	}
	c.Drawings = append(c.Drawings, r.sweepThroughput())
	return c
}

// rateChart is an empty figure over the request rate.
func (r *Report) rateChart(title, unit, what string) *chart.Chart {
	return &chart.Chart{Title: title, What: what, XLabel: "scheduled requests/s", YLabel: unit}
}

// sweep draws the tails of one metric against the rate; where one is infinite, the run is marked at the top.
func (r *Report) sweep(of tailMetric) drawing {
	c := r.rateChart(of.title, "ms", "p50, p95 and p99 of each run over its request rate")
	lines := []chart.Line{{Name: "p99", Colour: colourP99, Marked: true}, {Name: "p95", Colour: colourP95, Marked: true}, {Name: "p50", Colour: colourP50, Marked: true}}
	infinite := 0
	for _, p := range r.Rates {
		if !p.RequestRate.Known() {
			continue
		}
		t := p.Tails[slices.IndexFunc(p.Tails, func(t RateTail) bool { return t.Name == of.name })]
		for k, v := range []Figure{t.P99, t.P95, t.P50} {
			y := float64(v)
			if math.IsInf(y, 0) {
				y = math.NaN()
			}
			lines[k].Add(float64(p.RequestRate), y)
		}
		if math.IsInf(float64(t.P99), 1) {
			infinite++
			c.Marks = append(c.Marks, float64(p.RequestRate))
		}
	}
	c.Lines = lines
	c.LogY = wide(lines[0].Y, lines[1].Y, lines[2].Y)
	if c.LogY {
		c.YLabel = "ms, log scale"
	}
	c.Limits = r.limitsOf(of.m, nil)
	d := drawn(c, fmt.Sprintf("n = %s.", counted(len(r.Rates), "run", "runs")), r.lacks(of.m))
	if infinite > 0 && d.SVG != "" {
		d.Keys[len(d.Keys)-1].Name = "p99 infinite"
		d.Note += " A mark at the top: p99 is infinite, over 1 % of that run's requests failed."
	}
	return d
}

// sweepThroughput draws what was achieved against what was asked for.
func (r *Report) sweepThroughput() drawing {
	c := r.rateChart("Achieved rate", "requests/s", "successful requests and goodput per second of each run over its request rate")
	lines := []chart.Line{{Name: "ok", Marked: true}, {Name: "goodput", Marked: true}, {Name: "scheduled", Colour: colourMax}}
	for _, p := range r.Rates {
		if x := float64(p.RequestRate); p.RequestRate.Known() {
			lines[0].Add(x, float64(p.RequestsPerS))
			lines[1].Add(x, float64(p.GoodputPerS))
			lines[2].Add(x, x)
		}
	}
	c.Lines = lines
	note := fmt.Sprintf("n = %s. Goodput: successful and within every latency limit of the gate", counted(len(r.Rates), "run", "runs"))
	if r.gate == nil {
		note += "; not known without a gate"
	}
	return drawn(c, note+".", "No request succeeded.")
}
