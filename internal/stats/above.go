package stats

import "math/bits"

// BitsAbove returns for each limit the series of x > limit.
func BitsAbove(xs []float64, limits []float64) []Bits {
	out := make([]Bits, len(limits))
	for k := range out {
		out[k] = Bits{words: make([]uint64, 0, (len(xs)+63)/64), n: len(xs)}
	}
	for from := 0; from < len(xs); from += 64 {
		chunk := xs[from:min(from+64, len(xs))]
		for k, limit := range limits {
			word := uint64(0)
			for i, x := range chunk {
				above := uint64(0)
				if x > limit {
					above = 1
				}
				word |= above << i
			}
			out[k].words = append(out[k].words, word)
			out[k].ones += bits.OnesCount64(word)
		}
	}
	return out
}

// TauCoarse is Tau of a long series from the means of equal blocks of it, about as many as told: the variance of the
// block means times their own autocorrelation time, against the variance that independent values would give them. It
// takes Tau where the series is short enough for it.
func (b *Bits) TauCoarse(blocks int) float64 {
	words := b.n / 64 // whole ones
	per := words / blocks
	if per == 0 || b.ones == 0 || b.ones == b.n {
		return b.Tau()
	}
	means := make([]float64, words/per)
	for i := range means {
		ones := 0
		for _, w := range b.words[i*per : (i+1)*per] {
			ones += bits.OnesCount64(w)
		}
		means[i] = float64(ones) / float64(64*per)
	}
	v := b.Share()
	return max(1, float64(64*per)*variance(means)/(v*(1-v))*TauOf(means))
}

// variance is the mean square of the distances from the mean, 0 without values.
func variance(xs []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		sum += (x - mean) * (x - mean) / float64(len(xs))
	}
	return sum
}
