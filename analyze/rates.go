package analyze

import (
	"cmp"
	"slices"

	"tailgate/internal/stats"
)

// RatePoint is one of several runs: one point of a curve over the request rate.
type RatePoint struct {
	RunID        *string   `json:"run_id"`
	RequestRate  Figure    `json:"request_rate"` // scheduled per second of the schedule; null for a single instant
	Scheduled    int       `json:"scheduled"`
	SuccessRate  Figure    `json:"success_rate"`
	RequestsPerS Figure    `json:"requests_per_s"` // ok, over the window
	GoodputPerS  Figure    `json:"goodput_per_s"`  // null without a gate
	Tails        RateTails `json:"tails"`
}

// RateTails holds the tails of ttft, tpot and e2e.
type RateTails []RateTail

// RateTail is the tail of one metric, failures infinite.
type RateTail struct {
	Name string `json:"-"` // ttft_ms …
	N    int    `json:"n"`
	P50  Figure `json:"p50"`
	P95  Figure `json:"p95"`
	P99  Figure `json:"p99"`
}

// MarshalJSON writes an object with the metrics as names.
func (ts RateTails) MarshalJSON() ([]byte, error) {
	return objectOf(ts, func(t RateTail) string { return t.Name })
}

// rates describes each of several runs in order of their request rate; null for one run.
func (v *view) rates(g *Gate) []RatePoint {
	if len(v.periods) < 2 {
		return nil
	}
	good := func(int32) bool { return false }
	if g != nil {
		good = v.good(g)
	}
	var out []RatePoint
	for _, p := range v.periods {
		out = append(out, v.ratePoint(p, good))
		if g == nil {
			out[len(out)-1].GoodputPerS = unknown
		}
	}
	slices.SortStableFunc(out, func(a, b RatePoint) int { return cmp.Compare(a.RequestRate, b.RequestRate) })
	return out
}

func (v *view) ratePoint(p period, good func(int32) bool) RatePoint {
	rows := v.rows[p.from:p.to]
	point := RatePoint{Scheduled: len(rows), RequestRate: unknown, RequestsPerS: unknown, GoodputPerS: unknown}
	if id := v.d.Inputs[v.d.input.at(rows[0])].runID; id != "" {
		point.RunID = &id
	}
	ok, kept := 0, 0
	for _, i := range rows {
		if v.d.ok(i) {
			ok++
			if good(i) {
				kept++
			}
		}
	}
	point.SuccessRate = Figure(float64(ok) / float64(len(rows)))
	if p.end > p.start {
		point.RequestRate = Figure(float64(len(rows)) / (float64(p.end-p.start) / 1e6))
	}
	if p.done > p.start {
		window := float64(p.done-p.start) / 1e6
		point.RequestsPerS, point.GoodputPerS = Figure(float64(ok)/window), Figure(float64(kept)/window)
	}
	for _, m := range tailMetrics {
		point.Tails = append(point.Tails, v.d.rateTail(v.d.tails(rows), m))
	}
	return point
}

func (d *Data) rateTail(rows []int32, m tailMetric) RateTail {
	t := RateTail{Name: m.name, P50: unknown, P95: unknown, P99: unknown}
	all := d.rowSample(rows, m.m).values
	if t.N = len(all); t.N == 0 {
		return t
	}
	slices.Sort(all)
	at := func(p float64) Figure { return Figure(all[stats.Rank(t.N, p)-1] / m.m.scale()) }
	t.P50, t.P95, t.P99 = at(.5), at(.95), at(.99)
	return t
}
