package profile

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

const (
	acfLags    = 10
	acfMinGaps = 20 // below it an autocorrelation says nothing
)

// arrivals are the stamps of a group with the gaps between them.
type arrivals struct {
	stamps     []int64 // µs, the first one at 0
	resolution int64
	sorted     []int64 // the gaps in µs, ascending
}

func newArrivals(stamps []int64, resolution int64) *arrivals {
	a := &arrivals{stamps: stamps, resolution: resolution}
	if len(stamps) < 2 {
		return a
	}
	a.sorted = make([]int64, len(stamps)-1)
	for i := range a.sorted {
		a.sorted[i] = stamps[i+1] - stamps[i]
	}
	sortInts(a.sorted)
	return a
}

// tables describes the gaps and fits the laws to them.
func (a *arrivals) tables(key schemas.ProfileKey) ([]schemas.ProfileIAT, []schemas.ProfileIATFit) {
	stats := a.stats(key)
	if !a.observable() {
		return stats, nil
	}
	fits := a.rawFits(key)
	a.sorted = nil
	for _, c := range []struct {
		name  string
		width int64
		cv    **float64
	}{{ClockOp60, 60_000_000, &stats[0].CVOp60}, {ClockOp300, 300_000_000, &stats[0].CVOp300}} {
		gaps := opGaps(a.stamps, c.width)
		*c.cv = val(cv(gaps))
		fits = append(fits, a.opFits(c.name, gaps, key)...)
	}
	return stats, fits
}

// observable tells whether the clock is fine enough for the law of the gaps.
func (a *arrivals) observable() bool {
	n := len(a.stamps)
	return n > 1 && a.stamps[n-1] >= a.resolution*int64(n-1)
}

// stats describes the gaps between the arrivals, in seconds. It gives no row for fewer than two arrivals.
//
// The CV, the autocorrelation and the fits are null when the clock's resolution is above the mean gap: such a
// clock cannot tell the law of the gaps. A quantile below the resolution is null too.
func (a *arrivals) stats(key schemas.ProfileKey) []schemas.ProfileIAT {
	if len(a.sorted) == 0 {
		return nil
	}
	gaps := gapsS(a.stamps)
	row := schemas.ProfileIAT{ProfileKey: key, N: int64(len(gaps)), ACF: []float64{}}
	zero, _ := slices.BinarySearch(a.sorted, 1)
	mean, sd := stat.MeanStdDev(gaps, nil)
	row.MeanS, row.ZeroFrac = val(mean), val(float64(zero)/float64(len(gaps)))
	if a.observable() {
		row.CVRaw = val(sd / mean)
		row.CVLo, row.CVHi = cvInterval(a.stamps, sd/mean)
		row.ACF = autocorrelation(gaps, mean)
	}
	told := func(p float64) *float64 {
		us := a.sorted[stats.Rank(len(gaps), p)-1]
		if us < a.resolution {
			return nil
		}
		return val(float64(us) / 1e6)
	}
	row.MinS, row.P50S, row.P90S, row.P99S, row.MaxS = told(0), told(.5), told(.9), told(.99), told(1)
	return []schemas.ProfileIAT{row}
}

func gapsS(stamps []int64) []float64 {
	if len(stamps) < 2 {
		return nil
	}
	out := make([]float64, len(stamps)-1)
	for i := range out {
		out[i] = float64(stamps[i+1]-stamps[i]) / 1e6
	}
	return out
}

func cv(x []float64) float64 {
	mean, sd := stat.MeanStdDev(x, nil)
	return sd / mean
}

// autocorrelation returns the lags 1..10 by the usual (biased) estimator; empty when it cannot be told.
func autocorrelation(x []float64, mean float64) []float64 {
	if len(x) < acfMinGaps {
		return []float64{}
	}
	var c0 float64
	for _, v := range x {
		c0 += (v - mean) * (v - mean)
	}
	if c0 == 0 {
		return []float64{}
	}
	var c [acfLags]float64
	var past [acfLags]float64 // the values before, the nearest one first
	for _, v := range x {
		v -= mean
		for k, p := range past {
			c[k] += v * p
		}
		copy(past[1:], past[:acfLags-1])
		past[0] = v
	}
	out := make([]float64, acfLags)
	for k := range out {
		out[k] = c[k] / c0
	}
	return out
}

// opGaps returns the gaps on operational time: Λ(t), the expected number of arrivals until t, piecewise linear
// through the counts of windows of the given width in µs. On that clock a process whose rate drifts slowly has
// a constant rate of 1, and what burstiness is left is not the drift's (the time-rescaling theorem; Brown et
// al. 2002). It needs more than one window; nil otherwise.
func opGaps(stamps []int64, width int64) []float64 {
	span := stamps[len(stamps)-1]
	if span <= width {
		return nil
	}
	windows := int((span + width - 1) / width)
	counts := make([]float64, windows)
	eachWindow(stamps, width, windows, func(w int, stamps []int64) { counts[w] = float64(len(stamps)) })
	out := make([]float64, 0, len(stamps))
	last, before := 0.0, 0.0 // the first arrival is at 0
	eachWindow(stamps, width, windows, func(w int, stamps []int64) {
		start := int64(w) * width
		length := float64(min(width, span-start))
		for _, t := range stamps {
			next := before + counts[w]*float64(t-start)/length
			out = append(out, next-last)
			last = next
		}
		before += counts[w]
	})
	return out[1:]
}

// eachWindow visits the arrivals of each window that has one; the last window has what comes after it, too.
func eachWindow(stamps []int64, width int64, windows int, visit func(w int, stamps []int64)) {
	for i := 0; i < len(stamps); {
		w := min(int(stamps[i]/width), windows-1)
		k := i + 1
		for end := int64(w+1) * width; k < len(stamps) && (stamps[k] < end || w == windows-1); {
			k++
		}
		visit(w, stamps[i:k])
		i = k
	}
}
