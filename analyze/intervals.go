package analyze

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"tailgate/internal/stats"
)

// intervalConfidence is that of the two-sided intervals of percentiles.
const intervalConfidence = .95

// Interval bounds one percentile of a tail by order statistics.
type Interval struct {
	Name  string `json:"-"`     // p50 …
	Lower Figure `json:"lower"` // null: not bounded from below
	Upper Figure `json:"upper"` // "inf": not bounded from above
	NEff  Figure `json:"n_eff"` // what the values are worth for this percentile: n / tau*
}

// Intervals holds one Interval per percentile; its JSON is an object.
type Intervals []Interval

// MarshalJSON writes an object with the percentiles as names.
func (in Intervals) MarshalJSON() ([]byte, error) {
	return objectOf(in, func(i Interval) string { return i.Name })
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (in *Intervals) UnmarshalJSON(data []byte) error {
	byName := map[string]Interval{}
	if err := json.Unmarshal(data, &byName); err != nil {
		return err
	}
	*in = nil
	for _, p := range percentiles {
		if i, ok := byName[p.name]; ok {
			i.Name = p.name
			*in = append(*in, i)
		}
	}
	return nil
}

// of finds the interval of a percentile.
func (in Intervals) of(name string) (Interval, bool) {
	k := slices.IndexFunc(in, func(i Interval) bool { return i.Name == name })
	if k < 0 {
		return Interval{}, false
	}
	return in[k], true
}

// objectOf writes a list as an object, in its order.
func objectOf[T any](list []T, name func(T) string) ([]byte, error) {
	var b bytes.Buffer
	for i, x := range list {
		if err := member(&b, i, name(x), x); err != nil {
			return nil, err
		}
	}
	return closed(&b), nil
}

// worth tells, for each limit, how many independent values the share of values beyond it is worth.
type worth interface {
	effective(limits []float64) []float64
}

// bound fills in the intervals of a tail, whose values are the n finite ones of q and infinite ones; found are its
// percentiles before scaling. The effective number at a percentile x is n / tau*, tau* = 1.5 times the larger
// autocorrelation time of "above x" and "above x/2", as for a gate's limit.
func (t *Tail) bound(q quantiles, n int, w worth, found []float64, scale float64) {
	t.Intervals, t.NEff = Intervals{}, unknown
	if t.N == 0 {
		return
	}
	limits := make([]float64, 0, 2*len(percentiles))
	for _, x := range found {
		// Where the rank falls on a failure, what is above it are the failures.
		x = min(x, math.MaxFloat64)
		limits = append(limits, x, x/2)
	}
	effective := w.effective(limits)
	ranks := make([]int, 0, 2*len(percentiles))
	for i, p := range percentiles {
		trials := min(effective[2*i], effective[2*i+1]) / caution
		lower, upper := stats.QuantileRanks(t.N, trials, p.p, intervalConfidence)
		ranks = append(ranks, lower, upper)
		t.Intervals = append(t.Intervals, Interval{Name: p.name, NEff: Figure(trials)})
	}
	at := pick(q, n, ranks)
	for i := range t.Intervals {
		t.Intervals[i].Lower, t.Intervals[i].Upper = Figure(at[2*i]/scale), Figure(at[2*i+1]/scale)
	}
	if i, ok := t.Intervals.of("p95"); ok {
		t.NEff = i.NEff
	}
}

// The autocorrelation of a long series is taken over so many blocks, that of gaps over so many clusters of requests;
// shorter series are taken value by value, and request by request.
const (
	mostBlocks   = 1 << 12 // of 64 values and more
	mostClusters = 1 << 14
)

// effective divides the number of values by the autocorrelation time of "above the limit", in order of the schedule.
func (s *rowSample) effective(limits []float64) []float64 {
	out := make([]float64, len(limits))
	for k, b := range stats.BitsAbove(s.values, limits) {
		out[k] = float64(b.Len()) / b.TauCoarse(mostBlocks)
	}
	return out
}

// effective takes requests as clusters, as over does, for all limits in one pass over the gaps. Of more than
// mostClusters requests, consecutive ones are taken together as one cluster.
func (s *gapSample) effective(limits []float64) []float64 {
	sorted := slices.Compact(slices.Sorted(slices.Values(limits)))
	whole := make([]int32, len(sorted)) // a gap is whole µs: it is over a limit when it is over its floor
	for k, l := range sorted {
		whole[k] = int32(min(l, math.MaxInt32))
	}
	per := max(1, (len(s.rows)+mostClusters-1)/mostClusters)
	all := make([]float64, (len(s.rows)+per-1)/per)
	bad := make([][]float64, len(sorted))
	for k := range bad {
		bad[k] = make([]float64, len(all))
	}
	above := make([]int, len(sorted)+1) // gaps of a cluster by the number of limits that they are over
	for c := range all {
		clear(above)
		for _, i := range s.rows[c*per : min((c+1)*per, len(s.rows))] {
			if !s.d.ok(i) {
				above[len(sorted)] += s.weight
				continue
			}
			for _, g := range s.d.gapsOf(s.m, i) {
				k := 0
				for k < len(whole) && g > whole[k] {
					k++
				}
				above[k]++
			}
		}
		over := 0
		for k := len(sorted); k > 0; k-- {
			over += above[k]
			bad[k-1][c] = float64(over)
		}
		all[c] = float64(over + above[0])
	}
	out := make([]float64, len(limits))
	for k, l := range limits {
		at, _ := slices.BinarySearch(sorted, l)
		out[k] = clustered(bad[at], all)
	}
	return out
}

// clustered is the effective number of values behind the ratio Σbad/Σall over clusters; see gapSample.over.
func clustered(bad, all []float64) float64 {
	count, total, squares := 0.0, 0.0, 0.0
	for j := range bad {
		count, total, squares = count+bad[j], total+all[j], squares+all[j]*all[j]
	}
	v := count / total
	if v == 0 || v == 1 {
		return total * total / squares
	}
	residuals := make([]float64, len(bad))
	variance := 0.0
	for j := range bad {
		residuals[j] = bad[j] - v*all[j]
		variance += residuals[j] * residuals[j]
	}
	variance *= stats.TauOf(residuals) / (total * total)
	return min(total, v*(1-v)/variance)
}
