package main

import (
	"context"
	"fmt"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// start is how the engine of a run begins; every one begins empty.
type start struct{ name, faults string }

var starts = []start{
	{"warm", ""},
	{"45 s at a third of the speed", ",slow=0:3@0s+45s"},
	{"90 s at half of the speed", ",slow=0:2@0s+90s"},
}

// coldMinutes are the lengths of run, the 60 s of warm-up included.
var coldMinutes = []float64{10, 30}

type coldCell struct {
	scenario, start string
	share, minutes  float64
}

// coldCounts are what the check of the start said, and the verdicts of a p95 gate with it and without.
type coldCounts struct {
	runs, seen, atHalf int
	fixedPass          int // with the 60 s cut, by the rule alone: the check never gives a pass
	fail, repeat       int // FAIL that stood, and INCONCLUSIVE "repeat it warm" or "extend it"
	restPass           int // runs whose rows after d* pass
}

type coldTable map[coldCell]coldCounts

var p95Gate = gateOf("capacity_gate: {ttft_p95: 2s}")

func studyCold(ctx context.Context, runs int, shares []float64) (coldTable, error) {
	var jobs []func() (coldTable, error)
	for _, s := range scenarios {
		for _, st := range starts {
			for _, share := range shares {
				for i := range runs {
					jobs = append(jobs, func() (coldTable, error) { return s.coldRun(ctx, st, share, uint64(i)) })
				}
			}
		}
	}
	return collect(ctx, jobs, func(all, one coldTable) {
		for cell, c := range one {
			sum := all[cell]
			all[cell] = coldCounts{sum.runs + c.runs, sum.seen + c.seen, sum.atHalf + c.atHalf, sum.fixedPass + c.fixedPass,
				sum.fail + c.fail, sum.repeat + c.repeat, sum.restPass + c.restPass}
		}
	})
}

func (s scenario) coldRun(ctx context.Context, st start, share float64, i uint64) (coldTable, error) {
	longest := coldMinutes[len(coldMinutes)-1]
	rs := s.simulate(load{rate: s.rateAt(share), minutes: longest, faults: st.faults, seed: rng.Hash(i, 5, uint64(share*1e6))})
	out := coldTable{}
	for _, minutes := range coldMinutes {
		r, err := judged(ctx, data(rs, warmupUs, minutes-warmupUs/60e6), p95Gate)
		if err != nil {
			return nil, err
		}
		w := r.Warmup
		if w == nil {
			return nil, fmt.Errorf("the start of a run of %v min was not checked", minutes)
		}
		c := coldCounts{runs: 1, seen: count(w.ColdStart), atHalf: count(w.AtHalf), fixedPass: count(r.Verdict() == schemas.VerdictPass),
			fail: count(r.Verdict() == schemas.VerdictFail), restPass: count(w.Verdict == schemas.VerdictPass)}
		c.repeat = count(w.ColdStart && r.Verdict() == schemas.VerdictInconclusive)
		out[coldCell{s.name, st.name, share, minutes}] = c
	}
	return out, nil
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
