package analyze

import (
	"math"
	"os"
	"slices"
	"testing"

	"tailgate/internal/rng"
)

// slotTimes are the times to the first token, in s, of a queue of 32 slots, first come first served, under Poisson
// arrivals at a share of its capacity: service lognormal with mean 8 s and CV 1. The first minute is left out.
func slotTimes(seed uint64, load, minutes float64) []float64 {
	r := rng.New(seed, "slot-times")
	var free [32]float64
	sigma := math.Sqrt(math.Log(2))
	var out []float64
	for at := 0.0; at < (minutes+1)*60; at += r.ExpFloat64() / (4 * load) {
		k := 0
		for i := range free {
			if free[i] < free[k] {
				k = i
			}
		}
		start := max(at, free[k])
		free[k] = start + math.Exp(math.Log(8)-sigma*sigma/2+sigma*r.NormFloat64())
		if at > 60 {
			out = append(out, start-at+.15+.1*r.ExpFloat64())
		}
	}
	return out
}

// The interval of p95 holds the true value in at least 88 % of 60-minute runs near capacity, where an interval for
// independent requests would in a few. The true values are those of 400 hours. With TAILGATE_PROVE=full the rates are
// those that docs/metrics.md gives.
func TestIntervalsCoverTheTruth(t *testing.T) {
	runs := 24
	if os.Getenv("TAILGATE_PROVE") == "full" {
		runs = 200
	}
	for _, c := range []struct{ load, minutes, p95, least float64 }{
		{.8, 60, 1.573, .88}, {.9, 60, 5.528, .88}, {.8, 10, 1.573, .8}, {.9, 10, 5.528, .8},
	} {
		hit, open, naive := 0, 0, 0
		for seed := range uint64(runs) {
			xs := slotTimes(seed, c.load, c.minutes)
			m := describe("ttft", values(slices.Clone(xs)), &rowSample{values: xs}, 0, 0, 1)
			in, _ := m.Tail.Intervals.of("p95")
			if !(float64(in.Lower) > c.p95) && float64(in.Upper) >= c.p95 {
				hit++
			}
			if math.IsInf(float64(in.Upper), 1) {
				open++
			}
			m.Tail.bound(values(slices.Clone(xs)), len(xs), independent(len(xs)), []float64{1, 1, 1, 1, 1, 1}, 1)
			in, _ = m.Tail.Intervals.of("p95")
			if float64(in.Lower) <= c.p95 && float64(in.Upper) >= c.p95 {
				naive++
			}
		}
		share := func(k int) float64 { return float64(k) / float64(runs) }
		t.Logf("load %g, %g min: %.3f hold the true p95, %.3f are open upwards; %.3f with requests taken as independent", c.load, c.minutes,
			share(hit), share(open), share(naive))
		if share(hit) < c.least || share(naive) > .5 {
			t.Errorf("load %g, %g min: %.3f of intervals hold the true p95, want %.2f; %.3f of the naive ones", c.load, c.minutes, share(hit), c.least, share(naive))
		}
	}
}

// independent takes every value as worth itself.
type independent int

func (n independent) effective(limits []float64) []float64 {
	out := make([]float64, len(limits))
	for k := range out {
		out[k] = float64(n) * caution
	}
	return out
}
