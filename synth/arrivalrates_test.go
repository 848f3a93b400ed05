package synth_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"tailgate/synth"
)

// count is how many arrivals lie in [from, to) seconds.
func count(at []time.Duration, from, to float64) (n int) {
	for _, t := range at {
		if s := t.Seconds(); s >= from && s < to {
			n++
		}
	}
	return n
}

func TestArrivalsAlongARate(t *testing.T) {
	sec := time.Second
	series := synth.RateSeries{{At: 0, Rate: 10}, {At: 100 * sec, Rate: 40}, {At: 200 * sec, Rate: 0}, {At: 300 * sec, Rate: 5}}
	ramp := synth.RateSeries{{At: 0, Rate: 10, Ramp: true}, {At: 1000 * sec, Rate: 50}}
	for _, kind := range []synth.ArrivalOptions{{Kind: synth.Constant}, {Kind: synth.Poisson}, {Kind: synth.Gamma, Burstiness: .25}} {
		o := kind
		o.N, o.Seed = 10_000, 7
		tolerance := 4.0
		if o.Kind == synth.Constant {
			tolerance = 0.05
		}
		near := func(what string, got int, want float64) {
			cv := 1.0
			if o.Burstiness > 0 {
				cv = 1 / math.Sqrt(o.Burstiness)
			}
			if math.Abs(float64(got)-want) > max(1, tolerance*cv*math.Sqrt(want)) {
				t.Errorf("%s, %s: %d arrivals, want about %v", o.Kind, what, got, want)
			}
		}
		at, err := synth.ArrivalsAlong(o, series, []synth.Burst{{At: 120 * sec, For: 20 * sec, X: 3}})
		if err != nil || len(at) != 10_000 || !slices.IsSorted(at) {
			t.Fatalf("%d, %v", len(at), err)
		}
		near("first", count(at, 0, 100), 1000)
		near("second", count(at, 140, 200), 2400)
		near("burst", count(at, 120, 140), 2400)
		near("rest", count(at, 300, 500), 1000)
		if n := count(at, 200, 300); n != 0 {
			t.Errorf("%s: %d arrivals at rate 0", o.Kind, n)
		}
		if at, err = synth.ArrivalsAlong(o, ramp, nil); err != nil {
			t.Fatal(err)
		}
		near("first fifth of a ramp", count(at, 0, 200), 2800)
		again, _ := synth.ArrivalsAlong(o, ramp, nil)
		if !slices.Equal(at, again) {
			t.Errorf("%s: two draws differ", o.Kind)
		}
	}
	// One rate is what Arrivals draws, a rate that ends leaves the rest out, a duration stops.
	flat := synth.RateSeries{{At: 0, Rate: 8}}
	a, _ := synth.Arrivals(synth.ArrivalOptions{Kind: synth.Poisson, Rate: 8, N: 500, Seed: 3})
	b, _ := synth.ArrivalsAlong(synth.ArrivalOptions{Kind: synth.Poisson, N: 500, Seed: 3}, flat, nil)
	for i := range a {
		if d := a[i] - b[i]; d.Abs() > time.Microsecond {
			t.Fatalf("arrival %d at %v, alone at %v", i, b[i], a[i])
		}
	}
	ends := synth.RateSeries{{At: 0, Rate: 8}, {At: 10 * sec, Rate: 0}}
	if at, err := synth.ArrivalsAlong(synth.ArrivalOptions{Kind: synth.Constant, N: 500}, ends, nil); err != nil || len(at) != 80 {
		t.Errorf("%d arrivals, %v", len(at), err)
	}
	if at, err := synth.ArrivalsAlong(synth.ArrivalOptions{Kind: synth.Constant, Duration: 5 * sec}, flat, nil); err != nil || len(at) != 40 {
		t.Errorf("%d arrivals, %v", len(at), err)
	}
	for name, c := range map[string]struct {
		o synth.ArrivalOptions
		s synth.RateSeries
		b []synth.Burst
	}{
		"rate twice":   {synth.ArrivalOptions{Kind: synth.Poisson, N: 5, Rate: 4}, flat, nil},
		"no point":     {synth.ArrivalOptions{Kind: synth.Poisson, N: 5}, nil, nil},
		"no end":       {synth.ArrivalOptions{Kind: synth.Poisson}, flat, nil},
		"broken burst": {synth.ArrivalOptions{Kind: synth.Poisson, N: 5}, flat, []synth.Burst{{X: .5, For: 1}}},
	} {
		if _, err := synth.ArrivalsAlong(c.o, c.s, c.b); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
