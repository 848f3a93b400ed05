package analyze

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/stats"
)

// RunInterval is an interval of one percentile over independent runs, each of which gives one value.
type RunInterval struct {
	Name   string `json:"-"`
	Runs   int    `json:"runs"`
	Centre Figure `json:"centre"` // geometric mean, or the median run where the method is order
	Lower  Figure `json:"lower"`
	Upper  Figure `json:"upper"`
	// Method is "t" (Student's t on the logarithms of the runs' percentiles) or "order" (order statistics of the
	// runs' percentiles for the median run), where a run's percentile is infinite or 0.
	Method string `json:"method"`
}

// RunIntervals holds one RunInterval per percentile; its JSON is an object.
type RunIntervals []RunInterval

// MarshalJSON writes an object with the percentiles as names.
func (in RunIntervals) MarshalJSON() ([]byte, error) {
	return objectOf(in, func(i RunInterval) string { return i.Name })
}

// fewestRuns is how many independent runs an interval over runs needs.
const fewestRuns = 5

// overRuns gives intervals over the runs that the rows come from; null for fewer than five.
func (v *view) overRuns(rows []int32, m metricName) RunIntervals {
	if len(v.periods) < fewestRuns {
		return nil
	}
	var runs []Tail
	for len(rows) > 0 { // in order of clocks
		clock := v.clocks[v.d.input.at(rows[0])]
		n := sort.Search(len(rows), func(k int) bool { return v.clocks[v.d.input.at(rows[k])] > clock })
		runs = append(runs, v.d.metricOf(rows[:n], m.metric, m.json, false).Tail)
		rows = rows[n:]
	}
	return betweenRuns(runs)
}

// betweenRuns gives the intervals over runs of the tails' percentiles; runs without a value are left out, and a
// percentile that fewer than five runs have is.
func betweenRuns(runs []Tail) RunIntervals {
	var out RunIntervals
	for _, p := range percentiles {
		var xs []float64
		for _, t := range runs {
			if x := *p.inTail(&t); x.Known() {
				xs = append(xs, float64(x))
			}
		}
		if len(xs) < fewestRuns {
			continue
		}
		slices.Sort(xs)
		out = append(out, overRun(p.name, xs))
	}
	return out
}

// overRun takes ascending values, one a run.
func overRun(name string, xs []float64) RunInterval {
	r := RunInterval{Name: name, Runs: len(xs), Method: "t"}
	if xs[0] <= 0 || math.IsInf(xs[len(xs)-1], 1) {
		lower, upper := stats.QuantileRanks(len(xs), float64(len(xs)), .5, intervalConfidence)
		at := pick(values(xs), len(xs), []int{lower, upper, stats.Rank(len(xs), .5)})
		r.Method, r.Lower, r.Upper, r.Centre = "order", Figure(at[0]), Figure(at[1]), Figure(at[2])
		return r
	}
	n, mean, squares := float64(len(xs)), 0.0, 0.0
	for _, x := range xs {
		mean += math.Log(x) / n
	}
	for _, x := range xs {
		squares += (math.Log(x) - mean) * (math.Log(x) - mean)
	}
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1+intervalConfidence)/2) * math.Sqrt(squares/(n-1)/n)
	r.Centre, r.Lower, r.Upper = Figure(math.Exp(mean)), Figure(math.Exp(mean-half)), Figure(math.Exp(mean+half))
	return r
}
