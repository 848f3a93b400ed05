package analyze

import "slices"

// RatePoint is one of several runs: one point of a curve over the request rate.
type RatePoint struct {
	RunID        *string `json:"run_id"`
	RequestRate  Figure  `json:"request_rate"` // scheduled per second of the schedule
	Scheduled    int     `json:"scheduled"`
	SuccessRate  Figure  `json:"success_rate"`
	RequestsPerS Figure  `json:"requests_per_s"` // ok, over the window
	GoodputPerS  Figure  `json:"goodput_per_s"`
	Metrics      Metrics `json:"metrics"` // ttft, tpot and e2e
}

// rateMetrics are those of a RatePoint.
var rateMetrics = []metric{ttft, tpot, e2e}

// rates describes each of several runs in order of their request rate; null for one run.
func (v *view) rates(good func(i int32) bool) []RatePoint {
	if len(v.periods) < 2 {
		return nil
	}
	var out []RatePoint
	for _, p := range v.periods {
		rows := v.rows[p.from:p.to]
		one := &view{d: v.d, rows: rows, periods: []period{p}}
		t := one.throughput(good)
		b := v.d.tally(cell{rows: rows})
		point := RatePoint{RequestRate: unknown, Scheduled: b.Scheduled, SuccessRate: b.SuccessRate, RequestsPerS: t.RequestsPerS, GoodputPerS: t.GoodputPerS}
		if id := v.d.Inputs[v.d.input.at(rows[0])].runID; id != "" {
			point.RunID = &id
		}
		if p.end > p.start {
			point.RequestRate = Figure(float64(len(rows)) / (float64(p.end-p.start) / 1e6))
		}
		for _, m := range metrics {
			if slices.Contains(rateMetrics, m.metric) {
				point.Metrics = append(point.Metrics, v.d.metric(cell{rows: rows}, m.metric, m.json))
			}
		}
		out = append(out, point)
	}
	slices.SortStableFunc(out, func(a, b RatePoint) int {
		switch {
		case a.RequestRate < b.RequestRate:
			return -1
		case a.RequestRate > b.RequestRate:
			return 1
		}
		return 0
	})
	return out
}
