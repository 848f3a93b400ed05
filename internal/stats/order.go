package stats

import "gonum.org/v1/gonum/mathext"

// QuantileRanks returns the 1-based ranks, among n ascending values, whose values are the ends of a two-sided interval
// for the p-quantile at confidence conf, by order statistics (Conover, Practical Nonparametric Statistics, 3.2): the
// values are worth effective independent ones, which need not be whole. With effective = n it is the classic exact
// interval. A rank of 0 or n+1 says that the interval is open on that side: the sample cannot bound the quantile there.
func QuantileRanks(n int, effective, p, conf float64) (lower, upper int) {
	if n <= 0 || !(effective > 0) {
		return 0, n + 1
	}
	alpha, beyond := (1-conf)/2, 1-p
	// The end at rank r bounds the quantile when so many values beyond it contradict the share 1−p. Both tests are the
	// bounds of Clopper and Pearson without their inversion: Upper(k/n) <= 1−p, Lower(k/n) > 1−p.
	upperHolds := func(r int) bool {
		hits := effective * float64(n-r) / float64(n)
		return effective-hits > 0 && mathext.RegIncBeta(hits+1, effective-hits, beyond) >= 1-alpha
	}
	lowerHolds := func(r int) bool {
		hits := effective * float64(n-r+1) / float64(n)
		return mathext.RegIncBeta(hits, effective-hits+1, beyond) < alpha
	}
	lo, hi := 0, n+1 // upperHolds from some rank on
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; upperHolds(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	upper = hi
	lo, hi = 0, n+1 // lowerHolds up to some rank
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; lowerHolds(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, upper
}
