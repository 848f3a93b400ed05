package stats

import (
	"math"
	"slices"
)

// TheilSen returns the median slope over all pairs of an evenly spaced series, in units per step (Theil 1950;
// Sen 1968). It is 0 for fewer than two values. The cost is quadratic in len(y).
func TheilSen(y []float64) float64 {
	if len(y) < 2 {
		return 0
	}
	slopes := make([]float64, 0, len(y)*(len(y)-1)/2)
	for i := range y {
		for j := i + 1; j < len(y); j++ {
			slopes = append(slopes, (y[j]-y[i])/float64(j-i))
		}
	}
	return median(slopes)
}

// KS returns the two-sample Kolmogorov–Smirnov statistic: the largest distance between the two empirical
// distribution functions, in [0, 1] (Smirnov 1939). It is 0 when a sample is empty. a and b are not changed.
func KS(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	d, i, j := 0.0, 0, 0
	for i < len(a) && j < len(b) {
		x := min(a[i], b[j])
		for i < len(a) && a[i] == x {
			i++
		}
		for j < len(b) && b[j] == x {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return d
}
