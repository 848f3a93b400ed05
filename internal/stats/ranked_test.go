package stats_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
)

func TestRankedIsWhatSortingGives(t *testing.T) {
	r := rng.New(1, "ranked")
	draws := []struct {
		name string
		draw func() float64
	}{
		{"few different", func() float64 { return float64(r.IntN(17)) }},
		{"one", func() float64 { return 5 }},
		{"both signs", func() float64 { return math.Round(1e6 * r.NormFloat64()) }},
		{"wide", func() float64 { return math.Exp(40 * r.NormFloat64()) }},
		{"zeros and infinities", func() float64 { return []float64{0, math.Inf(1), math.Inf(-1), 1e-300, -3}[r.IntN(5)] }},
		{"near to each other", func() float64 { return 1e6 + r.Float64() }},
	}
	for _, d := range draws {
		for _, n := range []int{1, 2, 1000, 70_000, 200_000} {
			t.Run(fmt.Sprintf("%s, %d", d.name, n), func(t *testing.T) {
				xs := make([]float64, n)
				for i := range xs {
					xs[i] = d.draw()
				}
				sorted, before := slices.Clone(xs), slices.Clone(xs)
				slices.Sort(sorted)
				ranks := []int{1, n, stats.Rank(n, .5), stats.Rank(n, .999), 1 + r.IntN(n), 1 + r.IntN(n), n}
				got := stats.Ranked(xs, ranks...)
				for i, rank := range ranks {
					if got[i] != sorted[rank-1] {
						t.Errorf("rank %d: %v, sorting gives %v", rank, got[i], sorted[rank-1])
					}
				}
				if !slices.Equal(xs, before) {
					t.Error("the values were changed")
				}
			})
		}
	}
	if got := stats.Ranked([]float64{1}); len(got) != 0 {
		t.Errorf("no ranks: %v", got)
	}
}
