package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/sim"
)

// observed replays arrivals and returns what a client would record, with the queue times that the engine tells.
func observed(t testing.TB, c *sim.Cluster, arrivals []arrival) []sim.Observation {
	t.Helper()
	obs := make([]sim.Observation, len(arrivals))
	drive(c, list(arrivals), func(ev schemas.EngineEvent) {
		o := &obs[ev.ID]
		us := ev.AtNs / 1000
		if ev.Tokens > 0 {
			if o.First == 0 {
				o.First = us
				o.FirstTokens = ev.Tokens
			}
			o.Last = us
		}
		if ev.Done {
			o.OK = ev.Status == schemas.ResultOK
			o.Target = fmt.Sprint(ev.Target)
			o.Sent, o.Queue = arrivals[ev.ID].at.Microseconds(), ev.QueueNs/1000
			o.Input, o.Cached, o.Output = ev.InputTokens, ev.CachedTokens, ev.OutputTokens
		}
	})
	return obs
}

// mixed is Poisson traffic of short and long prompts and answers.
func mixed(seed uint64, n int, rate float64, longest int32) []arrival {
	r := rng.New(seed, "lengths")
	next := poisson(seed, n, rate, func(int) schemas.TraceRow { return mixedRow(r, longest) })
	var arrivals []arrival
	for a, ok := next(); ok; a, ok = next() {
		arrivals = append(arrivals, a)
	}
	return arrivals
}

func mixedRow(r *rand.Rand, longest int32) schemas.TraceRow {
	return row(lognormal(r, 1500, 1.5, 16, longest), lognormal(r, 200, 1, 2, 2000))
}

// delayed adds to every stamp of a client an exponential delay of the given mean in µs.
func delayed(obs []sim.Observation, seed uint64, mean float64) {
	r := rng.New(seed, "jitter")
	for i := range obs {
		o := &obs[i]
		o.First += int64(r.ExpFloat64() * mean)
		o.Last = max(o.First, o.Last+int64(r.ExpFloat64()*mean))
	}
}

// untold takes away what only some servers tell.
func untold(obs []sim.Observation) {
	for i := range obs {
		obs[i].Queue = -1
	}
}

func truth(c sim.Config) map[string]float64 {
	return map[string]float64{"a": c.A, "b": c.B, "c": c.C, "d": c.D, "e": c.E, "f": c.F}
}

// The coefficients of every preset come back from a run of 1,500 requests, at light load and at the edge of what
// the slowest holds, to 1 part in 1,000, and lie in their intervals; every step is counted.
func TestFitFindsThePresets(t *testing.T) {
	testshared.NotUnderRace(t, "virtual time, in one thread")
	for _, p := range sim.Presets() {
		for _, rate := range []float64{1, 2} {
			c := mustCluster(t, p.Config)
			obs := observed(t, c, mixed(1, 1500, rate, 16_000))
			f, err := sim.FitSteps(obs, sim.FitOptions{Base: p.Config, ActiveExperts: p.Config.ActiveExperts, Experts: p.Config.Experts})
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
				continue
			}
			want := truth(p.Config)
			off := 0.0
			for _, x := range f.Coefficients {
				v, known := want[x.Name]
				if known && v > 0 {
					off = max(off, math.Abs(x.Value/v-1))
				}
				if known && (v < x.Low || v > x.High || math.Abs(x.Value-v) > .001*v+1e-10) {
					t.Errorf("%s at %v/s: %s = %v in [%v, %v], truth %v", p.Name, rate, x.Name, x.Value, x.Low, x.High, v)
				}
			}
			t.Logf("%s at %v/s: within %.2g of every coefficient, %.4f of the requests agree", p.Name, rate, off, f.Agreeing)
			if steps := float64(c.Stats()[0].Steps); f.Agreeing < .97 || math.Abs(f.Steps-steps) > .001*steps {
				t.Errorf("%s at %v/s: counts %v of %v steps, agrees with %v of the requests %v", p.Name, rate, f.Steps, steps, f.Agreeing, f.Notes)
			}
			got, err := sim.ParseSpec(f.Spec())
			if err != nil || got.KVTokens != p.Config.KVTokens || got.MaxBatchedTokens != p.Config.MaxBatchedTokens {
				t.Errorf("%s: spec %s: %v", p.Name, f.Spec(), err)
			}
		}
	}
}

