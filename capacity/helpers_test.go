package capacity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/capacity"
	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/replay"
	"tailgate/schemas"
	"tailgate/sim"
	"tailgate/synth"
)

// simRunner makes runs in virtual time on a cluster of the study.
type simRunner struct {
	sc     scenario
	b      *scenario // the other arm; null = the same
	mu     sync.Mutex
	made   []string
	failAt int  // the run, from 1, that cannot be made; 0 = none
	waves  bool // synthetic arrivals drift
	drawn  []capacity.Load
	loads  []capacity.Load
	spoil  func(l capacity.Load, s *schemas.RunFacts) // changes what the manifest says
}

func (r *simRunner) Run(ctx context.Context, l capacity.Load, dir string) error {
	r.mu.Lock()
	r.made, r.loads = append(r.made, l.Name), append(r.loads, l)
	n := len(r.made)
	r.mu.Unlock()
	if n == r.failAt {
		return errors.New("the target is down")
	}
	sc := r.sc
	if l.Cluster == capacity.ClusterB && r.b != nil {
		sc = *r.b
	}
	// The same load gives the same run, in whichever test: it is simulated once.
	key, err := json.Marshal(l)
	if err != nil {
		return err
	}
	once, _ := simulations.LoadOrStore(sc.spec+" "+string(key), sync.OnceValues(func() (*simulation, error) { return simulate(sc, l) }))
	run, err := once.(func() (*simulation, error))()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range run.files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	facts := run.facts
	if r.spoil != nil {
		r.spoil(l, &facts)
	}
	m := &schemas.Manifest{Kind: "run", RunID: simRunID, Clock: "virtual", Target: map[string]any{"simulated": r.sc.spec}, Files: run.digests, Run: &facts}
	return m.Write(dir)
}

const simRunID = "sim-000000000000"

// simulation is what a run leaves in its folder, without the manifest.
type simulation struct {
	files   map[string][]byte
	digests []schemas.FileDigest
	facts   schemas.RunFacts
}

// simulations are those of all tests, by engine and load.
var simulations sync.Map

// simulate makes a run in virtual time.
func simulate(sc scenario, l capacity.Load) (*simulation, error) {
	config, err := sim.ParseSpec(fmt.Sprintf("%s,seed=%d", sc.spec, rng.New(l.Seed, l.Name).Uint32()))
	if err != nil {
		return nil, err
	}
	cluster, err := sim.NewCluster(config)
	if err != nil {
		return nil, err
	}
	plan := &replay.Plan{RunID: simRunID, Warmup: l.Warmup, Length: l.Warmup + l.Length}
	var bursts []synth.Burst
	for _, b := range l.Bursts {
		burst := synth.Burst{At: l.Warmup + b.At, For: b.For, X: b.X}
		bursts = append(bursts, burst)
		plan.Bursts = append(plan.Bursts, replay.Span{From: burst.At, To: burst.At + burst.For})
	}
	rate := l.Rate
	if rate == 0 {
		rate = 10
	}
	at, err := synth.ArrivalsAlong(synth.ArrivalOptions{Kind: synth.Poisson, Duration: plan.Length, Seed: l.Seed}, synth.RateSeries{{Rate: rate}}, bursts)
	if err != nil {
		return nil, err
	}
	for i, when := range at {
		class := []string{"chat", "batch"}[i%2]
		out := int32(2)
		plan.Rows = append(plan.Rows, schemas.TraceRow{Row: int64(i), ScheduledUs: when.Microseconds(), InputTokens: int32(1 + i%7), OutputTokens: &out, Class: &class})
	}
	return record(plan, replay.Options{Concurrency: l.Concurrency, Duration: plan.Length}, cluster)
}

