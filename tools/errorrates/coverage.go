package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"tailgate/internal/rng"
)

// coverageMinutes are the lengths of run of which the p95 gets an interval.
var coverageMinutes = []float64{10, 30, 60}

type coverageCell struct {
	scenario     string
	rho, minutes float64
}

// covered counts the 95 % intervals that hold the true p95: ours, and those of independent values.
type covered struct {
	runs, ours, independent int
	open                    int // of ours, without an upper end
}

type coverageTable map[coverageCell]covered

func studyCoverage(ctx context.Context, runs int) (coverageTable, error) {
	var jobs []func() (coverageTable, error)
	for _, s := range scenarios {
		for k := range coverageLoads {
			for i := range runs {
				jobs = append(jobs, func() (coverageTable, error) { return s.coverageRun(ctx, k, uint64(i)) })
			}
		}
	}
	return collect(ctx, jobs, func(all, one coverageTable) {
		for cell, c := range one {
			sum := all[cell]
			all[cell] = covered{sum.runs + c.runs, sum.ours + c.ours, sum.independent + c.independent, sum.open + c.open}
		}
	})
}

func (s scenario) coverageRun(ctx context.Context, k int, i uint64) (coverageTable, error) {
	rho, want := coverageLoads[k], truths[s.name].p95[k]
	longest := coverageMinutes[len(coverageMinutes)-1]
	rs := s.simulate(load{rate: rho * s.capacity, minutes: longest + warmupUs/60e6, seed: rng.Hash(i, 4, uint64(k))})
	out := coverageTable{}
	for _, minutes := range coverageMinutes {
		c, err := covers(ctx, rs, minutes, want)
		if err != nil {
			return nil, err
		}
		out[coverageCell{s.name, rho, minutes}] = c
	}
	return out, nil
}

// covers takes the two bounds of a gate whose limit is the run's own p95, each at 97.5 %: together they are the 95 %
// interval by order statistics, with tau* at the quantile.
func covers(ctx context.Context, rs []request, minutes, wantMs float64) (covered, error) {
	d := data(rs, warmupUs, minutes)
	first, err := judged(ctx, d, tailGate)
	if err != nil {
		return covered{}, err
	}
	// A limit of a whole µs, as values are.
	own := fmt.Sprintf("capacity_gate: {ttft_p95: %.0fus}\nconfidence: 0.975", float64(first.Gate.Rules[0].Observed)*1000)
	r, err := judged(ctx, d, gateOf(own))
	if err != nil {
		return covered{}, err
	}
	rule := r.Gate.Rules[0]
	c := covered{runs: 1}
	if float64(rule.Lower) <= wantMs && wantMs <= float64(rule.Upper) {
		c.ours = 1
	}
	if rule.Upper.Known() && math.IsInf(float64(rule.Upper), 1) {
		c.open = 1
	}
	if lo, hi := independentP95(rs, minutes); lo <= wantMs && wantMs <= hi {
		c.independent = 1
	}
	return c, nil
}

// independentP95 is the interval that holds for independent values, by the ranks n·p ± 1.96·√(n·p·(1−p)), in ms.
func independentP95(rs []request, minutes float64) (lower, upper float64) {
	var ttft []float64
	for _, r := range rs {
		if r.at >= warmupUs && r.at < warmupUs+int64(minutes*60e6) {
			ttft = append(ttft, float64(r.ttft())/1000)
		}
	}
	slices.Sort(ttft)
	n := float64(len(ttft))
	half := 1.96 * math.Sqrt(n*.95*.05)
	rank := func(x float64) float64 { return ttft[min(max(0, int(math.Ceil(x))-1), len(ttft)-1)] }
	return rank(n*.95 - half), rank(n*.95 + half + 1)
}
