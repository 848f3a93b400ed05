package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tailgate/analyze"
	"tailgate/schemas"
)

// warmupUs is the fixed cut of the study's gates.
const warmupUs = 60_000_000

// data are the requests of the first minutes after the warm-up, as a finished run.
func data(rs []request, warmup int64, minutes float64, bursts ...schemas.BurstSpan) *analyze.Data {
	until := warmup + int64(minutes*60e6)
	n, _ := slices.BinarySearchFunc(rs, until, func(r request, at int64) int { return cmp.Compare(r.at, at) })
	rows := func(yield func(*schemas.Result) bool) {
		for i := range rs[:n] {
			r := &rs[i]
			row := schemas.Result{RunID: "r", Row: int64(i), Phase: schemas.PhaseMeasure, ScheduledUs: r.at, SentUs: &r.at, FirstTokenUs: &r.first,
				ClosedUs: &r.done, Streamed: true, Status: schemas.ResultOK}
			if r.at < warmup {
				row.Phase = schemas.PhaseWarmup
			}
			if !yield(&row) {
				return
			}
		}
	}
	return analyze.FromResults(rows, &schemas.Manifest{Kind: "run", RunID: "r", Clock: "virtual",
		Run: &schemas.RunFacts{Scheduled: int64(n), DurationUs: until, WarmupUs: warmup, Bursts: bursts}})
}

// gateOf reads a gate file.
func gateOf(text string) *analyze.Gate {
	g, err := analyze.ParseGate("gate.yaml", []byte(text), nil)
	if err != nil {
		panic(fmt.Sprintf("the gate %s: %v", text, err)) // made by this program
	}
	return g
}

// judged are the verdicts of a gate on a run: what `tailgate analyze --gate` would say.
func judged(ctx context.Context, d *analyze.Data, g *analyze.Gate) (*analyze.Report, error) {
	r, err := analyze.Analyze(ctx, d, analyze.Options{Gate: g})
	if err != nil {
		return nil, fmt.Errorf("judging a run: %w", err)
	}
	return r, nil
}
