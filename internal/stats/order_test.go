package stats_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/stats"
)

// The ranks of independent values are those of the binomial distribution: P(B ≤ l−1) ≤ α/2 and P(B ≥ u) ≤ α/2.
func TestQuantileRanksAreBinomial(t *testing.T) {
	for _, c := range []struct {
		n       int
		p, conf float64
	}{{10, .5, .95}, {6, .5, .95}, {5, .5, .95}, {20, .95, .95}, {59, .95, .9}, {100, .99, .95}, {368, .99, .95}, {367, .99, .95}, {1000, .95, .95}, {5000, .999, .99}} {
		b := distuv.Binomial{N: float64(c.n), P: c.p}
		alpha := (1 - c.conf) / 2
		lower, upper := 0, c.n+1
		for r := 1; r <= c.n; r++ {
			if b.CDF(float64(r-1)) < alpha {
				lower = r
			}
			if 1-b.CDF(float64(r-1)) <= alpha+1e-13 && upper > r {
				upper = r
			}
		}
		gotLower, gotUpper := stats.QuantileRanks(c.n, float64(c.n), c.p, c.conf)
		if gotLower != lower || gotUpper != upper {
			t.Errorf("n %d p %g conf %g: [%d, %d], the binomial has [%d, %d]", c.n, c.p, c.conf, gotLower, gotUpper, lower, upper)
		}
	}
}

func TestQuantileRanksOfFewerEffectiveValuesAreWider(t *testing.T) {
	const n = 10_000
	lastLower, lastUpper := n, 0
	for _, effective := range []float64{n, 3000, 1000.5, 300, 80, 20, 1, 0} {
		lower, upper := stats.QuantileRanks(n, effective, .95, .95)
		if at := stats.Rank(n, .95); lower > at || upper < at || lower > lastLower || upper < lastUpper {
			t.Errorf("effective %g: [%d, %d] after [%d, %d]", effective, lower, upper, lastLower, lastUpper)
		}
		lastLower, lastUpper = lower, upper
	}
	if lastLower != 0 || lastUpper != n+1 {
		t.Errorf("nothing is bounded by no values: [%d, %d]", lastLower, lastUpper)
	}
	if lower, upper := stats.QuantileRanks(0, 0, .5, .95); lower != 0 || upper != 1 {
		t.Errorf("no values: [%d, %d]", lower, upper)
	}
	if lower, upper := stats.QuantileRanks(3, math.NaN(), .5, .95); lower != 0 || upper != 4 {
		t.Errorf("an unknown number of values: [%d, %d]", lower, upper)
	}
}
