package synth_test

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"tailgate/internal/fault"
	"tailgate/synth"
)

func arrivals(t *testing.T, o synth.ArrivalOptions) []time.Duration {
	t.Helper()
	out, err := synth.Arrivals(o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(out) || len(out) > 0 && out[0] < 0 {
		t.Fatal("offsets are not ascending from 0")
	}
	return out
}

func gaps(offsets []time.Duration) []float64 {
	out := make([]float64, len(offsets)-1)
	for i := range out {
		out[i] = (offsets[i+1] - offsets[i]).Seconds()
	}
	return out
}

// The burstiness is the shape: the mean stays, the CV is 1/√burstiness.
func TestBurstinessIsTheGammaShape(t *testing.T) {
	for _, c := range []struct{ burstiness, cv, slack float64 }{{.25, 2, .12}, {1, 1, .03}, {4, .5, .03}} {
		for seed := range uint64(5) {
			g := gaps(arrivals(t, synth.ArrivalOptions{Kind: synth.Gamma, Rate: 20, Burstiness: c.burstiness, N: 20_001, Seed: seed}))
			mean, sd := stat.MeanStdDev(g, nil)
			if math.Abs(mean-.05) > .003 || math.Abs(sd/mean-c.cv) > c.slack {
				t.Errorf("burstiness %v, seed %d: mean gap %v s, CV %v, want 0.05 and %v", c.burstiness, seed, mean, sd/mean, c.cv)
			}
		}
	}
	g := gaps(arrivals(t, synth.ArrivalOptions{Kind: synth.Poisson, Rate: 20, N: 20_001}))
	if mean, sd := stat.MeanStdDev(g, nil); math.Abs(mean-.05) > .0015 || math.Abs(sd/mean-1) > .03 {
		t.Errorf("poisson: mean gap %v, CV %v", mean, sd/mean)
	}
}

// The number of arrivals in a duration is that of the rate on average, also for bursty arrivals in a short time.
func TestMeanNumberInADuration(t *testing.T) {
	for _, burstiness := range []float64{.25, 1, 4} {
		const runs = 4000
		total := 0
		for seed := range uint64(runs) {
			total += len(arrivals(t, synth.ArrivalOptions{Kind: synth.Gamma, Rate: 5, Burstiness: burstiness, Duration: 2 * time.Second, Seed: seed}))
		}
		mean := float64(total) / runs
		slack := 4 * math.Sqrt(10/burstiness/runs)
		if math.Abs(mean-10) > slack {
			t.Errorf("burstiness %v: %v arrivals on average, want 10 ± %v", burstiness, mean, slack)
		}
	}
}

func TestConstantArrivalsDoNotDrift(t *testing.T) {
	const rate = 7.3
	out := arrivals(t, synth.ArrivalOptions{Kind: synth.Constant, Rate: rate, N: 1_000_000})
	exact := new(big.Rat).SetFloat64(rate)
	for _, i := range []int64{0, 1, 2, 777, 999_999} {
		want := new(big.Rat).Quo(new(big.Rat).SetInt64(i*1e9), exact)
		d := new(big.Rat).Sub(want, new(big.Rat).SetInt64(int64(out[i])))
		if f, _ := d.Float64(); math.Abs(f) > .51 {
			t.Errorf("arrival %d is %v ns off", i, f)
		}
	}
}

func TestArrivalsStop(t *testing.T) {
	for _, c := range []struct {
		o    synth.ArrivalOptions
		want int
	}{
		{synth.ArrivalOptions{Kind: synth.Constant, Rate: 10, Duration: time.Second}, 10}, // the 11th is exactly at the end
		{synth.ArrivalOptions{Kind: synth.Constant, Rate: 10, Duration: time.Second + 1}, 11},
		{synth.ArrivalOptions{Kind: synth.Constant, Rate: 10, Duration: time.Second, N: 4}, 4},
		{synth.ArrivalOptions{Kind: synth.Constant, Rate: 10, Duration: time.Second, N: 40}, 10},
		{synth.ArrivalOptions{Kind: synth.Poisson, Rate: 10, N: 3}, 3},
		{synth.ArrivalOptions{Kind: synth.Poisson, Rate: .001, Duration: time.Nanosecond}, 0},
	} {
		if got := len(arrivals(t, c.o)); got != c.want {
			t.Errorf("%+v: %d arrivals, want %d", c.o, got, c.want)
		}
	}
	o := synth.ArrivalOptions{Kind: synth.Gamma, Rate: 9, Burstiness: .3, N: 500, Seed: 7}
	if !slices.Equal(arrivals(t, o), arrivals(t, o)) {
		t.Error("one seed gave two schedules")
	}
	other := o
	other.Seed = 8
	if slices.Equal(arrivals(t, o), arrivals(t, other)) {
		t.Error("two seeds gave one schedule")
	}
}

func TestArrivalOptionsNameEveryFault(t *testing.T) {
	for _, c := range []struct {
		o    synth.ArrivalOptions
		want []string
	}{
		{synth.ArrivalOptions{}, []string{`not ""`, "request rate", "number or a duration"}},
		{synth.ArrivalOptions{Kind: synth.Gamma, Rate: math.NaN(), N: -1}, []string{"request rate", "burstiness must be", "must be >= 0"}},
		{synth.ArrivalOptions{Kind: synth.Poisson, Rate: 1, Burstiness: .5, N: 1}, []string{"no meaning for poisson"}},
		{synth.ArrivalOptions{Kind: synth.Constant, Rate: 1e9, Duration: time.Hour}, []string{"more than"}},
		{synth.ArrivalOptions{Kind: synth.Constant, Rate: 1e-9, N: 1000}, []string{"292 years"}},
	} {
		_, err := synth.Arrivals(c.o)
		if fault.Of(err) != fault.Usage {
			t.Errorf("%+v: %v", c.o, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: %q does not say %q", c.o, err, w)
			}
		}
	}
}
