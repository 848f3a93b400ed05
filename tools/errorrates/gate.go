package main

import (
	"context"
	"fmt"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// gateMinutes are the lengths of run at which gates are judged.
var gateMinutes = []float64{5, 10, 20, 30, 60}

// percentileRule is a rule under study, with the shares at which it is judged: its limit, and parts of it.
type percentileRule struct {
	name   string
	q0     float64
	shares []float64 // the limit, half, a quarter, a tenth of it
	final  float64   // minutes from which its verdicts are final
}

var rules = []percentileRule{
	{"p95", .05, []float64{.05, .025, .0125, .005}, 30},
	{"p99", .01, []float64{.01, .005, .0025, .001}, 60},
}

// verdicts counts what was said of some runs.
type verdicts struct {
	runs, pass, provisional, fail int
	noTau, bare                   int // passes of two rules that are wrong on purpose: N = n, and no bound at all
}

func (v *verdicts) add(o verdicts) {
	v.runs, v.pass, v.provisional, v.fail = v.runs+o.runs, v.pass+o.pass, v.provisional+o.provisional, v.fail+o.fail
	v.noTau, v.bare = v.noTau+o.noTau, v.bare+o.bare
}

// gateCell is where a gate was judged.
type gateCell struct {
	scenario, rule string
	share          float64 // true one over the limit
	minutes        float64
}

type gateTable map[gateCell]verdicts

var tailGate = gateOf("capacity_gate: {ttft_p95: 2s, ttft_p99: 2s}")

// studyGate judges runs of each scenario at each share, and every run at every length. Below the limits, where the
// scenarios are taken together, fewer runs do.
func studyGate(ctx context.Context, atLimit, below int, parts []int) (gateTable, error) {
	var jobs []func() (gateTable, error)
	for _, s := range scenarios {
		for _, share := range shares {
			runs := runsAt(share, atLimit, below, parts)
			for i := range runs {
				seed := rng.Hash(uint64(i), uint64(share*1e6))
				jobs = append(jobs, func() (gateTable, error) { return s.gateRun(ctx, share, seed) })
			}
		}
	}
	return collect(ctx, jobs, func(all, one gateTable) {
		for cell, v := range one {
			sum := all[cell]
			sum.add(v)
			all[cell] = sum
		}
	})
}

// runsAt is how many runs a share gets: as many as the rule wants that it is the most to, 0 where it is none of the parts.
func runsAt(share float64, atLimit, below int, parts []int) int {
	runs := 0
	for _, r := range rules {
		for _, p := range parts {
			switch {
			case r.shares[p] != share:
			case p == 0:
				runs = max(runs, atLimit)
			default:
				runs = max(runs, below)
			}
		}
	}
	return runs
}

func (s scenario) gateRun(ctx context.Context, share float64, seed uint64) (gateTable, error) {
	longest := gateMinutes[len(gateMinutes)-1]
	rs := s.simulate(load{rate: s.rateAt(share), minutes: longest + warmupUs/60e6, seed: seed})
	out := gateTable{}
	for _, minutes := range gateMinutes {
		d := data(rs, warmupUs, minutes)
		r, err := judged(ctx, d, tailGate)
		if err != nil {
			return nil, err
		}
		for k, rule := range rules {
			got := r.Gate.Rules[k]
			v := verdicts{runs: 1}
			switch got.Verdict {
			case schemas.VerdictPass:
				v.pass = 1
				if got.Provisional {
					v.provisional = 1
				}
			case schemas.VerdictFail:
				v.fail = 1
			case schemas.VerdictInvalid:
				return nil, fmt.Errorf("a run is invalid: %s", got.Reason)
			}
			if float64(got.ViolationShare) <= rule.q0 {
				v.bare = 1
			}
			if stats.Upper(float64(got.N), float64(got.ViolationShare), .95) <= rule.q0 {
				v.noTau = 1
			}
			out[gateCell{s.name, rule.name, share, minutes}] = v
		}
	}
	return out, nil
}

// rateAt is the rate at which the given share of requests is over the limit in the long run.
func (s scenario) rateAt(share float64) float64 { return truths[s.name].shares[share] * s.capacity }
