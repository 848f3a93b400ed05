package analyze

import (
	"fmt"
	"math"

	"tailgate/internal/stats"
)

// percentiles that a report shows, and how many values each needs to mean anything: 1/(1−p).
var percentiles = []struct {
	name  string
	p     float64
	needs int
	of    func(*Metric) *Figure
}{
	{"p50", .5, 2, func(m *Metric) *Figure { return &m.P50 }},
	{"p90", .9, 10, func(m *Metric) *Figure { return &m.P90 }},
	{"p95", .95, 20, func(m *Metric) *Figure { return &m.P95 }},
	{"p99", .99, 100, func(m *Metric) *Figure { return &m.P99 }},
	{"p995", .995, 200, func(m *Metric) *Figure { return &m.P995 }},
	{"p999", .999, 1000, func(m *Metric) *Figure { return &m.P999 }},
}

var tailPercentiles = []struct {
	p  float64
	of func(*Tail) *Figure
}{
	{.5, func(t *Tail) *Figure { return &t.P50 }},
	{.95, func(t *Tail) *Figure { return &t.P95 }},
	{.99, func(t *Tail) *Figure { return &t.P99 }},
}

// quantiles answers the k-th smallest of n finite values, 1-based.
type quantiles interface {
	count() int
	mean() float64
	smallest(ranks ...int) []float64
}

// describe fills a metric from its finite values and the number of infinite ones.
func describe(name string, q quantiles, undefined, failed int, scale float64) Metric {
	n := q.count()
	m := Metric{Name: name, N: n, Undefined: undefined, Min: unknown, Mean: unknown, Max: unknown,
		Insufficient: []string{}, Tail: Tail{N: n + failed}}
	ranks := []int{1, n}
	for _, p := range percentiles {
		ranks = append(ranks, stats.Rank(n, p.p))
		if n < p.needs {
			m.Insufficient = append(m.Insufficient, p.name)
		}
	}
	for _, p := range tailPercentiles {
		ranks = append(ranks, stats.Rank(n+failed, p.p))
	}
	at := pick(q, n, ranks)
	value := func(i int) Figure { return Figure(at[i] / scale) }
	if n > 0 {
		m.Min, m.Max, m.Mean = value(0), value(1), Figure(q.mean()/scale)
	}
	for i, p := range percentiles {
		*p.of(&m) = value(2 + i)
	}
	for i, p := range tailPercentiles {
		*p.of(&m.Tail) = value(2 + len(percentiles) + i)
	}
	return m
}

// pick returns the values at the ranks: NaN for rank 0 (no values), +Inf for ranks beyond the n finite ones.
func pick(q quantiles, n int, ranks []int) []float64 {
	out := make([]float64, len(ranks))
	var ask, where []int
	for i, r := range ranks {
		switch {
		case r == 0:
			out[i] = math.NaN()
		case r > n:
			out[i] = math.Inf(1)
		default:
			ask, where = append(ask, r), append(where, i)
		}
	}
	for j, x := range q.smallest(ask...) {
		out[where[j]] = x
	}
	return out
}

// values are the finite values of a metric with one value a row.
type values []float64

func (v values) count() int { return len(v) }

func (v values) mean() float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func (v values) smallest(ranks ...int) []float64 { return stats.Ranked(v, ranks...) }

// metric describes one metric of a cell.
func (d *Data) metric(c cell, m metric, name string) Metric {
	rows := d.tails(c.rows)
	if m.pooled() {
		s := d.gapSample(rows, m)
		return describe(name, s.finite(), s.undefined, s.infinite(), m.scale())
	}
	vals := make(values, 0, len(rows))
	undefined, failed := 0, 0
	d.each(m, rows, func(values []float64) {
		for _, x := range values {
			switch {
			case math.IsInf(x, 1):
				failed++
			case math.IsNaN(x):
				undefined++
			default:
				vals = append(vals, x)
			}
		}
	})
	return describe(name, vals, undefined, failed, m.scale())
}

// tally counts a cell; its metrics are filled in apart.
func (d *Data) tally(c cell) Bucket {
	b := Bucket{By: c.by, Scheduled: len(c.rows), SuccessRate: unknown, EarlyStopShare: unknown}
	early, told := 0, 0
	for _, i := range c.rows {
		if !d.ok(i) {
			continue
		}
		b.OK++
		if !d.streamed.at(i) {
			b.ExcludedNonStream++
		}
		asked, got := d.outputLength.at(i), d.outputTokens.at(i)
		if asked != noCount && got != noCount {
			told++
			if got < asked {
				early++
			}
		}
	}
	if b.Scheduled > 0 {
		b.SuccessRate = Figure(float64(b.OK) / float64(b.Scheduled))
	}
	if told > 0 {
		b.EarlyStopShare = Figure(float64(early) / float64(told))
	}
	return b
}

// throughput counts what ok rows brought over the window of v.
func (v *view) throughput(good func(i int32) bool) Throughput {
	t := Throughput{unknown, unknown, unknown, unknown, unknown}
	window := v.window()
	if window == 0 {
		return t
	}
	ok, goodput := 0, 0
	for _, i := range v.rows {
		if v.d.ok(i) {
			ok++
			if good != nil && good(i) {
				goodput++
			}
		}
	}
	t.WindowS, t.RequestsPerS = Figure(window), Figure(float64(ok)/window)
	if good != nil {
		t.GoodputPerS = Figure(float64(goodput) / window)
	}
	if out, told := v.d.outputSum(v.rows); told > 0 || ok == 0 {
		t.OutputTokensPerS = Figure(float64(out) / window)
		if in, told := v.d.inputSum(v.rows); told > 0 || ok == 0 {
			t.TotalTokensPerS = Figure(float64(out+in) / window)
		}
	}
	return t
}

// outputSum adds the output tokens of ok rows, and counts the rows that tell them.
func (d *Data) outputSum(rows []int32) (sum int64, told int) {
	for _, i := range rows {
		if n := d.outputTokens.at(i); d.ok(i) && n != noCount {
			sum += int64(n)
			told++
		}
	}
	return sum, told
}

// inputSum adds the input tokens of ok rows as usage told them, else as the trace asked, and counts the rows that
// have either.
func (d *Data) inputSum(rows []int32) (sum int64, told int) {
	for _, i := range rows {
		n := d.inputTokens.at(i)
		if n == noCount {
			n = d.inputLength.at(i)
		}
		if d.ok(i) && n != noCount {
			sum += int64(n)
			told++
		}
	}
	return sum, told
}

// unknownLengths names ok rows without output tokens, which every token figure lacks.
func (d *Data) unknownLengths(rows []int32, ok int) []string {
	if _, told := d.outputSum(rows); told < ok {
		return []string{fmt.Sprintf("output tokens: %d of %d ok requests tell none", ok-told, ok)}
	}
	return nil
}
