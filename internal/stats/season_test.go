package stats_test

import (
	"math"
	"slices"
	"testing"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
)

// A slope is found beneath any pattern that repeats, with days missing and a few far off.
func TestSeasonalSlopeDoesNotSeeTheSeason(t *testing.T) {
	r := rng.New(1, "season")
	season := [7]float64{0, 3, -2, 5, 1, -9, -8}
	var at []int
	var y []float64
	for d := range 56 {
		if d%11 == 4 {
			continue
		}
		v := .25*float64(d) + season[d%7]
		if d%13 == 2 {
			v += 50 * r.Float64()
		}
		at, y = append(at, d), append(y, v)
	}
	if got := stats.SeasonalSlope(at, y, 7); math.Abs(got-.25) > 1e-9 {
		t.Errorf("slope %v, want .25", got)
	}
	if got := stats.SeasonalSlope([]int{0, 3, 6}, []float64{1, 2, 3}, 7); got != 0 {
		t.Errorf("slope %v of no pair", got)
	}
	var even []int
	for i := range y {
		even = append(even, i)
	}
	if a, b := stats.SeasonalSlope(even, y, 1), stats.TheilSen(y); a != b {
		t.Errorf("a period of one step gives %v, Theil and Sen %v", a, b)
	}
}

func TestHodgesLehmann(t *testing.T) {
	for _, tt := range []struct {
		x    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{1, 2}, 1.5}, {[]float64{1, 2, 3, 4, 1000}, 3}} {
		before := slices.Clone(tt.x)
		if got := stats.HodgesLehmann(tt.x); got != tt.want || !slices.Equal(before, tt.x) {
			t.Errorf("%v of %v, want %v", got, before, tt.want)
		}
	}
}

func TestLine(t *testing.T) {
	slope, level, rest := stats.Line([]float64{0, 1, 2, 3}, []float64{1, 3, 5, 7})
	if slope != 2 || level != 1 || rest > 1e-20 {
		t.Errorf("%v %v %v", slope, level, rest)
	}
	if slope, level, rest = stats.Line([]float64{2, 2}, []float64{1, 3}); slope != 0 || level != 2 || rest != 2 {
		t.Errorf("%v %v %v", slope, level, rest)
	}
}

// Of a mean, the jackknife's variance is the variance of the values over their number.
func TestJackknifeOfAMean(t *testing.T) {
	r := rng.New(2, "jackknife")
	x := make([]float64, 12)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	var without [][]float64
	for i := range x {
		rest := slices.Delete(slices.Clone(x), i, i+1)
		without = append(without, []float64{stats.Mean(rest), -2 * stats.Mean(rest)})
	}
	m, sum := stats.Mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	want := sum / 11 / 12
	c := stats.Jackknife(without)
	if math.Abs(c[0][0]-want) > 1e-12 || math.Abs(c[0][1]+2*want) > 1e-12 || math.Abs(c[1][1]-4*want) > 1e-12 {
		t.Errorf("%v, want %v", c, want)
	}
	if stats.Jackknife(without[:1]) != nil {
		t.Error("one part has a covariance")
	}
}