// How often the 95 % intervals hold the truth, by what is known: exact stamps, stamps that are late by a random
// time as a client's are, servers that tell their queue times and servers that do not.
func TestFitIntervalsHoldTheTruth(t *testing.T) {
	testshared.NotUnderRace(t, "virtual time, in one thread")
	p := mustConfig(t, "sim:replicas=2")
	seeds := uint64(prove(t, 8, 100))
	for _, tc := range []struct {
		jitter float64
		told   bool
		least  float64 // share of intervals, of all coefficients together
		off    float64 // most relative error of a and b
	}{{0, true, .95, 1e-3}, {0, false, .95, 1e-3}, {50, true, .9, 2e-3}, {50, false, .9, 5e-3}, {500, true, .85, 5e-3}, {500, false, .9, .01}} {
		hits, all, worst := 0.0, 0.0, 0.0
		for seed := range seeds {
			obs := observed(t, mustCluster(t, p), mixed(seed, 1500, 6, 16_000))
			delayed(obs, seed, tc.jitter)
			if !tc.told {
				untold(obs)
			}
			f, err := sim.FitSteps(obs, sim.FitOptions{Base: p})
			if err != nil {
				t.Fatal(err)
			}
			want := truth(p)
			for _, x := range f.Coefficients {
				v, known := want[x.Name]
				if !known {
					continue
				}
				all++
				if x.Low <= v && v <= x.High {
					hits++
				}
				if x.Name == "a" || x.Name == "b" {
					worst = max(worst, math.Abs(x.Value/v-1))
				}
			}
		}
		t.Logf("delays of %v µs, queue times told %v: %.3f of %v intervals hold the truth, a and b are within %.2g", tc.jitter, tc.told, hits/all, all, worst)
		if hits/all < tc.least || worst > tc.off {
			t.Errorf("delays of %v µs, queue times told %v: %.3f of the intervals hold the truth, a and b are off by up to %v", tc.jitter, tc.told, hits/all, worst)
		}
	}
}

func TestFitWithPrefixHitsPreemptionAndFailures(t *testing.T) {
	p := mustConfig(t, "sim:kv_tokens=60000,cut=3%,http_503=2%,max_num_batched_tokens=2048,max_num_seqs=256")
	arrivals := mixed(2, 4000, 9, 8000)
	for i := range arrivals {
		// Every third prompt starts with one of twenty beginnings of 1,024 tokens.
		if r := &arrivals[i].row; i%3 == 0 && r.InputTokens > 1100 {
			r.HashIDs = []int64{int64(i % 20), int64(i % 20)}
		}
	}
	c := mustCluster(t, p)
	f, err := sim.FitSteps(observed(t, c, arrivals), sim.FitOptions{Base: p})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Stats()[0]; s.Preemptions < 20 || s.PrefixHits == 0 {
		t.Fatalf("the test is too weak: %+v", s)
	}
	t.Log(f.Coefficients, f.Agreeing, f.Notes)
	if len(f.Notes) == 0 || f.Unusable < 100 {
		t.Errorf("%d unusable, notes %q", f.Unusable, f.Notes)
	}
	want := truth(p)
	for _, x := range f.Coefficients[:4] {
		near(t, x.Name, x.Value, want[x.Name], .01)
	}
}

func TestFitSaysWhatARunDoesNotTell(t *testing.T) {
	p := mustConfig(t, "sim:")
	// One request at a time, always alike.
	obs := observed(t, mustCluster(t, p), steady(100, 10*time.Second, func(int) schemas.TraceRow { return row(1000, 50) }))
	f, err := sim.FitSteps(obs, sim.FitOptions{Base: p})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range f.Coefficients {
		if x.Name == "c" && (x.Note == "" || !math.IsNaN(x.Low)) {
			t.Errorf("c cannot be told from a: %+v", x)
		}
	}
	for name, obs := range map[string][]sim.Observation{"nothing": nil, "few": obs[:5], "failed": make([]sim.Observation, 100)} {
		if _, err := sim.FitSteps(obs, sim.FitOptions{Base: p}); fault.Of(err) != fault.Data {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sim.FitSteps(obs, sim.FitOptions{Base: p, ActiveExperts: 9, Experts: 8, Confidence: 2}); fault.Of(err) != fault.Usage {
		t.Errorf("bad options: %v", err)
	}
}

// The fitted engine, given the same requests, tells how far it is from the run.
func TestFitChecksItself(t *testing.T) {
	p := mustConfig(t, "sim:replicas=2")
	obs := observed(t, mustCluster(t, p), mixed(3, 1500, 6, 16_000))
	f, err := sim.FitSteps(obs, sim.FitOptions{Base: p})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range f.Check(obs) {
		if math.Abs(x.Fitted/x.Measured-1) > .002 || x.N < 1400 {
			t.Errorf("%+v", x)
		}
	}
	slow := *f
	slow.Config.A *= 1.5
	if x := slow.Check(obs)[2]; x.Metric != "tpot_p50" || x.Fitted < 1.2*x.Measured {
		t.Errorf("a slower engine: %+v", x)
	}
}
