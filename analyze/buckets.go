package analyze

import (
	"fmt"
	"math"

	"tailgate/internal/stats"
)

// percentile is one that reports show.
type percentile struct {
	name, label string
	p           float64
	needs       int // how many values it needs to mean anything: 1/(1−p)
	of          func(*Metric) *Figure
	inTail      func(*Tail) *Figure
}

var percentiles = []percentile{
	{"p50", "p50", .5, 2, func(m *Metric) *Figure { return &m.P50 }, func(t *Tail) *Figure { return &t.P50 }},
	{"p90", "p90", .9, 10, func(m *Metric) *Figure { return &m.P90 }, func(t *Tail) *Figure { return &t.P90 }},
	{"p95", "p95", .95, 20, func(m *Metric) *Figure { return &m.P95 }, func(t *Tail) *Figure { return &t.P95 }},
	{"p99", "p99", .99, 100, func(m *Metric) *Figure { return &m.P99 }, func(t *Tail) *Figure { return &t.P99 }},
	{"p995", "p99.5", .995, 200, func(m *Metric) *Figure { return &m.P995 }, func(t *Tail) *Figure { return &t.P995 }},
	{"p999", "p99.9", .999, 1000, func(m *Metric) *Figure { return &m.P999 }, func(t *Tail) *Figure { return &t.P999 }},
}

// quantiles answers the k-th smallest of n finite values, 1-based.
type quantiles interface {
	count() int
	mean() float64
	smallest(ranks ...int) []float64
}

// describe fills a metric from its finite values and the number of infinite ones. With w, the percentiles of its tail
// get intervals.
func describe(name string, q quantiles, w worth, undefined, failed int, scale float64) Metric {
	n := q.count()
	m := Metric{Name: name, N: n, Undefined: undefined, Min: unknown, Mean: unknown, Max: unknown,
		Insufficient: []string{}, Needs: map[string]int{}, Tail: Tail{N: n + failed, NEff: unknown, Insufficient: []string{}}}
	ranks := []int{1, n}
	for _, p := range percentiles {
		ranks = append(ranks, stats.Rank(n, p.p))
		if n < p.needs {
			m.Insufficient = append(m.Insufficient, p.name)
			m.Needs[p.name] = p.needs
		}
		if m.Tail.N < p.needs {
			m.Tail.Insufficient = append(m.Tail.Insufficient, p.name)
			m.Needs[p.name] = p.needs
		}
	}
	for _, p := range percentiles {
		ranks = append(ranks, stats.Rank(n+failed, p.p))
	}
	at := pick(q, n, ranks)
	value := func(i int) Figure { return Figure(at[i] / scale) }
	if n > 0 {
		m.Min, m.Max, m.Mean = value(0), value(1), Figure(q.mean()/scale)
	}
	for i, p := range percentiles {
		*p.of(&m) = value(2 + i)
		*p.inTail(&m.Tail) = value(2 + len(percentiles) + i)
	}
	if w != nil {
		m.Tail.bound(q, n, w, at[2+len(percentiles):], scale)
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

// mixed are values with the infinite ones of failures among them. Ranks up to the number of finite ones fall on finite
// values, wherever the others stand, so that large samples need no copy.
type mixed struct {
	all    []float64
	finite int
}

func (m mixed) count() int { return m.finite }

func (m mixed) mean() float64 {
	sum := 0.0
	for _, x := range m.all {
		if !math.IsInf(x, 1) {
			sum += x
		}
	}
	return sum / float64(m.finite)
}

func (m mixed) smallest(ranks ...int) []float64 { return stats.Ranked(m.all, ranks...) }

// metric describes one metric of a cell, with the intervals of its tail.
func (d *Data) metric(c cell, m metric, name string) Metric { return d.metricOf(c.rows, m, name, true) }

// metricOf describes one metric of some rows, with intervals where wanted.
func (d *Data) metricOf(rows []int32, m metric, name string, intervals bool) Metric {
	rows = d.tails(rows)
	if m.pooled() {
		s := d.gapSample(rows, m)
		var w worth
		if intervals && s.size() > 0 {
			w = s
		}
		return describe(name, s.finite(), w, s.undefined, s.infinite(), m.scale())
	}
	s := d.rowSample(rows, m)
	vals := mixed{s.values, s.defined}
	var w worth
	if intervals {
		w = s
	}
	return describe(name, vals, w, s.ok-s.defined, len(s.values)-s.defined, m.scale())
}

// tally counts a cell; its metrics are filled in apart.
func (v *view) tally(c cell, good func(int32) bool) Bucket {
	d := v.d
	b := Bucket{By: c.by, Scheduled: len(c.rows), SuccessRate: unknown, EarlyStopShare: unknown, Attainment: unknown}
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
	if rows := d.tails(c.rows); good != nil && len(rows) > 0 {
		b.Attainment = Figure(float64(d.count(rows, good)) / float64(len(rows)))
	}
	b.Throughput = d.throughput(c.rows, v.measured(c.by), good)
	return b
}

// count counts the rows that are good.
func (d *Data) count(rows []int32, good func(int32) bool) int {
	n := 0
	for _, i := range rows {
		if good(i) {
			n++
		}
	}
	return n
}

// throughput counts what ok rows brought over a window in seconds.
func (d *Data) throughput(rows []int32, window float64, good func(i int32) bool) Throughput {
	t := Throughput{unknown, unknown, unknown, unknown, unknown}
	if window == 0 {
		return t
	}
	ok := d.count(rows, d.ok)
	t.WindowS, t.RequestsPerS = Figure(window), Figure(float64(ok)/window)
	if good != nil {
		t.GoodputPerS = Figure(float64(d.count(rows, good)) / window)
	}
	if out, told := d.outputSum(rows); told > 0 || ok == 0 {
		t.OutputTokensPerS = Figure(float64(out) / window)
		if in, told := d.inputSum(rows); told > 0 || ok == 0 {
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
