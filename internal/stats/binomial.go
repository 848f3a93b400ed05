package stats

import "gonum.org/v1/gonum/mathext"

// Upper returns the one-sided upper bound of a share that was seen as v in n trials, exact in the sense of
// Clopper and Pearson (1934): BetaInv(conf; n·v+1, n−n·v). n need not be whole, so that an effective number
// of trials can be used. It is 1 when n is 0 or every trial hit.
func Upper(n, v, conf float64) float64 {
	hits, misses := n*v, n*(1-v)
	if n <= 0 || misses <= 0 {
		return 1
	}
	return mathext.InvRegIncBeta(hits+1, misses, conf)
}

// Lower returns the one-sided lower bound of the share: BetaInv(1−conf; n·v, n−n·v+1). It is 0 when n is 0
// or no trial hit.
func Lower(n, v, conf float64) float64 {
	hits, misses := n*v, n*(1-v)
	if n <= 0 || hits <= 0 {
		return 0
	}
	return mathext.InvRegIncBeta(hits, misses+1, 1-conf)
}

// TrialsForUpper returns the smallest number of trials at which a share seen as v has an upper bound of at
// most limit, and false when no number of trials reaches it (v >= limit).
func TrialsForUpper(v, limit, conf float64) (float64, bool) {
	if v >= limit || limit >= 1 {
		return 0, limit >= 1
	}
	lo, hi := 0.0, 1.0
	for Upper(hi, v, conf) > limit {
		lo, hi = hi, hi*2
		if hi > 1e15 {
			return 0, false
		}
	}
	for hi-lo > 1e-9*hi {
		mid := (lo + hi) / 2
		if Upper(mid, v, conf) > limit {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi, true
}
