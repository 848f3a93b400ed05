package main

import (
	"context"
	"fmt"
	"math"

	"tailgate/analyze"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// Comparisons are of runs of 20 min at 80 % of capacity, on the engine that has lengths of answers to vary.
const (
	compareMinutes = 20
	compareLoad    = .8
)

var compareScenarios = []string{"E2P", "E2G"}

// compareCounts are what `compare` said of pairs of runs on one trace.
type compareCounts struct {
	runs int
	// Changes called, and all of them, between two runs of one system and against one whose steps take 5 % longer.
	sameCalled, sameAll int
	slowCalled, slowAll int
	// Squared logarithms of the ratio of two runs' p95 ttft: on one trace, and on two.
	paired, apart float64
}

type compareTable map[string]compareCounts

func studyCompare(ctx context.Context, runs int) (compareTable, error) {
	var jobs []func() (compareTable, error)
	for _, s := range scenarios {
		for i := range runs {
			for _, name := range compareScenarios {
				if s.name == name {
					jobs = append(jobs, func() (compareTable, error) { return s.compareRun(ctx, uint64(i)) })
				}
			}
		}
	}
	return collect(ctx, jobs, func(all, one compareTable) {
		for name, c := range one {
			sum := all[name]
			all[name] = compareCounts{sum.runs + c.runs, sum.sameCalled + c.sameCalled, sum.sameAll + c.sameAll, sum.slowCalled + c.slowCalled,
				sum.slowAll + c.slowAll, sum.paired + c.paired, sum.apart + c.apart}
		}
	})
}

func (s scenario) compareRun(ctx context.Context, i uint64) (compareTable, error) {
	seed := rng.Hash(i, 6)
	l := load{rate: compareLoad * s.capacity, minutes: compareMinutes + warmupUs/60e6, seed: seed, noise: "a"}
	again, slow, other := l, l, l
	again.noise, slow.noise, slow.faults, other.seed = "b", "c", ",slow=0:1.05@0s", rng.Hash(i, 7)
	arms := make([]analyze.Arm, 0, 4)
	for _, arm := range []struct {
		name string
		load load
	}{{"a", l}, {"again", again}, {"slow", slow}, {"other", other}} {
		arms = append(arms, analyze.Arm{Name: arm.name, Data: whole(s.simulate(arm.load))})
	}
	c, err := analyze.Compare(ctx, arms[:3], analyze.CompareOptions{Resamples: 300, Seed: i})
	if err != nil {
		return nil, fmt.Errorf("comparing runs: %w", err)
	}
	out := compareCounts{runs: 1}
	for _, ch := range c.Changes {
		called := count(ch.Verdict == analyze.ChangeRose || ch.Verdict == analyze.ChangeFell)
		if ch.Arm == "again" {
			out.sameAll++
			out.sameCalled += called
		} else {
			out.slowAll++
			out.slowCalled += count(ch.Verdict == analyze.ChangeRose)
		}
	}
	var p95 [4]float64
	for k, arm := range arms {
		r, err := judged(ctx, arm.Data, p95Gate)
		if err != nil {
			return nil, err
		}
		p95[k] = math.Log(float64(r.Gate.Rules[0].Observed))
	}
	out.paired, out.apart = (p95[1]-p95[0])*(p95[1]-p95[0]), (p95[3]-p95[0])*(p95[3]-p95[0])
	return compareTable{s.name: out}, nil
}

// whole is a run with all that a comparison looks at.
func whole(rs []request) *analyze.Data {
	rows := func(yield func(*schemas.Result) bool) {
		for i := range rs {
			r := &rs[i]
			row := schemas.Result{RunID: "r", Row: int64(i), Phase: schemas.PhaseMeasure, ScheduledUs: r.at, SentUs: &r.at, FirstTokenUs: &r.first,
				LastTokenUs: &r.done, ClosedUs: &r.done, Streamed: true, Events: r.out, InputLength: r.in, InputTokens: &r.in,
				OutputLength: &r.planned, OutputTokens: &r.out, Status: schemas.ResultOK}
			if r.at < warmupUs {
				row.Phase = schemas.PhaseWarmup
			}
			if !yield(&row) {
				return
			}
		}
	}
	return analyze.FromResults(rows, &schemas.Manifest{Kind: "run", RunID: "r", Clock: "virtual", Inputs: []schemas.FileDigest{{SHA256: "trace"}},
		Run: &schemas.RunFacts{Scheduled: int64(len(rs)), DurationUs: (compareMinutes + 1) * 60e6, WarmupUs: warmupUs}})
}
