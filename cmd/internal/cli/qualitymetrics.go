package cli

import (
	"github.com/prometheus/client_golang/prometheus"

	"tailgate/ingest"
)

// qualityMetrics put a report's quality into a registry, for all models and classes together: labels of small
// groups do not leave the lake this way.
func qualityMetrics(r *prometheus.Registry, stage string, q *ingest.Quality) {
	rows := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tailgate_" + stage + "_reconciled_rows",
		Help: "Rows with the engine's count of prompt tokens, by what became of our ids: equal, padded or cut."}, []string{"result"})
	diff := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tailgate_" + stage + "_count_diff_tokens",
		Help: "Our count of prompt tokens minus the engine's: mean, p50, and p95 of its size."}, []string{"stat"})
	r.MustRegister(rows, diff)
	for result, n := range map[string]int64{"equal": q.Total.Equal, "padded": q.Total.Padded, "cut": q.Total.Cut} {
		rows.WithLabelValues(result).Set(float64(n))
	}
	if q.Total.MeanDiff != nil {
		diff.WithLabelValues("mean").Set(*q.Total.MeanDiff)
		diff.WithLabelValues("p50").Set(float64(*q.Total.P50Diff))
		diff.WithLabelValues("p95_abs").Set(float64(*q.Total.P95Abs))
	}
}

// publishMetrics are what publish found.
func publishMetrics(p *ingest.PublishReport) *prometheus.Registry {
	r := prometheus.NewRegistry()
	for _, g := range []struct {
		name, help string
		value      float64
	}{
		{"rows", "Requests of the published day.", float64(p.Rows)},
		{"duplicates", "Rows that were merged with an equal one.", float64(p.Duplicates)},
		{"late_rows", "Rows that came after the last build.", float64(p.Late)},
		{"refused_rows", "Rows of another epoch that were left out.", float64(p.Refused)},
		{"hit_ratio", "Blocks that an earlier request of the day had too, of all blocks, in the segments.", p.Shared.HitRatio},
		{"kept_hit_ratio", "The same ratio in what was published.", p.Shared.KeptHits},
		{"lost_hit_ratio", "What the cross-tenant rule cost of it.", p.Shared.LostHits},
		{"updated_time_seconds", "When this file was written, in unix time.", unixSeconds(now())},
	} {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tailgate_publish_" + g.name, Help: g.help})
		gauge.Set(g.value)
		r.MustRegister(gauge)
	}
	qualityMetrics(r, "publish", &p.Quality)
	return r
}
