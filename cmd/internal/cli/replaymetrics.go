package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tailgate/analyze"
	"tailgate/replay"
)

// replayMetrics shows the state of a running replay to Prometheus.
type replayMetrics struct {
	mu     sync.Mutex
	latest replay.Progress
}

// clientGauges are those of the series that telemetry keeps too, as client_NAME.
var clientGauges = []string{"in_flight", "backlog", "sent_rate"}

// replayGauges are the series. Counts are gauges: each run begins at 0.
var replayGauges = []struct {
	name, help string
	of         func(*replay.Progress) float64
}{
	{"elapsed_seconds", "Time since the schedule's zero.", func(p *replay.Progress) float64 { return p.Elapsed.Seconds() }},
	{"rows", "Requests of the plan.", func(p *replay.Progress) float64 { return float64(p.Rows) }},
	{"sent", "Requests sent so far.", func(p *replay.Progress) float64 { return float64(p.Sent) }},
	{"ok", "Requests that ended well so far.", func(p *replay.Progress) float64 { return float64(p.OK) }},
	{"failed", "Requests that failed so far.", func(p *replay.Progress) float64 { return float64(p.Failed) }},
	{"in_flight", "Requests in flight.", func(p *replay.Progress) float64 { return float64(p.InFlight) }},
	{"backlog", "Requests that are due and wait for the cap.", func(p *replay.Progress) float64 { return float64(p.Waiting) }},
	{"planned_rate", "Stamps a second over the last 10 s; 0 in a closed loop.", func(p *replay.Progress) float64 { return p.PlannedRate }},
	{"sent_rate", "Sends a second over the last 10 s.", func(p *replay.Progress) float64 { return p.SentRate }},
	{"output_tokens", "Output tokens of the requests that ended.", func(p *replay.Progress) float64 { return float64(p.OutputTokens) }},
	{"ttft_p50_seconds", "Median time to first token from scheduled so far; -1 before the first.", func(p *replay.Progress) float64 { return orMinusOne(p.TTFTP50) }},
	{"ttft_p99_seconds", "p99 of the time to first token from scheduled so far; -1 before the first.", func(p *replay.Progress) float64 { return orMinusOne(p.TTFTP99) }},
	{"lag_p99_seconds", "p99 of the client's own lateness so far; -1 before the first.", func(p *replay.Progress) float64 { return orMinusOne(p.LagP99) }},
}

func orMinusOne(d time.Duration) float64 {
	if d == replay.Never {
		return -1
	}
	return d.Seconds()
}

// show keeps the latest state.
func (m *replayMetrics) show(p replay.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latest = p
}

// serveReplayMetrics serves /metrics on address until ctx ends; "" serves nothing and returns null.
func (a *app) serveReplayMetrics(ctx context.Context, address string) (*replayMetrics, error) {
	if address == "" {
		return nil, nil
	}
	m := &replayMetrics{latest: replay.Progress{TTFTP50: replay.Never, TTFTP99: replay.Never, LagP99: replay.Never}}
	registry := prometheus.NewRegistry()
	for _, g := range replayGauges {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tailgate_replay_" + g.name, Help: g.help}, func() float64 {
			m.mu.Lock()
			defer m.mu.Unlock()
			return g.of(&m.latest)
		}))
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving metrics on %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	go func() { _ = web.Serve(l) }()
	a.note("metrics on http://%s/metrics", l.Addr())
	return m, nil
}

// replayEnd is what a replay that ended tells: the names are those of the running one where they mean the same.
func replayEnd(f *replayFlags, report *analyze.Report, code int) *prometheus.Registry {
	r := prometheus.NewRegistry()
	set := func(name, help string, v float64) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tailgate_replay_" + name, Help: help})
		g.Set(v)
		r.MustRegister(g)
	}
	set("start_time_seconds", "When the run began, in unix time.", unixSeconds(f.startedAt))
	set("end_time_seconds", "When it ended, in unix time.", unixSeconds(f.endedAt))
	set("exit_code", "Exit code: 0 done, or the gate passed; 3 it failed; 4 the run is invalid; 5 inconclusive.", float64(code))
	set("rows", "Requests that are judged.", float64(report.Scheduled))
	set("ok", "Of these, the requests that ended well.", float64(report.OK))
	set("not_sent", "Of these, the requests that a stop kept from being sent.", float64(report.NotSent))
	set("failed", "Of these, the requests that failed.", float64(report.Scheduled-report.OK-report.NotSent))
	valid := 1.0
	if report.Valid != nil && !*report.Valid {
		valid = 0
	}
	set("valid", "0 where our own side was too slow or settings contradict, else 1.", valid)
	for _, m := range report.Buckets[0].Metrics {
		seconds := map[string][2]float64{}
		switch m.Name {
		case "ttft_ms":
			seconds["ttft"] = [2]float64{float64(m.P50), float64(m.P99)}
		case "tpot_ms":
			seconds["tpot"] = [2]float64{float64(m.P50), float64(m.P99)}
		case "e2e_ms":
			seconds["e2e"] = [2]float64{float64(m.P50), float64(m.P99)}
		}
		for name, v := range seconds {
			if m.N > 0 {
				set(name+"_p50_seconds", "Median "+name+" of requests that ended well.", v[0]/1000)
				set(name+"_p99_seconds", "p99 of the "+name+" of requests that ended well.", v[1]/1000)
			}
		}
	}
	return r
}
