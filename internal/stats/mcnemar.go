package stats

import "gonum.org/v1/gonum/mathext"

// McNemar is the exact two-sided p value that, of b + c pairs that differ, so many differ one way (McNemar 1947, binomial
// form with p = 1/2): 2·P(X ≤ min(b, c)), at most 1. The numbers need not be whole: effective numbers of dependent pairs
// are between the values of the whole ones. It is 1 where no pair differs.
func McNemar(b, c float64) float64 {
	n := b + c
	if n <= 0 {
		return 1
	}
	k := min(b, c)
	// P(X ≤ k) for Bin(n, 1/2) is the regularised incomplete beta I_{1/2}(n−k, k+1).
	return min(1, 2*mathext.RegIncBeta(n-k, k+1, .5))
}
