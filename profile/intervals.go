package profile

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/schemas"
)

// Intervals come from blocks of five minutes, each left out in turn (the delete-one-block jackknife; Künsch 1989):
// arrivals inside a block may depend on each other in any way. With n blocks the log of a figure has the quantiles of
// Student's t with n−1 degrees of freedom; a bootstrap over the dozen blocks of an hour would be too narrow.
const (
	blockUs   = 300_000_000
	minBlocks = 5
)

// gapSums are sums over the gaps that begin in one block.
type gapSums struct{ n, x, x2, log, pow, powLog float64 }

func (s *gapSums) add(o gapSums, sign float64) {
	s.n += sign * o.n
	s.x += sign * o.x
	s.x2 += sign * o.x2
	s.log += sign * o.log
	s.pow += sign * o.pow
	s.powLog += sign * o.powLog
}

// gapBlocks sums the gaps by block; ties count as half a step. k is the power of pow and powLog; with 0, only the gaps
// and their squares are summed up.
func gapBlocks(stamps []int64, half, k float64) []gapSums {
	if len(stamps) < 2 {
		return nil
	}
	out := make([]gapSums, (stamps[len(stamps)-1]-1)/blockUs+1)
	for i := 1; i < len(stamps); {
		block := stamps[i-1] / blockUs
		b, end := gapSums{}, (block+1)*blockUs
		for ; i < len(stamps) && stamps[i-1] < end; i++ {
			x := float64(stamps[i]-stamps[i-1]) / 1e6
			b.n++
			b.x += x
			b.x2 += x * x
			if k == 0 {
				continue
			}
			p := max(x, half)
			l := math.Log(p)
			if k != 1 {
				p = math.Exp(k * l)
			}
			b.log += l
			b.pow += p
			b.powLog += p * l
		}
		out[block] = b
	}
	return out
}

// jackknife is the 95 % interval of a positive figure of the blocks around its estimate, which may be taken from more
// than their sums; nulls for too few blocks. What the figure does when a block is left out tells how far the estimate may
// be off; where it lies tells nothing, since the sums count ties as half a step, which an estimate may know better.
func jackknife(blocks []gapSums, estimate float64, figure func(gapSums) float64) (lo, hi *float64) {
	var all gapSums
	n := 0.0
	for _, b := range blocks {
		all.add(b, 1)
		if b.n > 0 {
			n++
		}
	}
	if n < minBlocks {
		return nil, nil
	}
	var sum, sum2 float64
	first := math.Log(figure(all)) // sums of distances from it are exact where all values are about the same
	for _, b := range blocks {
		if b.n == 0 {
			continue
		}
		rest := all
		rest.add(b, -1)
		v := math.Log(figure(rest)) - first
		sum, sum2 = sum+v, sum2+v*v
	}
	mean := sum / n
	se := math.Sqrt(max((n-1)/n*(sum2-n*mean*mean), 0))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
	return val(estimate * math.Exp(-t*se)), val(estimate * math.Exp(t*se))
}

func cvInterval(stamps []int64, cv float64) (lo, hi *float64) {
	return jackknife(gapBlocks(stamps, 0, 0), cv, func(s gapSums) float64 {
		mean := s.x / s.n
		return math.Sqrt((s.x2-s.n*mean*mean)/(s.n-1)) / mean
	})
}

// blockIntervals fills in the intervals of the first parameter of the likelihood fits on the raw clock. The lognormal
// mu may be negative and the ON/OFF rates are no sums: they have none.
func blockIntervals(stamps []int64, resolution int64, fits []schemas.ProfileIATFit) {
	k := 1.0
	for _, f := range fits {
		if f.Method == MethodMLE && f.Dist == Weibull {
			k = *f.P1
		}
	}
	var blocks []gapSums
	start := math.NaN() // of the Gamma shapes: that of all blocks
	for i := range fits {
		f := &fits[i]
		figure := map[string]func(gapSums) float64{
			Exponential: func(s gapSums) float64 { return s.n / s.x },
			Gamma: func(s gapSums) float64 {
				gap := math.Log(s.x/s.n) - s.log/s.n
				if math.IsNaN(start) {
					start = gammaShape(gap)
				}
				return gammaShapeNear(gap, start)
			},
			Weibull: func(s gapSums) float64 { return k / (1 + k*(s.powLog/s.pow-1/k-s.log/s.n)/weibullCurve) },
		}[f.Dist]
		if f.Method != MethodMLE || figure == nil {
			continue
		}
		if blocks == nil {
			blocks = gapBlocks(stamps, float64(resolution)/2e6, k)
		}
		f.P1Lo, f.P1Hi = jackknife(blocks, *f.P1, figure)
	}
}

// weibullCurve is k² times the slope of the profile score at its root for a Weibull law: there k·log x weighted by xᵏ
// has the variance ψ′(2) = π²/6 − 1, and 1/k² comes on top. It makes one Newton step out of the sums of a power k.
const weibullCurve = math.Pi * math.Pi / 6

// interval is the interval of the index of dispersion at a scale of at most a minute: blocks hold whole windows.
func (r runs) interval(span, scale int64, idc float64) (lo, hi *float64) {
	if scale > 60_000_000 || blockUs%scale != 0 {
		return nil, nil
	}
	perBlock := blockUs / scale
	blocks := make([]gapSums, span/scale/perBlock)
	for i := range blocks {
		blocks[i].n = float64(perBlock)
	}
	r.each(scale, int64(len(blocks))*perBlock, func(window, n int64) {
		b := &blocks[window/perBlock]
		b.x += float64(n)
		b.x2 += float64(n) * float64(n)
	})
	return jackknife(blocks, idc, func(s gapSums) float64 {
		mean := s.x / s.n
		return (s.x2 - s.n*mean*mean) / (s.n - 1) / mean
	})
}
