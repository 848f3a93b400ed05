package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tailgate/internal/fault"
	"tailgate/replay"
	"tailgate/replay/telemetry"
	"tailgate/schemas"
	"tailgate/sim"
)

// telemetryFlags say what is looked at during a run.
type telemetryFlags struct {
	extra []string
	off   bool

	// connections counts those that the client has opened; null where nothing is sent over a network.
	connections func() int64

	sampler *telemetry.Sampler
	rec     *telemetry.Recorder
	zero    time.Time
}

func (f *telemetryFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.extra, "telemetry", nil, "`[NAME=]URL` of metrics to look at each second beside the targets' own /metrics: DCGM, node exporter, Triton … (repeatable)")
	fl.BoolVar(&f.off, "no-telemetry", false, "do not look at the targets' metrics")
}

// endpoints are the targets' own expositions, and those that were named.
func (f *telemetryFlags) endpoints(targets []string, key string) []telemetry.Endpoint {
	var out []telemetry.Endpoint
	for _, t := range targets {
		out = append(out, telemetry.Endpoint{Target: t, URL: telemetry.MetricsURL(t), Key: key})
	}
	for _, e := range f.extra {
		name, url, named := strings.Cut(e, "=")
		if !named || strings.Contains(name, ":") {
			name, url = e, e
		}
		out = append(out, telemetry.Endpoint{Target: name, URL: url})
	}
	return out
}

// watchTargets makes the sampler, looks once, and refuses a rule of abort_if on a metric that nobody tells.
func (f *telemetryFlags) watchTargets(ctx context.Context, a *app, c *clusterFlags, told map[string]any) error {
	if f.off {
		return f.refuse(c.AbortIf, nil)
	}
	key, err := a.apiKey()
	if err != nil {
		return err
	}
	// A target that answers whatever it is asked has no metrics, and would count each look as a request.
	urls := slices.DeleteFunc(slices.Clone(c.URLs), func(url string) bool { return answersAnything(told, url) })
	endpoints := f.endpoints(urls, key)
	if len(endpoints) == 0 {
		return f.refuse(c.AbortIf, nil)
	}
	if f.sampler, err = telemetry.New(telemetry.Options{Endpoints: endpoints, Logger: a.logger()}); err != nil {
		return err
	}
	seen := f.sampler.Probe(ctx)
	var metrics []string
	for i, t := range seen {
		metrics = append(metrics, t.Metrics...)
		if t.Failed > 0 && i >= len(urls) {
			return fault.Mark(fmt.Errorf("looking at --telemetry %s: %s", t.Target, t.Fault), fault.Failure, "")
		}
		if t.Failed > 0 {
			a.note("%s shows no metrics: %s", t.Target, t.Fault)
		}
	}
	told["telemetry"] = seen
	return f.refuse(c.AbortIf, metrics)
}

// answersAnything tells what Probe found of a target.
func answersAnything(told map[string]any, url string) bool {
	targets, _ := told["targets"].([]any)
	return slices.ContainsFunc(targets, func(v any) bool {
		about, _ := v.(map[string]any)
		return about["url"] == url && about["answers_anything"] == true
	})
}

// refuse names the rules that could never stop the run.
func (f *telemetryFlags) refuse(rules []replay.AbortRule, metrics []string) error {
	own := []string{replay.MetricErrorRate, "in_flight", "backlog", "sent_rate"}
	var errs []error
	for _, r := range rules {
		if !slices.Contains(own, r.Metric) && !slices.Contains(metrics, telemetry.Canonical(r.Metric)) {
			errs = append(errs, fmt.Errorf("abort_if: no target tells %s, so %q would never stop the run", r.Metric, r.Text))
		}
	}
	return allFaults(errors.Join(errs...))
}

// record looks at the targets during a real run.
func (f *telemetryFlags) record(o *replay.Options, dir, runID string, footer schemas.Footer) {
	f.rec = telemetry.NewRecorder(dir, runID, footer)
	if f.sampler != nil {
		o.Gauge = f.sampler.Gauge
	}
	o.OnStart = func(zero time.Time) {
		f.zero = zero
		if f.sampler != nil {
			f.sampler.Start(zero, f.rec)
		}
	}
	shown, looks := o.OnProgress, 0
	o.OnProgress = func(p replay.Progress) {
		f.rec.Add(p.Elapsed.Microseconds(), schemas.TargetClient, f.clientValues(p))
		if looks++; looks%5 == 0 {
			_ = f.rec.Flush() // the error comes back at the end
		}
		if shown != nil {
			shown(p)
		}
	}
}

func (f *telemetryFlags) clientValues(p replay.Progress) []telemetry.Value {
	var values []telemetry.Value
	for _, g := range replayGauges {
		if slices.Contains(clientGauges, g.name) {
			values = append(values, telemetry.Value{Metric: "client_" + g.name, Labels: map[string]string{}, Value: g.of(&p)})
		}
	}
	if f.connections != nil {
		values = append(values, telemetry.Value{Metric: schemas.MetricClientConnections, Labels: map[string]string{},
			Value: float64(f.connections()), Cumulative: true})
	}
	return values
}

// recordVirtual looks at the simulated replicas once a second of virtual time.
func (f *telemetryFlags) recordVirtual(o *replay.Options, cluster *sim.Cluster, dir, runID string, footer schemas.Footer) {
	if f.off {
		return
	}
	f.rec = telemetry.NewRecorder(dir, runID, footer)
	looks := 0
	o.OnLook = func(at time.Duration) {
		for i, s := range cluster.Stats() {
			f.rec.Add(at.Microseconds(), "replica-"+strconv.Itoa(i), simValues(s))
		}
		if looks++; looks%600 == 0 {
			_ = f.rec.Flush() // the error comes back at the end
		}
	}
}

// simValues are a replica's counters under the canonical names.
func simValues(s sim.ReplicaStats) []telemetry.Value {
	labels := map[string]string{"engine": "0"}
	return []telemetry.Value{
		{Metric: schemas.MetricKVUsedRatio, Labels: labels, Value: s.KVUsage},
		{Metric: schemas.MetricRequestsRunning, Labels: labels, Value: float64(s.Running)},
		{Metric: schemas.MetricRequestsWaiting, Labels: labels, Value: float64(s.Waiting)},
		{Metric: schemas.MetricGenerationTokens, Labels: labels, Value: float64(s.GenerationTokens), Cumulative: true},
		{Metric: schemas.MetricPreemptions, Labels: labels, Value: float64(s.Preemptions), Cumulative: true},
		{Metric: schemas.MetricPrefixHitTokens, Labels: labels, Value: float64(s.PrefixHits), Cumulative: true},
		{Metric: schemas.MetricPrefixQueryTokens, Labels: labels, Value: float64(s.PrefixQueries), Cumulative: true},
		{Metric: schemas.MetricPromptTokens, Labels: labels, Value: float64(s.PromptTokens), Cumulative: true},
	}
}

// finish ends the looks, and returns the table's digest, if there is one, and what was seen.
func (f *telemetryFlags) finish() (files []schemas.FileDigest, told []telemetry.Told, err error) {
	if f.rec == nil {
		return nil, nil, nil
	}
	if f.sampler != nil && !f.zero.IsZero() {
		told = f.sampler.Stop(f.zero, f.rec)
	}
	d, err := f.rec.Finish()
	if d.Name != "" {
		files = append(files, d)
	}
	return files, told, err
}
