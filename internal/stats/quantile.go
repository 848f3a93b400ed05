package stats

import (
	"math"
	"math/bits"
	"slices"
)

// Rank returns the 1-based nearest rank ⌈p·n⌉ of the p-quantile (0 ≤ p ≤ 1) of n values, at least 1. p counts
// to six decimals, so that 0.99 of 100 is 99 and not a rounding error above it. It is 0 for n = 0.
func Rank(n int, p float64) int {
	if n <= 0 {
		return 0
	}
	ppm := int(math.Round(p * 1e6))
	// n·ppm/1e6 in two parts, because n·ppm overflows for large n.
	whole, rest := n/1e6, n%1e6
	return max(1, whole*ppm+(rest*ppm+1e6-1)/1e6)
}

// Quantile returns the nearest-rank p-quantile of ascending values, and false when there are none.
func Quantile(sorted []float64, p float64) (float64, bool) {
	if len(sorted) == 0 {
		return 0, false
	}
	return sorted[Rank(len(sorted), p)-1], true
}

// Select reorders xs so that for every index k of ks the value xs[k] is the one that sorting would put there.
// Indexes may come in any order; each must lie in [0, len(xs)). The cost is linear in len(xs) for few ks:
// Hoare's FIND over several ranks (Hoare 1961; Chambers 1971), with a sort as the bound on bad pivots.
func Select(xs []float64, ks ...int) {
	sorted := slices.Clone(ks)
	slices.Sort(sorted)
	selectRange(xs, 0, slices.Compact(sorted), 2*bits.Len(uint(len(xs))))
}

// smallSort is the length from which partitioning pays over sorting.
const smallSort = 64

// selectRange places the ranks ks, which count from the start of the whole slice; xs begins at base.
func selectRange(xs []float64, base int, ks []int, depth int) {
	for len(ks) > 0 {
		if len(xs) <= smallSort || depth == 0 {
			slices.Sort(xs)
			return
		}
		depth--
		lt, gt := partition(xs, pivot(xs))
		left, _ := slices.BinarySearch(ks, base+lt)
		right, _ := slices.BinarySearch(ks, base+gt)
		selectRange(xs[:lt], base, ks[:left], depth)
		xs, base, ks = xs[gt:], base+gt, ks[right:]
	}
}

// partition reorders xs to values below p, equal to p, above p, and returns the bounds of the middle part.
func partition(xs []float64, p float64) (lt, gt int) {
	gt = len(xs)
	for i := 0; i < gt; {
		switch x := xs[i]; {
		case x < p:
			xs[i], xs[lt] = xs[lt], x
			lt++
			i++
		case x > p:
			gt--
			xs[i], xs[gt] = xs[gt], x
		default:
			i++
		}
	}
	return lt, gt
}

// pivot is the median of nine spread values.
func pivot(xs []float64) float64 {
	var v [9]float64
	step := (len(xs) - 1) / 8
	for i := range v {
		v[i] = xs[i*step]
	}
	slices.Sort(v[:])
	return v[4]
}
