package analyze

import (
	"math"
	"strings"
	"testing"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// MSER-5 by its definition, term by term.
func TestMSERIsItsDefinition(t *testing.T) {
	r := rng.New(1, "mser")
	for n := 2; n < 200; n += 7 {
		y := make([]float64, n)
		for i := range y {
			y[i] = r.NormFloat64() + 20*math.Exp(-float64(i)/float64(1+n/9))
		}
		want, least := 0, math.Inf(1)
		for d := 0; d <= n/2; d++ {
			rest, sum := y[d:], 0.0
			for _, x := range rest {
				sum += (x - stats.Mean(rest)) * (x - stats.Mean(rest))
			}
			if m := sum / float64(len(rest)*len(rest)); m < least {
				want, least = d, m
			}
		}
		if got := mser(y); got != want {
			t.Errorf("of %d values: %d are left out, want %d", n, got, want)
		}
	}
	if got := mser([]float64{3, 3, 3, 3, 3, 3}); got != 0 {
		t.Errorf("a constant: %d are left out", got)
	}
	falling := make([]float64, 100)
	for i := range falling {
		falling[i] = float64(100 - i)
	}
	if got := mser(falling); got != 50 {
		t.Errorf("one that falls for good: %d are left out, want half", got)
	}
}

func TestOccupancyIsTheTimeInside(t *testing.T) {
	r := rng.New(2, "cells")
	const from, cell, n = 1000, 70, 40
	var open []interval
	for range 300 {
		a := int64(r.IntN(4500))
		open = append(open, interval{a, a + int64(r.IntN(900))})
	}
	open = append(open, interval{2000, math.MaxInt64}, interval{0, from})
	o := newOccupancy(from, cell, n)
	for _, x := range open {
		o.add(x)
	}
	got := o.means()
	for k := range n {
		want := 0.0
		for at := int64(from + k*cell); at < int64(from+(k+1)*cell); at++ {
			for _, x := range open {
				if x.from <= at && at < x.to {
					want++
				}
			}
		}
		if want /= cell; math.Abs(got[k]-want) > 1e-9 {
			t.Errorf("cell %d: %v, want %v", k, got[k], want)
		}
	}
}

// A start that is cold takes back a FAIL that the rest does not bear out, and never gives a PASS.
func TestColdStartSettlesRules(t *testing.T) {
	const pass, fail, unsure, invalid = schemas.VerdictPass, schemas.VerdictFail, schemas.VerdictInconclusive, schemas.VerdictInvalid
	for _, c := range []struct {
		verdict, later string
		half           bool
		want, says     string
	}{
		{pass, pass, false, pass, "because"}, {pass, fail, false, pass, "because"}, {pass, unsure, true, pass, "because"},
		{fail, pass, false, unsure, "the rest passes: repeat it warm; with the start: because"},
		{fail, unsure, false, unsure, "the rest is too little to tell: repeat it warm; with the start: because"},
		{fail, fail, false, fail, "because; cold start seen, 2.5 times as much in flight in the first 150 s, and the rest fails too"},
		{fail, fail, true, unsure, "half of the run: extend it, or repeat it warm; with the start: because"},
		{unsure, pass, false, unsure, "the rest passes: repeat it warm; with the start: because"},
		{unsure, fail, false, unsure, "because"}, {unsure, unsure, false, unsure, "because"},
		{invalid, pass, false, invalid, "because"},
	} {
		w, r := Warmup{MSERS: 150, InflightRatio: 2.5, AtHalf: c.half}, RuleReport{Verdict: c.verdict, Reason: "because"}
		w.settle(&r, c.later)
		if r.Verdict != c.want || !strings.HasSuffix(r.Reason, c.says) {
			t.Errorf("%s, then %s, half %v: %s: %s", c.verdict, c.later, c.half, r.Verdict, r.Reason)
		}
	}
}
