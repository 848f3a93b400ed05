package analyze

import (
	"math"
	"slices"
	"testing"

	"tailgate/internal/rng"
)

// Counting gaps gives what sorting them gives, whether they lie within a page, over many, or at its ends.
func TestGapsAreCountedExactly(t *testing.T) {
	for name, draw := range map[string]func(x float64) int32{
		"tokens":  func(x float64) int32 { return int32(15_000 + 10_000*x) },
		"seconds": func(x float64) int32 { return int32(30e6 * x) },
		"all":     func(x float64) int32 { return int32(math.MaxInt32 * x * x * x) },
		"edges":   func(x float64) int32 { return int32(10*x)<<pageBits - int32(2*x) },
		"one":     func(float64) int32 { return 7 },
	} {
		r := rng.New(1, name)
		var c gapCounts
		var all []int32
		for n := range 40 {
			gaps := make([]int32, n)
			for i := range gaps {
				gaps[i] = max(0, draw(r.Float64()))
			}
			c.add(gaps)
			all = append(all, gaps...)
		}
		slices.Sort(all)
		ranks := r.Perm(len(all)) // in no order, some twice
		for i := range ranks {
			ranks[i] = 1 + ranks[i]/2*2
		}
		for i, got := range c.smallest(ranks...) {
			if want := float64(all[ranks[i]-1]); got != want {
				t.Fatalf("%s: rank %d of %d is %v, want %v", name, ranks[i], len(all), got, want)
			}
		}
		if c.count() != len(all) {
			t.Errorf("%s: %d of %d", name, c.count(), len(all))
		}
	}
}
