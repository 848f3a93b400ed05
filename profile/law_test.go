package profile_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// arrivals draws n gaps and returns the trace of their sum.
func arrivals(n int, gap func() float64) *trace.Trace {
	rows := make([]schemas.TraceRow, 0, n+1)
	at := 0.0
	for range n + 1 {
		rows = append(rows, request(int64(math.Round(at*1e6)), 100, 10))
		at += gap()
	}
	return traceOf(rows...)
}

func fitOf(t *testing.T, p *profile.Profile, clock, dist, method string) schemas.ProfileIATFit {
	t.Helper()
	for _, f := range p.IATFit {
		if f.Clock == clock && f.Dist == dist && f.Method == method {
			return f
		}
	}
	t.Fatalf("no %s fit of %s on the %s clock", method, dist, clock)
	return schemas.ProfileIATFit{}
}

// The estimators find the law that drew the gaps, its parameters and its CV.
func TestKnownLaws(t *testing.T) {
	const n = 20_000
	src := func(name string) *rand.Rand { return rng.New(1, name) }
	cases := []struct {
		name, dist string
		gap        func() float64
		p1, p2, cv float64
		relative   float64 // tolerance
	}{
		{"poisson", profile.Exponential, distuv.Exponential{Rate: 5, Src: src("e")}.Rand, 5, 0, 1, .03},
		{"bursty gamma", profile.Gamma, distuv.Gamma{Alpha: .25, Beta: .25 * 20, Src: src("g")}.Rand, .25, 1 / (.25 * 20), 2, .04},
		{"smooth gamma", profile.Gamma, distuv.Gamma{Alpha: 4, Beta: 4 * 20, Src: src("h")}.Rand, 4, 1.0 / 80, .5, .04},
		{"weibull", profile.Weibull, distuv.Weibull{K: .6, Lambda: .2, Src: src("w")}.Rand, .6, .2, 1.758, .06},
		{"lognormal", profile.LogNormal, distuv.LogNormal{Mu: -2, Sigma: 1, Src: src("l")}.Rand, -2, 1, 1.3108, .08},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := compute(t, arrivals(n, c.gap), profile.Options{})
			f := fitOf(t, p, profile.ClockRaw, c.dist, profile.MethodMLE)
			if !f.Selected {
				t.Errorf("%s is not selected", c.dist)
			}
			near(t, "p1", f.P1, c.p1, c.relative*math.Abs(c.p1))
			if c.p2 != 0 {
				near(t, "p2", f.P2, c.p2, c.relative*c.p2)
			}
			near(t, "cv", p.IAT[0].CVRaw, c.cv, c.relative*c.cv)
			if f.KS == nil || *f.KS > 1.63/math.Sqrt(n) {
				t.Errorf("KS %v of the true law", *f.KS)
			}
			if lag := p.IAT[0].ACF; len(lag) != 10 || math.Abs(lag[0]) > .03 {
				t.Errorf("autocorrelation of independent gaps %v", lag)
			}
		})
	}
}

// burstiness is the Gamma shape by moments, 1/CV² with the sample variance.
func TestMomentsShape(t *testing.T) {
	var rows []schemas.TraceRow
	for _, ms := range []int64{0, 10, 20, 30, 40, 50, 510, 520, 530, 540, 550, 560, 1000} {
		rows = append(rows, request(ms*1000, 1, 1))
	}
	p := compute(t, traceOf(rows...), profile.Options{})
	near(t, "mean gap", p.IAT[0].MeanS, .0833333, 1e-6)
	near(t, "cv", p.IAT[0].CVRaw, 2.055874, 1e-6)
	f := fitOf(t, p, profile.ClockRaw, profile.Gamma, profile.MethodMoments)
	near(t, "shape", f.P1, .236596, 1e-6)
	near(t, "scale", f.P2, .0833333/.236596, 1e-5)
	for _, f := range p.IATFit {
		if f.Selected {
			t.Errorf("%s selected with 12 gaps", f.Dist)
		}
	}
}

