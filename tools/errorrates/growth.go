package main

import (
	"context"
	"fmt"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// growthMinutes are the lengths of run at which queue growth is judged, after 120 s.
var growthMinutes = []float64{20, 30, 60}

const growthWarmupUs = 120_000_000

var growthGate = gateOf("capacity_gate: {queue_growth: no_sustained_growth}")

// growthLoads are rates ÷ capacity.
var growthLoads = []float64{.70, .85, .90, .95, 1.02, 1.05, 1.10}

type growthCell struct {
	scenario     string
	rho, minutes float64
}

// flags counts what the rule of queue growth said of some runs.
type flags struct{ runs, growing, unknown int }

type growthTable map[growthCell]flags

func studyGrowth(ctx context.Context, runs int, loads []float64) (growthTable, error) {
	var jobs []func() (growthTable, error)
	for _, s := range scenarios {
		for _, rho := range loads {
			for i := range runs {
				seed := rng.Hash(uint64(i), 2, uint64(rho*1e6))
				jobs = append(jobs, func() (growthTable, error) { return s.growthRun(ctx, rho, seed) })
			}
		}
	}
	return collect(ctx, jobs, addFlags)
}

func addFlags[T ~map[K]flags, K comparable](all, one T) {
	for cell, f := range one {
		sum := all[cell]
		all[cell] = flags{sum.runs + f.runs, sum.growing + f.growing, sum.unknown + f.unknown}
	}
}

func (s scenario) growthRun(ctx context.Context, rho float64, seed uint64) (growthTable, error) {
	longest := growthMinutes[len(growthMinutes)-1]
	rs := s.simulate(load{rate: rho * s.capacity, minutes: longest + growthWarmupUs/60e6, seed: seed})
	out := growthTable{}
	for _, minutes := range growthMinutes {
		f, err := grows(ctx, rs, minutes)
		if err != nil {
			return nil, err
		}
		out[growthCell{s.name, rho, minutes}] = f
	}
	return out, nil
}

// grows is what the rule says of a run.
func grows(ctx context.Context, rs []request, minutes float64, bursts ...schemas.BurstSpan) (flags, error) {
	r, err := judged(ctx, data(rs, growthWarmupUs, minutes, bursts...), growthGate)
	if err != nil {
		return flags{}, err
	}
	f := flags{runs: 1}
	switch r.Gate.Rules[0].Verdict {
	case schemas.VerdictFail:
		f.growing = 1
	case schemas.VerdictInconclusive:
		f.unknown = 1
	case schemas.VerdictInvalid:
		return f, fmt.Errorf("a run is invalid: %s", r.Gate.Rules[0].Reason)
	}
	return f, nil
}

// burstLoad is the load beside the bursts, of capacity.
const burstLoad = .75

// bursts of the study, in runs of 30 min: they go back, so a run that is called growing is called so wrongly.
var bursts = []burst{{length: 120, factor: 1.6}, {length: 180, factor: 2}, {length: 300, factor: 2}}

type burstCell struct {
	scenario string
	burst    burst
	declared bool
}

type burstTable map[burstCell]flags

func studyBursts(ctx context.Context, runs int, bursts []burst) (burstTable, error) {
	var jobs []func() (burstTable, error)
	for _, s := range scenarios {
		for _, b := range bursts {
			for i := range runs {
				jobs = append(jobs, func() (burstTable, error) { return s.burstRun(ctx, b, uint64(i)) })
			}
		}
	}
	return collect(ctx, jobs, addFlags)
}

// burstRun places a burst anywhere in the 30 measured minutes in which it ends, and judges the run with the burst
// declared and without.
func (s scenario) burstRun(ctx context.Context, b burst, i uint64) (burstTable, error) {
	const minutes, warm = 30, growthWarmupUs / 1e6
	cell := burstCell{scenario: s.name, burst: b}
	seed := rng.Hash(i, 3, uint64(b.length), uint64(b.factor*10))
	b.from = warm + rng.Float(seed)*(minutes*60-b.length)
	rs := s.simulate(load{rate: burstLoad * s.capacity, minutes: minutes + warm/60, burst: b, seed: seed})
	out := burstTable{}
	for _, declared := range []bool{false, true} {
		var spans []schemas.BurstSpan
		if declared {
			spans = []schemas.BurstSpan{{FromUs: int64(b.from * 1e6), ToUs: int64((b.from + b.length) * 1e6)}}
		}
		f, err := grows(ctx, rs, minutes, spans...)
		if err != nil {
			return nil, err
		}
		cell.declared = declared
		out[cell] = f
	}
	return out, nil
}
