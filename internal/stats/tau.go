package stats

import "math/bits"

// Bits is a series of yes and no, packed, so that the autocorrelation of ten million indicators is a count of
// common bits.
type Bits struct {
	words []uint64
	n     int
	ones  int
}

// Append adds one indicator.
func (b *Bits) Append(v bool) {
	if b.n%64 == 0 {
		b.words = append(b.words, 0)
	}
	if v {
		b.words[b.n/64] |= 1 << (b.n % 64)
		b.ones++
	}
	b.n++
}

// Len counts the indicators.
func (b *Bits) Len() int { return b.n }

// Ones counts the indicators that are true.
func (b *Bits) Ones() int { return b.ones }

// Share is Ones/Len, 0 for an empty series.
func (b *Bits) Share() float64 {
	if b.n == 0 {
		return 0
	}
	return float64(b.ones) / float64(b.n)
}

func (b *Bits) at(i int) int { return int(b.words[i/64] >> (i % 64) & 1) }

// common counts the positions i with b[i] and b[i+k] both true.
func (b *Bits) common(k int) int {
	skip, shift := k/64, uint(k%64)
	sum := 0
	for i := 0; i+skip < len(b.words); i++ {
		w := b.words[i+skip] >> shift
		if shift > 0 && i+skip+1 < len(b.words) {
			w |= b.words[i+skip+1] << (64 - shift)
		}
		sum += bits.OnesCount64(b.words[i] & w)
	}
	return sum
}

// Tau returns the integrated autocorrelation time of the series, at least 1: n/Tau is the number of
// independent values that estimate the share as well. See TauOf for the method.
func (b *Bits) Tau() float64 {
	if b.ones == 0 || b.ones == b.n {
		return 1
	}
	n, mean := float64(b.n), b.Share()
	head, tail := b.ones, b.ones // ones in [0, n−k) and in [k, n)
	variance := mean * (1 - mean)
	return geyer(b.n, func(k int) float64 {
		if k > 0 {
			head -= b.at(b.n - k)
			tail -= b.at(k - 1)
		}
		c := float64(b.common(k)) - mean*float64(head+tail) + float64(b.n-k)*mean*mean
		return c / n / variance
	})
}

// TauOf returns the integrated autocorrelation time of a series, at least 1, by the initial monotone positive
// sequence of Geyer (Practical Markov chain Monte Carlo, 1992): Γ_m = ρ_2m + ρ_2m+1, cut at the first Γ ≤ 0,
// each Γ replaced by the running minimum; tau = 2ΣΓ − 1. A constant series has tau 1.
func TauOf(x []float64) float64 {
	if len(x) == 0 {
		return 1
	}
	mean := Mean(x)
	d := make([]float64, len(x))
	variance := 0.0
	for i, v := range x {
		d[i] = v - mean
		variance += d[i] * d[i]
	}
	if variance == 0 {
		return 1
	}
	var c [lagsAtOnce]float64
	return geyer(len(x), func(k int) float64 {
		if k%lagsAtOnce == 0 {
			c = products(d, k)
		}
		return c[k%lagsAtOnce] / variance
	})
}

// lagsAtOnce is how many lags one pass takes: a sum waits for its last addition, several do not wait for each other.
const lagsAtOnce = 4

// products are the sums of d[i]·d[i+lag] for the lags from k on, each added up in the order of i.
func products(d []float64, k int) (c [lagsAtOnce]float64) {
	whole := max(0, len(d)-k-lagsAtOnce+1) // positions that all lags have
	c0, c1, c2, c3 := 0.0, 0.0, 0.0, 0.0
	if whole > 0 {
		at, d0, d1, d2, d3 := d[:whole], d[k:], d[k+1:], d[k+2:], d[k+3:]
		d0, d1, d2, d3 = d0[:len(at)], d1[:len(at)], d2[:len(at)], d3[:len(at)]
		for i, v := range at {
			c0 += d0[i] * v
			c1 += d1[i] * v
			c2 += d2[i] * v
			c3 += d3[i] * v
		}
	}
	c = [lagsAtOnce]float64{c0, c1, c2, c3}
	for lag := range c {
		for i := whole; i+k+lag < len(d); i++ {
			c[lag] += d[i+k+lag] * d[i]
		}
	}
	return c
}

// geyer sums the monotone positive sequence; rho is called once per lag, in ascending order.
func geyer(n int, rho func(lag int) float64) float64 {
	sum, least := 0.0, 0.0
	for k := 0; k+1 < n; k += 2 {
		g := rho(k) + rho(k+1)
		if g <= 0 {
			break
		}
		if k == 0 || g < least {
			least = g
		}
		sum += least
	}
	return max(1, 2*sum-1)
}
