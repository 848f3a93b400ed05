package synth

import (
	"math"
	"testing"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
)

func fitOf(dist string, p ...float64) *schemas.ProfileIATFit {
	f := &schemas.ProfileIATFit{Dist: dist, P1: &p[0]}
	if len(p) > 1 {
		f.P2 = &p[1]
	}
	if len(p) > 2 {
		f.P3 = &p[2]
	}
	return f
}

// TestGapLaws: every law has the mean 1 and the variation that it says, and begins in equilibrium: the mean number of
// arrivals in an interval is its length from the first moment on.
func TestGapLaws(t *testing.T) {
	laws := map[string]gapLaw{"gamma by shape": gammaGaps(.25), "batched": batchPlan(1, .3, .02).law(0)}
	for _, f := range []*schemas.ProfileIATFit{fitOf(profile.Exponential, 7), fitOf(profile.Gamma, .4, 3), fitOf(profile.Gamma, 5, .1), fitOf(profile.Weibull, .7, 2),
		fitOf(profile.LogNormal, -3, .9), fitOf(profile.OnOff, 10, 1, .5)} {
		law, ok := fittedGaps(f)
		if !ok {
			t.Fatalf("%s is refused", f.Dist)
		}
		laws[f.Dist+" "+string(rune('a'+len(laws)))] = law
	}
	const draws = 200_000
	for name, law := range laws {
		r := rng.New(1, name)
		var sum, squares float64
		for range draws {
			x := law.gap(r)
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / draws
		if math.Abs(mean-1) > 5*math.Sqrt(law.cv2/draws) {
			t.Errorf("%s: mean %.4f", name, mean)
		}
		if cv2 := squares/draws/mean/mean - 1; math.Abs(cv2/law.cv2-1) > .12 {
			t.Errorf("%s: squared variation %.3f, want %.3f", name, cv2, law.cv2)
		}
		for _, length := range []float64{.2, 1, 5} {
			const runs = 20_000
			n, n2 := 0.0, 0.0
			for range runs {
				k := 0.0
				for at := law.wait(r); at < length; at += law.gap(r) {
					k++
				}
				n, n2 = n+k, n2+k*k
			}
			n, n2 = n/runs, n2/runs
			if se := math.Sqrt((n2 - n*n) / runs); math.Abs(n-length) > 5*se {
				t.Errorf("%s: %.4f arrivals in the first %v, want as many (± %.4f)", name, n, length, 5*se)
			}
		}
	}
	for _, f := range []*schemas.ProfileIATFit{fitOf(profile.Gamma, .4), fitOf(profile.LogNormal, 0, 40), fitOf(profile.Weibull, .004, 1), fitOf("pareto", 1), fitOf(profile.OnOff, 1, 0, 0)} {
		if law, ok := fittedGaps(f); ok {
			t.Errorf("%s %v is taken: %+v", f.Dist, *f.P1, law)
		}
	}
}

// TestRateCurveHasTheVarianceOfTheRate: the counts of minutes are the rate and chance; drawing around the counts would
// add chance twice. The rate varies as much as the mean count does by chance, so counted twice it shows.
func TestRateCurveHasTheVarianceOfTheRate(t *testing.T) {
	const minutes, mean = 600, 50
	c := clock{length: 60 * minutes}
	r := rng.New(1, "curve")
	var seen, want float64
	for range 20 {
		var rate []schemas.ProfileRate
		truth := make([]float64, minutes)
		for i := range truth {
			truth[i] = mean + math.Sqrt(mean)*r.NormFloat64() // the variance of chance
			n := int64(0)
			for at := r.ExpFloat64(); at < truth[i]; at += r.ExpFloat64() {
				n++
			}
			rate = append(rate, schemas.ProfileRate{BinUs: 60_000_000, BinStartUs: int64(i) * 60_000_000, Requests: n})
		}
		curve := dayCurve(c, rate, 60, false, poissonChance, nil)
		drawn := make([]float64, minutes)
		at := cursor{c: curve}
		for i := range drawn {
			drawn[i] = at.rate(float64(i)*60+30) * 60
		}
		seen, want = seen+spread(drawn), want+spread(truth)
	}
	if math.Abs(seen/want-1) > .1 {
		t.Errorf("the rate has %.3f times the variance that it should have", seen/want)
	}
}

func spread(x []float64) float64 {
	mean, v := 0.0, 0.0
	for _, a := range x {
		mean += a / float64(len(x))
	}
	for _, a := range x {
		v += (a - mean) * (a - mean) / float64(len(x)-1)
	}
	return v
}

func TestCurves(t *testing.T) {
	c := &curve{}
	c.add(-10, 0, 2, 2)
	c.add(0, 10, 2, 4)
	c.add(20, 30, 5, 0)
	if got := c.total(); math.Abs(got-(20+30+25)) > 1e-9 {
		t.Fatalf("total %v", got)
	}
	k := cursor{c: c}
	for _, want := range []struct{ op, at float64 }{{0, -10}, {10, -5}, {20, 0}, {32.5, 5}, {50, 20}, {68.75, 25}, {74.99, 29.8}} {
		if got, ok := k.when(want.op); !ok || math.Abs(got-want.at) > .01 {
			t.Errorf("%v expected arrivals at %v, want %v", want.op, got, want.at)
		}
	}
	if _, ok := k.when(75); ok {
		t.Error("the curve does not end")
	}
	tiled := c.within(0, 30).tiled(30, -30, 45)
	if got := tiled.total(); math.Abs(got-(55+55+30)) > 1e-9 {
		t.Errorf("two and a half times the window: %v", got)
	}
	if got := tiled.shifted(7).segs[0].from; got != -23 {
		t.Errorf("shifted to %v", got)
	}
}

// TestPlacedSessionsKeepTheirShapes: every session ends before the end, none loses turns, and starts are used once.
func TestPlacedSessionsKeepTheirShapes(t *testing.T) {
	o := ModelOptions{Turns: IntDist{{Lo: 1, Hi: 6, Weight: 1}}, ThinkTime: &DurationDist{Median: 60e9, Sigma: 1}, Growth: IntDist{{Lo: 1, Hi: 1, Weight: 1}}}
	m := newSessionModel(&groupTables{}, &o)
	r := rng.New(1, "starts")
	var starts []int64
	for at := 0.0; at < 3000; at += r.ExpFloat64() {
		starts = append(starts, int64(at*1e6))
	}
	flat := &curve{}
	flat.add(0, 3600, 3, 3)
	const end = 3_600_000_000
	used := map[int64]bool{}
	turns := 0
	for i, id := range newPlacer(m, 5, end, starts, flat, nil).place(starts) {
		if used[id.number] {
			t.Fatalf("shape %d is used twice", id.number)
		}
		used[id.number] = true
		times, at := m.times(5, id), starts[i]
		turns++
		for gap, ok := times.next(); ok; gap, ok = times.next() {
			if at += gap; at < end {
				turns++
			}
		}
	}
	want := 0
	for i := range starts {
		want += m.times(5, shapeID{number: int64(i)}).turns + 1
	}
	if float64(want-turns) > .002*float64(want) {
		t.Errorf("%d of %d turns come before the end", turns, want)
	}
}
