package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tailgate/ingest"
	"tailgate/internal/promfile"
)

// metricsEvery is how often the metrics file of a running job is written.
const metricsEvery = 5 * time.Second

// ingestMetrics writes the state of an ingest as a Prometheus text file, whole each time, for the node exporter's
// textfile collector.
type ingestMetrics struct {
	out      *metricsFlags
	last     time.Time
	registry *prometheus.Registry
	gauges   map[string]prometheus.Gauge
	reasons  *prometheus.GaugeVec
	lag      *prometheus.GaugeVec
	skew     *prometheus.GaugeVec
}

// Counters are gauges here: each run counts from 0 and names its start.
var ingestGauges = []struct{ name, help string }{
	{"records", "Offsets consumed by this run."},
	{"bytes", "Bytes of messages consumed by this run."},
	{"rows", "Rows made by this run."},
	{"dead_letters", "Records that became dead letters in this run."},
	{"segments", "Segments published by this run."},
	{"conflicts", "Segments given up because another writer had them."},
	{"behind_records", "Offsets left to the mark, or to the end of a followed log; -1 when not known."},
	{"buffered_bytes", "Bytes of rows that open segments hold in memory."},
	{"start_time_seconds", "When this run began, in unix time."},
	{"updated_time_seconds", "When this file was written, in unix time."},
	{"end_time_seconds", "When this run ended, in unix time; 0 while it runs."},
	{"success", "1 when this run ended well, else 0."},
}

func newIngestMetrics(out *metricsFlags) *ingestMetrics {
	m := &ingestMetrics{out: out, registry: prometheus.NewRegistry(), gauges: map[string]prometheus.Gauge{}}
	for _, g := range ingestGauges {
		m.gauges[g.name] = prometheus.NewGauge(prometheus.GaugeOpts{Name: "tailgate_ingest_" + g.name, Help: g.help})
		m.registry.MustRegister(m.gauges[g.name])
	}
	m.reasons = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tailgate_ingest_not_rows",
		Help: "Records of this run that gave no row, by kind and reason."}, []string{"kind", "reason"})
	m.lag = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tailgate_ingest_log_lag_seconds",
		Help: "Median time from a request's end, by its own clock, to the log."}, []string{"clock"})
	m.skew = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tailgate_ingest_clock_skew_seconds",
		Help: "How far that lies from the median of all clocks: an estimate, by which nothing is corrected."}, []string{"clock"})
	m.registry.MustRegister(m.reasons, m.lag, m.skew)
	m.gauges["start_time_seconds"].Set(unixSeconds(now()))
	return m
}

// progress takes a look at the running job and writes the file now and then.
func (m *ingestMetrics) progress(p ingest.Progress) error {
	for name, v := range map[string]int64{
		"records": p.Records, "bytes": p.Bytes, "rows": p.Rows, "dead_letters": p.Dead, "segments": p.Segments,
		"conflicts": p.Conflicts, "behind_records": p.Behind, "buffered_bytes": p.Buffered,
	} {
		m.gauges[name].Set(float64(v))
	}
	m.clocks(p.Clocks)
	if m.out.file == "" || time.Since(m.last) < metricsEvery {
		return nil
	}
	m.last = time.Now()
	m.gauges["updated_time_seconds"].Set(unixSeconds(now()))
	text, err := promfile.Text(m.registry)
	if err != nil {
		return err
	}
	return promfile.WriteFile(m.out.file, text)
}

// end writes the file for the last time, and pushes.
func (m *ingestMetrics) end(ctx context.Context, a *app, report *ingest.Report, failed bool) error {
	if report != nil {
		m.clocks(report.Clocks)
		for reason, n := range report.Total.Skips {
			m.reasons.WithLabelValues("skipped", reason).Set(float64(n))
		}
		for reason, n := range report.Total.Dead {
			m.reasons.WithLabelValues("dead", reason).Set(float64(n))
		}
	}
	if report != nil {
		qualityMetrics(m.registry, "ingest", &report.Quality)
	}
	m.gauges["end_time_seconds"].Set(unixSeconds(now()))
	if !failed {
		m.gauges["success"].Set(1)
	}
	m.gauges["updated_time_seconds"].Set(unixSeconds(now()))
	return m.out.end(ctx, a, m.registry)
}

func (m *ingestMetrics) clocks(list []ingest.ClockLag) {
	for _, c := range list {
		m.lag.WithLabelValues(c.Clock).Set(float64(c.MedianUs) / 1e6)
		m.skew.WithLabelValues(c.Clock).Set(float64(c.SkewUs) / 1e6)
	}
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

// ingestRate follows the speed of a running ingest.
type ingestRate struct{ last ingest.Progress }

// text is a line of progress: what was done, how fast, and how long it still takes at the speed of the last look.
func (r *ingestRate) text(p ingest.Progress) string {
	span := (p.Elapsed - r.last.Elapsed).Seconds()
	perSecond := 0.0
	if span > 0 {
		perSecond = float64(p.Records-r.last.Records) / span
	}
	r.last = p
	text := fmt.Sprintf("%d records (%.0f/s), %.1f MB, %d rows, %d dead letters", p.Records, perSecond, float64(p.Bytes)/1e6, p.Rows, p.Dead)
	if p.Behind < 0 {
		return text
	}
	text += fmt.Sprintf(", lag %d", p.Behind)
	if p.Behind > 0 && perSecond > 0 {
		eta := time.Duration(float64(p.Behind) / perSecond * float64(time.Second))
		text += ", ETA " + eta.Round(time.Second).String()
	}
	return text
}
