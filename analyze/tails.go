package analyze

import (
	"time"

	"tailgate/internal/stats"
)

// MetricTail is the tail of one metric over scheduled requests, failures infinite. Figures are in ms; null where no
// request tells the metric.
type MetricTail struct {
	Metric string `json:"metric"`
	N      int    `json:"n"`
	P50    Figure `json:"p50_ms"`
	P95    Figure `json:"p95_ms"`
	P99    Figure `json:"p99_ms"`
}

// TailsBetween are the tails of ttft, tpot, itl and e2e of the rows that are scheduled in [from, to) of one run, since
// its schedule's zero, warm-up and cool-down left out; to 0 = to the end. class restricts them; "" = all.
func (d *Data) TailsBetween(from, to time.Duration, class string) []MetricTail {
	v := newView(d, from, false)
	rows := make([]int32, 0, len(v.rows))
	for _, i := range v.rows {
		if to == 0 || d.scheduled.at(i) < to.Microseconds() {
			rows = append(rows, i)
		}
	}
	if class != "" {
		rows = d.matching(Tuple{{Key: "class", Text: &class}}, rows)
	}
	var out []MetricTail
	for _, m := range []metricName{{ttft, "ttft", ""}, {tpot, "tpot", ""}, {itl, "itl", ""}, {e2e, "e2e", ""}} {
		t := MetricTail{Metric: m.json, P50: unknown, P95: unknown, P99: unknown}
		if e := d.evidence(rows, m.metric); e.lacks == "" {
			n := e.size()
			at := e.smallest(stats.Rank(n, .5), stats.Rank(n, .95), stats.Rank(n, .99))
			t.N = n
			for k, f := range []*Figure{&t.P50, &t.P95, &t.P99} {
				*f = Figure(at[k] / 1e3)
			}
		}
		out = append(out, t)
	}
	return out
}
