package synth_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// Traffic of known law, its profile, and the profile of what is drawn from that.

func profileOf(t testing.TB, tr *trace.Trace) *profile.Profile {
	t.Helper()
	grouped := len(tr.Rows) > 0 && (tr.Rows[0].Tenant != nil || tr.Rows[0].Class != nil)
	p, err := profile.Compute(context.Background(), tr, profile.Options{PerGroup: grouped})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fromProfile(t testing.TB, p *profile.Profile, o synth.ModelOptions) *trace.Trace {
	t.Helper()
	res, err := synth.FromProfile(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range res.Trace.Check() {
		t.Fatal(f)
	}
	return res.Trace
}

// renewals is an hour of requests whose gaps have a law, on a clock whose speed changes with the time.
func renewals(seed uint64, rate float64, gap func() float64, speed func(s float64) float64) *trace.Trace {
	r := rng.New(seed, "renewals")
	t := &trace.Trace{Meta: trace.Meta{Name: "renewals", Unit: trace.UnitMicros, LengthUs: 3_600_000_000}}
	const step = 0.01 // s
	left := gap() / rate
	for s := 0.0; s < 3600; s += step {
		flow := step * speed(s)
		for left < flow {
			out := 1 + r.Int32N(300)
			i := int64(len(t.Rows))
			t.Rows = append(t.Rows, schemas.TraceRow{Row: i, SourceRow: i, ScheduledUs: int64((s + left/flow*step) * 1e6), InputTokens: 1 + r.Int32N(2000), OutputTokens: &out})
			left += gap() / rate
		}
		left -= flow
	}
	for i := 1; i < len(t.Rows); i++ { // gaps below the step keep their order
		t.Rows[i].ScheduledUs = max(t.Rows[i].ScheduledUs, t.Rows[i-1].ScheduledUs)
	}
	return t
}

func steady(float64) float64 { return 1 }

func wavy(s float64) float64 { return 1 + .6*math.Sin(2*math.Pi*s/1200) }

// TestLawsOfArrivalsComeBack: traffic of every law that a profile fits, at a steady and at a changing rate. What is
// drawn from its profile has the same law, with the parameter inside the profile's own interval.
func TestLawsOfArrivalsComeBack(t *testing.T) {
	laws := []struct {
		name string
		gap  func(r *rand.Rand) func() float64
		want string // law that the profile finds
	}{
		{"exponential", func(r *rand.Rand) func() float64 { return r.ExpFloat64 }, profile.Exponential},
		{"gamma .3", func(r *rand.Rand) func() float64 { return distuv.Gamma{Alpha: .3, Beta: .3, Src: r}.Rand }, profile.Gamma},
		{"gamma 4", func(r *rand.Rand) func() float64 { return distuv.Gamma{Alpha: 4, Beta: 4, Src: r}.Rand }, profile.Gamma},
		{"weibull .6", func(r *rand.Rand) func() float64 {
			return distuv.Weibull{K: .6, Lambda: 1 / math.Gamma(1+1/.6), Src: r}.Rand
		}, profile.Weibull},
		{"lognormal 1.3", func(r *rand.Rand) func() float64 {
			return distuv.LogNormal{Mu: -1.3 * 1.3 / 2, Sigma: 1.3, Src: r}.Rand
		}, profile.LogNormal},
		{"on and off", func(r *rand.Rand) func() float64 { // 80 % of the gaps at 4 times the rate
			return func() float64 {
				if r.Float64() < .8 {
					return r.ExpFloat64() / 4
				}
				return r.ExpFloat64() * 4
			}
		}, profile.OnOff},
	}
	speeds := []struct {
		name string
		of   func(float64) float64
	}{{"steady", steady}, {"wavy", wavy}}
	for _, law := range laws {
		for _, speed := range speeds {
			t.Run(law.name+" "+speed.name, func(t *testing.T) {
				p := profileOf(t, renewals(7, 3, law.gap(rng.New(3, law.name, speed.name)), speed.of))
				if got := selectedLaw(p, profile.ClockOp60); got != law.want {
					t.Fatalf("the profile of the fixture says %s", got)
				}
				back := profileOf(t, fromProfile(t, p, synth.ModelOptions{Seed: 5}))
				if got := selectedLaw(back, profile.ClockOp60); got != law.want {
					t.Errorf("law %s became %s", law.want, got)
				}
				sameArrivals(t, p, back)
			})
		}
	}
}

func selectedLaw(p *profile.Profile, clock string) string {
	for _, f := range p.IATFit {
		if f.Tenant == profile.All && f.Clock == clock && f.Selected {
			return f.Dist
		}
	}
	return ""
}

// sameArrivals holds the laws of back to the intervals of p. Both are samples, and more than a hundred figures are
// held, so the 95 % intervals are widened (in logarithms) to 99.9 % ones of a difference.
func sameArrivals(t *testing.T, p, back *profile.Profile) {
	t.Helper()
	within := func(what string, got, want, lo, hi *float64) {
		t.Helper()
		if want == nil || lo == nil || hi == nil {
			return
		}
		if got == nil {
			t.Errorf("%s is not told", what)
			return
		}
		wide := math.Pow(*hi / *lo, 3.29/1.96*math.Sqrt2/2)
		low, high := *want/wide, *want*wide
		if *got < low || *got > high {
			t.Errorf("%s = %.4g, want %.4g (%.4g … %.4g)", what, *got, *want, low, high)
		}
	}
	a, b := &p.IAT[0], &back.IAT[0]
	within("CV of the gaps", b.CVRaw, a.CVRaw, a.CVLo, a.CVHi)
	for i := range p.IATFit {
		f := &p.IATFit[i]
		for j := range back.IATFit {
			g := &back.IATFit[j]
			if f.Tenant == profile.All && g.Tenant == profile.All && f.Clock == g.Clock && f.Dist == g.Dist && f.Method == g.Method {
				within(fmt.Sprintf("%s %s", f.Clock, f.Dist), g.P1, f.P1, f.P1Lo, f.P1Hi)
			}
		}
	}
	for i := range p.Dispersion {
		if d := &p.Dispersion[i]; d.Tenant == profile.All {
			within(fmt.Sprintf("IDC at %d ms", d.ScaleUs/1000), back.Dispersion[i].IDC, d.IDC, d.IDCLo, d.IDCHi)
		}
	}
}

// TestCountVarianceBetweenMinutesIsKept: IDC is what ServeGen's rescaling to exact window totals loses; here also at
// twice and half the rate, where the law of growth is IDC' − 1 = f (IDC − 1).
func TestCountVarianceBetweenMinutesIsKept(t *testing.T) {
	src := drifting(4)
	p := profileOf(t, src)
	for _, f := range []float64{.5, 1, 2} {
		mean := map[int64]float64{}
		const seeds = 4
		for seed := range uint64(seeds) {
			back := profileOf(t, fromProfile(t, p, synth.ModelOptions{Seed: 20 + seed, Scale: f}))
			for _, d := range back.Dispersion {
				if d.IDC != nil && d.Tenant == profile.All {
					mean[d.ScaleUs] += *d.IDC / seeds
				}
			}
		}
		for _, d := range p.Dispersion {
			if d.IDC == nil || d.ScaleUs < 1_000_000 || d.Tenant != profile.All {
				continue
			}
			want := 1 + f*(*d.IDC-1)
			if got := mean[d.ScaleUs]; math.Abs(got/want-1) > .15 {
				t.Errorf("×%v: IDC at %d s is %.3f, want %.3f", f, d.ScaleUs/1_000_000, got, want)
			}
		}
	}
}

// TestTenantsRiseAndFallTogether: each of forty tenants has too few requests to show the waves that all of them ride;
// the total shows them, and keeps them.
func TestTenantsRiseAndFallTogether(t *testing.T) {
	src := drifting(6)
	r := rng.New(1, "tenants")
	for i := range src.Rows {
		src.Rows[i].Tenant = ptr(fmt.Sprintf("t_%d", r.IntN(40)))
	}
	p := profileOf(t, src)
	back := profileOf(t, fromProfile(t, p, synth.ModelOptions{Seed: 3}))
	for i, d := range p.Dispersion {
		if d.Tenant != profile.All || d.ScaleUs < 10_000_000 || d.IDC == nil {
			continue
		}
		if got := *back.Dispersion[i].IDC; math.Abs(got / *d.IDC - 1) > .15 {
			t.Errorf("IDC of all at %d s is %.2f, want %.2f", d.ScaleUs/1_000_000, got, *d.IDC)
		}
	}
}