// A Poisson process whose rate drifts looks bursty on the wall clock; operational time takes the drift out, the
// dispersion of counts shows it.
func TestOperationalTimeTakesTheDriftOut(t *testing.T) {
	r := rng.New(3, "drift")
	var rows []schemas.TraceRow
	for at := 0.0; at < 7200; at += r.ExpFloat64() / 10 {
		if slow := math.Mod(at, 1200) >= 600; !slow || r.Float64() < .05 {
			rows = append(rows, request(int64(at*1e6), 1, 1))
		}
	}
	p := compute(t, traceOf(rows...), profile.Options{})
	g := p.IAT[0]
	if *g.CVRaw < 1.5 {
		t.Errorf("raw CV %v of a drifting process", *g.CVRaw)
	}
	near(t, "CV after 60 s", g.CVOp60, 1, .05)
	near(t, "CV after 300 s", g.CVOp300, 1, .05)
	for _, d := range p.Dispersion {
		switch d.ScaleUs {
		case 100_000:
			near(t, "IDC 0.1 s", d.IDC, 1.43, .1) // 1 + 0.1 s · Var(rate)/E(rate)
		case 60_000_000:
			if *d.IDC < 100 {
				t.Errorf("IDC 60 s = %v", *d.IDC)
			}
		}
	}
}

func TestIDCOfPoissonIsOne(t *testing.T) {
	p := compute(t, arrivals(60_000, distuv.Exponential{Rate: 50, Src: rng.New(5, "idc")}.Rand), profile.Options{})
	for _, d := range p.Dispersion {
		if d.Windows < profile.MinWindows {
			if d.IDC != nil || d.Var != nil {
				t.Errorf("scale %d µs: a dispersion from %d windows", d.ScaleUs, d.Windows)
			}
			continue
		}
		near(t, "IDC", d.IDC, 1, 5*math.Sqrt(2/float64(d.Windows)))
	}
}

func TestCountsAgainstCounting(t *testing.T) {
	r := rng.New(11, "counts")
	for range 200 {
		at, stamps := int64(r.IntN(50)), []int64(nil)
		for range 1 + r.IntN(60) {
			stamps = append(stamps, at)
			at += int64(r.IntN(20))
		}
		width := int64(1 + r.IntN(30))
		windows := (stamps[len(stamps)-1] - stamps[0]) / width
		counts := make([]float64, windows)
		for _, s := range stamps {
			if w := (s - stamps[0]) / width; w < windows {
				counts[w]++
			}
		}
		var mean, variance float64
		for _, c := range counts {
			mean += c / float64(windows)
		}
		for _, c := range counts {
			variance += (c - mean) * (c - mean) / float64(max(windows-1, 1))
		}
		got := profile.Counts(stamps, width)
		if got.Windows != windows || math.Abs(got.Mean-mean) > 1e-9 || math.Abs(got.Var-variance) > 1e-9 {
			t.Fatalf("Counts(%v, %d) = %+v, want %d windows, mean %v, var %v", stamps, width, got, windows, mean, variance)
		}
	}
}

// On a clock of 1 ms a third of these gaps are ties. Counted as "below half a step" they bend the shape by a few
// percent; taken at their face they would end the fit (log 0).
func TestTiesDoNotBendTheFit(t *testing.T) {
	for _, c := range []struct {
		dist string
		gap  func() float64
		want float64
	}{
		{profile.Gamma, distuv.Gamma{Alpha: .4, Beta: .4 * 100, Src: rng.New(1, "g")}.Rand, .4},
		{profile.Weibull, distuv.Weibull{K: .5, Lambda: .005, Src: rng.New(1, "w")}.Rand, .5},
		{profile.Exponential, distuv.Exponential{Rate: 100, Src: rng.New(1, "e")}.Rand, 100},
	} {
		tr := arrivals(20_000, c.gap)
		for i := range tr.Rows {
			tr.Rows[i].ScheduledUs -= tr.Rows[i].ScheduledUs % 1000
		}
		tr.Meta.Unit = "ms"
		p := compute(t, tr, profile.Options{})
		f := fitOf(t, p, profile.ClockRaw, c.dist, profile.MethodMLE)
		near(t, c.dist, f.P1, c.want, .08*c.want)
		if !f.Selected || *f.KS > .03 {
			t.Errorf("%s: selected %v, KS %v", c.dist, f.Selected, *f.KS)
		}
	}
}