// Draw is Poisson, or with waves a load whose rate goes up and down over half an hour.
func (r *simRunner) Draw(_ context.Context, l capacity.Load) (*capacity.Traffic, error) {
	r.drawn = append(r.drawn, l)
	length := l.Warmup + l.Length
	var series synth.RateSeries
	for at := time.Duration(0); at < length; at += time.Minute {
		rate := l.Rate
		if r.waves {
			rate *= 1 + .6*math.Sin(2*math.Pi*at.Minutes()/30)
		}
		series = append(series, synth.RatePoint{At: at, Rate: rate})
	}
	at, err := synth.ArrivalsAlong(synth.ArrivalOptions{Kind: synth.Poisson, Duration: length, Seed: l.Seed}, series, nil)
	if err != nil {
		return nil, err
	}
	return capacity.NewTraffic(func(yield func(*schemas.TraceRow) bool) {
		for i, when := range at {
			if !yield(&schemas.TraceRow{Row: int64(i), ScheduledUs: when.Microseconds()}) {
				return
			}
		}
	})
}

// record runs a plan and takes up what it wrote.
func record(plan *replay.Plan, o replay.Options, cluster *sim.Cluster) (*simulation, error) {
	dir, err := os.MkdirTemp("", "tailgate-simulated-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	rec, err := replay.NewRecorder(dir, plan.RunID, schemas.Footer{Schema: schemas.TableResults})
	if err != nil {
		return nil, err
	}
	summary, err := replay.RunVirtual(context.Background(), plan, o, cluster, rec)
	if err != nil {
		return nil, err
	}
	run := &simulation{files: map[string][]byte{}, facts: summary.RunFacts}
	if run.digests, err = rec.Finish(); err != nil {
		return nil, err
	}
	for _, f := range run.digests {
		if run.files[f.Name], err = os.ReadFile(filepath.Join(dir, f.Name)); err != nil {
			return nil, err
		}
	}
	return run, nil
}

// fixedSeeds is the scenario of the tests that compare runs.
var fixedSeeds = scenarios[0]

// hour is the traffic of a plan: an hour at one request a second, of two classes.
func hour() *capacity.Traffic {
	t, err := capacity.NewTraffic(func(yield func(*schemas.TraceRow) bool) {
		for i := range 3600 {
			class := []string{"chat", "batch"}[i%2]
			if !yield(&schemas.TraceRow{Row: int64(i), ScheduledUs: int64(i) * 1e6, Class: &class}) {
				return
			}
		}
	})
	if err != nil {
		panic(err)
	}
	return t
}

const studyGate = `
capacity_gate:
  success_rate: ">= 0.99"
  ttft_p95: "<= 2s"
`

// quickPlan is a plan with short runs on the cluster of the first scenario.
func quickPlan(t *testing.T) *capacity.Plan {
	t.Helper()
	testshared.NotUnderRace(t, "a whole capacity test")
	p, err := capacity.ParsePlan("plan.yaml", []byte(`
target: "sim:"
trace: t.jsonl
gate: gate.yaml
cells: [mix/poisson]
ladder: {concurrency: [16, 32, 64], step: 5m}
search: {probe: 8m, min_probes: 4, error: 10%, confirm: 10m}
soak: {length: 10m, bursts: [{at: 4m, for: 1m, x: 2}]}
n_minus_1: {target: "sim:", rate: 2, length: 10m}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func open(t *testing.T, dir string, p *capacity.Plan, r capacity.Runner, digest string) (*capacity.Test, error) {
	t.Helper()
	gate, err := analyze.ParseGate("gate.yaml", []byte(studyGate), nil)
	if err != nil {
		t.Fatal(err)
	}
	return capacity.New(capacity.Options{Plan: p, Gate: gate, Traffic: hour(), Runner: r, Dir: dir, Digest: digest})
}

func mustOpen(t *testing.T, dir string, p *capacity.Plan, r capacity.Runner) *capacity.Test {
	t.Helper()
	test, err := open(t, dir, p, r, "digest")
	if err != nil {
		t.Fatal(err)
	}
	return test
}

func unique(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}
