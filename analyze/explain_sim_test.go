package analyze_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/replay"
	"tailgate/replay/telemetry"
	"tailgate/schemas"
	"tailgate/sim"
)

// studyEngine is the batching engine that the rules of verdicts were measured on: 5.61 requests/s a replica.
const studyEngine = "sim:a=12,b=0.06,c=0.3,d=0,e=0,kv_tokens=16777216,max_num_seqs=64,max_num_batched_tokens=1056"

// simulatedRun is one run in virtual time and what is planted in it.
type simulatedRun struct {
	spec    string // of the engine
	faults  []string
	rate    float64 // requests per second
	minutes float64
	seed    uint64
	trace   func(r *rand.Rand, rows []schemas.TraceRow) []schemas.TraceRow // planted in the trace; null = nothing
	results func(r *rand.Rand, rows []schemas.Result)                      // planted in what was measured; null = nothing
	warmup  time.Duration                                                  // left out of what is judged
	blind   bool                                                           // the servers tell no times of their own
}

func lognormal(r *rand.Rand, mean, cv float64) float64 {
	s2 := math.Log1p(cv * cv)
	return mean * math.Exp(math.Sqrt(s2)*r.NormFloat64()-s2/2)
}

// rows are Poisson arrivals with the study's lengths.
func (p simulatedRun) rows() []schemas.TraceRow {
	r := rng.New(p.seed, "trace")
	var rows []schemas.TraceRow
	for at := r.ExpFloat64() / p.rate; at < p.minutes*60; at += r.ExpFloat64() / p.rate {
		rows = append(rows, traceRow(r, at))
	}
	if p.trace != nil {
		rows = p.trace(r, rows)
	}
	slices.SortStableFunc(rows, func(a, b schemas.TraceRow) int { return int(a.ScheduledUs - b.ScheduledUs) })
	for i := range rows {
		rows[i].Row = int64(i)
	}
	return rows
}

func traceRow(r *rand.Rand, at float64) schemas.TraceRow {
	out := int32(min(2000, max(2, lognormal(r, 220, 1))))
	return schemas.TraceRow{ScheduledUs: int64(at * 1e6), InputTokens: int32(min(8192, max(16, lognormal(r, 1200, 1.2)))), OutputTokens: &out}
}

// run writes the run's folder.
func (p simulatedRun) run(t testing.TB) string {
	t.Helper()
	testshared.NotUnderRace(t, "simulated runs of one thread")
	config, err := sim.ParseSpec(p.spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range p.faults {
		f, err := sim.ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		config.Faults = append(config.Faults, f)
	}
	config.Seed = p.seed
	cluster, err := sim.NewCluster(config)
	if err != nil {
		t.Fatal(err)
	}
	dir, plan := t.TempDir(), &replay.Plan{RunID: fmt.Sprint("run-", p.seed), Rows: p.rows(), BlockSize: 512, Warmup: p.warmup, Length: time.Duration(p.minutes * float64(time.Minute))}
	recorder, err := replay.NewRecorder(dir, plan.RunID, schemas.Footer{})
	if err != nil {
		t.Fatal(err)
	}
	seen := telemetry.NewRecorder(dir, plan.RunID, schemas.Footer{})
	summary, err := replay.RunVirtual(t.Context(), plan, replay.Options{OnLook: func(at time.Duration) { look(seen, cluster, at) }}, cluster, recorder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recorder.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := seen.Finish(); err != nil {
		t.Fatal(err)
	}
	p.change(t, dir)
	m := schemas.Manifest{Kind: "run", RunID: plan.RunID, StartedAt: time.Unix(0, 0).UTC(), Clock: "virtual", Run: &summary.RunFacts}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// look records what the command records of simulated replicas.
func look(to *telemetry.Recorder, cluster *sim.Cluster, at time.Duration) {
	for i, s := range cluster.Stats() {
		values := []telemetry.Value{{Metric: schemas.MetricKVUsedRatio, Value: s.KVUsage}, {Metric: schemas.MetricRequestsRunning, Value: float64(s.Running)},
			{Metric: schemas.MetricRequestsWaiting, Value: float64(s.Waiting)}, {Metric: schemas.MetricPreemptions, Value: float64(s.Preemptions)}}
		to.Add(at.Microseconds(), "replica-"+strconv.Itoa(i), values)
	}
}

// change plants what is planted in the results.
func (p simulatedRun) change(t testing.TB, dir string) {
	t.Helper()
	if p.results == nil && !p.blind {
		return
	}
	path := dir + "/results.parquet"
	rows, footer, err := parquetio.ReadFile[schemas.Result](path)
	if err != nil {
		t.Fatal(err)
	}
	if p.results != nil {
		p.results(rng.New(p.seed, "results"), rows)
	}
	for i := range rows {
		if p.blind {
			rows[i].ServerQueueUs, rows[i].ServerPrefillUs = nil, nil
		}
	}
	if err := parquetio.WriteFile(path, footer, rows); err != nil {
		t.Fatal(err)
	}
}

// loadExplained loads a run with what an explanation needs.
func loadExplained(t testing.TB, dir string) *analyze.Data {
	t.Helper()
	d, err := analyze.LoadExplained(context.Background(), []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func explain(t testing.TB, d *analyze.Data, gateText string, o analyze.ExplainOptions) *analyze.Explanation {
	t.Helper()
	e, err := analyze.Explain(context.Background(), d, analyze.Options{Gate: gate(t, gateText)}, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// percentileOf is a plain percentile of a run in ms.
func percentileOf(t testing.TB, d *analyze.Data, name string, of func(analyze.Metric) analyze.Figure) float64 {
	t.Helper()
	return float64(of(metric(t, report(t, d, "").Buckets[0], name)))
}

func msLimit(ms float64) string { return fmt.Sprintf("<= %.0fms", ms) }
