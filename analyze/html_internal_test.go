package analyze

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
)

func TestPeaks(t *testing.T) {
	open := []interval{{-5, 12}, {0, 3}, {2, 4}, {9, 11}, {10, 11}, {25, math.MaxInt64}}
	if diff := cmp.Diff([]float64{3, 3, 1, 1}, peaks(open, 0, 30, 10)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{0}, peaks(nil, 0, 5, 10)); diff != "" {
		t.Error(diff)
	}
}

// A curve of many values has few points, never falls, and keeps the least and the largest value.
func TestCumulativeKeepsTheExtremes(t *testing.T) {
	r := rng.New(1, "cdf")
	for _, n := range []int{1, 2, 7, 100_000} {
		q := make(values, n)
		for i := range q {
			q[i] = math.Exp(3 * r.NormFloat64())
		}
		least, most := slices.Min(q), slices.Max(q)
		l := cumulative("x", q, n/10, 1, 0)
		if len(l.X) > cdfPoints+2 || !slices.IsSorted(l.X) || !slices.IsSorted(l.Y) {
			t.Errorf("n = %d: %d points, or a curve that falls", n, len(l.X))
		}
		if l.X[0] != least || l.X[len(l.X)-1] != most || l.Y[len(l.Y)-1] >= 1 {
			t.Errorf("n = %d: from %g to %g, want %g to %g", n, l.X[0], l.X[len(l.X)-1], least, most)
		}
	}
	if l := cumulative("x", values{}, 3, 1, 0); len(l.X) != 0 {
		t.Errorf("no finite value: %v", l)
	}
}

// A counter that goes back, a look that lacks the second counter and times outside give nothing.
func TestPointsOfCounters(t *testing.T) {
	s := []series{
		{"a", "hits", []int64{0, 1e6, 2e6, 3e6, 4e6}, []float64{0, 10, 30, 5, 15}},
		{"a", "queries", []int64{0, 1e6, 2e6, 3e6, 4e6}, []float64{0, 20, 60, 10, 50}},
		{"b", "hits", []int64{1e6}, []float64{7}},
	}
	of := func(how derivation, target string, from, to int64, names ...string) []point {
		return serverMetric{how: how, from: names}.points(s, target, from, to)
	}
	equal := cmp.AllowUnexported(point{})
	for _, c := range []struct {
		name string
		got  []point
		want []point
	}{
		{"rate", of(perSecond, "a", 0, 4e6, "hits"), []point{{1e6, 10, 1}, {2e6, 20, 1}, {4e6, 10, 1}}},
		{"share", of(growthOf, "a", 1e6, 4e6, "hits", "queries"), []point{{2e6, 20, 40}, {4e6, 10, 40}}},
		{"rest", of(restOf, "a", 2e6, 4e6, "hits", "queries"), []point{{4e6, 30, 40}}},
		{"part", of(partOf, "a", 1e6, 1e6, "hits", "queries"), []point{{1e6, 10, 30}}},
		{"level", of(level, "b", 0, 4e6, "hits"), []point{{1e6, 7, 1}}},
		{"one counter is missing", of(growthOf, "b", 0, 4e6, "hits", "queries"), nil},
	} {
		if diff := cmp.Diff(c.want, c.got, equal); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestSettleJoinsLabels(t *testing.T) {
	for metric, want := range map[string][]float64{"kv_used_ratio": {.5, .9}, "requests_running": {.7, .9}} {
		s := series{metric: metric, at: []int64{5, 0, 0}, values: []float64{.9, .2, .5}}
		s.settle()
		if !cmp.Equal(s.at, []int64{0, 5}) || !cmp.Equal(s.values, want) {
			t.Errorf("%s: %v %v", metric, s.at, s.values)
		}
	}
}
