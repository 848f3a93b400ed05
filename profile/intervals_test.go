package profile_test

import (
	"math"
	"os"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/profile"
)

// TestIntervalsCoverTheTruth draws hours of known laws and counts how often the 95 % intervals hold the truth: 90 to
// 99 % of 200 hours under TAILGATE_PROVE=full, with room for chance in fewer.
func TestIntervalsCoverTheTruth(t *testing.T) {
	testshared.NotUnderRace(t, "many profiles, one like the other")
	runs, least := 20, 0.75
	if os.Getenv("TAILGATE_PROVE") == "full" {
		runs, least = 200, 0.9
	}
	covered := map[string]int{}
	count := func(name string, lo, hi *float64, truth float64) {
		if lo == nil || hi == nil {
			t.Fatalf("%s has no interval", name)
		}
		if *lo <= truth && truth <= *hi {
			covered[name]++
		} else {
			covered[name] += 0
		}
	}
	const n, rate = 7200, 2.0
	for i := range runs {
		src := rng.New(uint64(i), "coverage")
		p := compute(t, arrivals(n, distuv.Exponential{Rate: rate, Src: src}.Rand), profile.Options{})
		e := fitOf(t, p, profile.ClockRaw, profile.Exponential, profile.MethodMLE)
		count("poisson rate", e.P1Lo, e.P1Hi, rate)
		count("poisson CV", p.IAT[0].CVLo, p.IAT[0].CVHi, 1)
		for _, d := range p.Dispersion {
			if d.ScaleUs == 10_000_000 {
				count("poisson IDC 10 s", d.IDCLo, d.IDCHi, 1)
			}
		}
		p = compute(t, arrivals(n, distuv.Gamma{Alpha: .5, Beta: .5 * rate, Src: src}.Rand), profile.Options{})
		g := fitOf(t, p, profile.ClockRaw, profile.Gamma, profile.MethodMLE)
		count("gamma shape", g.P1Lo, g.P1Hi, .5)
		count("gamma CV", p.IAT[0].CVLo, p.IAT[0].CVHi, math.Sqrt2)
		p = compute(t, arrivals(n, distuv.Weibull{K: .7, Lambda: .4, Src: src}.Rand), profile.Options{})
		w := fitOf(t, p, profile.ClockRaw, profile.Weibull, profile.MethodMLE)
		count("weibull shape", w.P1Lo, w.P1Hi, .7)
	}
	for name, c := range covered {
		share := float64(c) / float64(runs)
		t.Logf("%s: %.3f of %d runs", name, share, runs)
		if share < least || runs >= 200 && share > 0.99 {
			t.Errorf("%s: the 95 %% interval holds the truth in %.3f of %d runs", name, share, runs)
		}
	}
}

// TestOnOffIsFound: gaps of a Poisson stream that is switched on and off give back the three rates, and no other law
// is chosen.
func TestOnOffIsFound(t *testing.T) {
	src := rng.New(3, "onoff")
	const on, off, back = 10.0, 0.5, 0.1
	gap := func() float64 {
		wait := 0.0
		for {
			next, stop := src.ExpFloat64()/on, src.ExpFloat64()/off
			if next < stop {
				return wait + next
			}
			wait += stop + src.ExpFloat64()/back
		}
	}
	p := compute(t, arrivals(30_000, gap), profile.Options{})
	f := fitOf(t, p, profile.ClockRaw, profile.OnOff, profile.MethodMLE)
	if !f.Selected {
		t.Error("another law is chosen")
	}
	near(t, "rate while on", f.P1, on, .3)
	near(t, "going off", f.P2, off, .03)
	near(t, "coming back", f.P3, back, .006)
	if *f.KS > .01 {
		t.Errorf("KS %v", *f.KS)
	}
}

// TestIntervalsHoldTheirEstimates: on a clock of 1 s a third and more of the gaps are ties. An estimate knows of them that
// they are below half a second; the sums of the blocks take them for half a second, and an interval around what these
// sums give would leave the estimate out.
func TestIntervalsHoldTheirEstimates(t *testing.T) {
	for name, gap := range map[string]func() float64{
		"exponential": distuv.Exponential{Rate: 1 / 1.5, Src: rng.New(1, "e")}.Rand,
		"gamma":       distuv.Gamma{Alpha: .3, Beta: .3 / 1.5, Src: rng.New(1, "g")}.Rand,
		"weibull":     distuv.Weibull{K: .5, Lambda: .75, Src: rng.New(1, "w")}.Rand,
	} {
		tr := arrivals(6000, gap)
		for i := range tr.Rows {
			tr.Rows[i].ScheduledUs -= tr.Rows[i].ScheduledUs % 1_000_000
		}
		tr.Meta.Unit = "s"
		p := compute(t, tr, profile.Options{})
		holds := func(figure string, lo, at, hi *float64) {
			t.Helper()
			if lo == nil || hi == nil || !(*lo < *at && *at < *hi) || *hi > 1.6**lo {
				t.Errorf("%s: the interval of the %s does not hold it: %v %v %v", name, figure, deref(lo), deref(at), deref(hi))
			}
		}
		for _, dist := range []string{profile.Exponential, profile.Gamma, profile.Weibull} {
			f := fitOf(t, p, profile.ClockRaw, dist, profile.MethodMLE)
			holds(dist, f.P1Lo, f.P1, f.P1Hi)
		}
		holds("CV", p.IAT[0].CVLo, p.IAT[0].CVRaw, p.IAT[0].CVHi)
	}
}

func deref(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}
