package stats

// SeasonalSlope returns the median slope over all pairs of values that lie a whole number of periods apart, in units per
// step of t: a trend that does not see what repeats with the period (Hirsch, Slack and Smith, Techniques of trend analysis
// for monthly water quality data, 1982). t is strictly ascending; it need not be evenly spaced. The slope is 0 where there
// is no such pair. The cost is quadratic in len(y).
func SeasonalSlope(t []int, y []float64, period int) float64 {
	var slopes []float64
	for i := range t {
		for j := i + 1; j < len(t); j++ {
			if d := t[j] - t[i]; d%period == 0 {
				slopes = append(slopes, (y[j]-y[i])/float64(d))
			}
		}
	}
	return median(slopes)
}

// HodgesLehmann returns the median of the means of all pairs of values, each value beside itself included: the middle of a
// sample that a few outliers do not move (Hodges and Lehmann 1963). It is 0 for no values. The cost is quadratic in len(x).
func HodgesLehmann(x []float64) float64 {
	means := make([]float64, 0, len(x)*(len(x)+1)/2)
	for i, a := range x {
		for _, b := range x[i:] {
			means = append(means, (a+b)/2)
		}
	}
	return median(means)
}

// median reorders x. It is 0 for no values.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	hi, lo := len(x)/2, (len(x)-1)/2
	Select(x, lo, hi)
	return (x[lo] + x[hi]) / 2
}

// Mean is the arithmetic mean, 0 for no values.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Line returns the least-squares line y = level + slope·x and the sum of the squares that it leaves. The slope is 0 where
// all x are equal.
func Line(x, y []float64) (slope, level, rest float64) {
	mx, my := Mean(x), Mean(y)
	var sxx, sxy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	if sxx > 0 {
		slope = sxy / sxx
	}
	level = my - slope*mx
	for i := range x {
		d := y[i] - level - slope*x[i]
		rest += d * d
	}
	return slope, level, rest
}

// Jackknife returns the covariance of an estimate of several figures from what it is when each of n independent parts of the
// data is left out in turn (Quenouille 1956; for parts of a series, Künsch 1989). without has one row for each part; two
// are needed, else the covariance is empty.
func Jackknife(without [][]float64) [][]float64 {
	n := float64(len(without))
	if n < 2 {
		return nil
	}
	k := len(without[0])
	means := make([]float64, k)
	for i := range means {
		for _, row := range without {
			means[i] += row[i] / n
		}
	}
	out := make([][]float64, k)
	for i := range out {
		out[i] = make([]float64, k)
		for j := range out[i] {
			for _, row := range without {
				out[i][j] += (row[i] - means[i]) * (row[j] - means[j]) * (n - 1) / n
			}
		}
	}
	return out
}
