package profile

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"tailgate/schemas"
	"tailgate/trace"
)

// minDependence is the number of requests from which on a dependence of lengths is told.
const minDependence = 100

// pair is a request of known lengths.
type pair struct {
	at      int64 // since the schedule's zero, µs
	hour    int32
	in, out int32
}

// joint holds the lengths of a group's requests that did not fail and whose output is known.
type joint struct {
	pairs   []pair
	firstUs int64
	atoms   [2]map[int32]bool // exact values of input and output
	perMin  map[int64]minute  // whole minutes from the first arrival on
}

// minute is the load of a minute; all arrivals count, also failed ones.
type minute struct {
	arrivals, known int64
	tokensOut       int64
}

func (in *input) joint(g group) *joint {
	j := &joint{perMin: map[int64]minute{}}
	counts := [2]map[int32]int64{{}, {}}
	first, last := int64(math.MaxInt64), int64(0)
	for r := range in.each(g) {
		first, last = min(first, r.ScheduledUs), max(last, r.ScheduledUs)
	}
	j.firstUs = first
	for r := range in.each(g) {
		k := (r.ScheduledUs - first) / 60_000_000
		m := j.perMin[k]
		m.arrivals++
		if !trace.Failed(r) && r.OutputTokens != nil {
			m.known++
			m.tokensOut += int64(*r.OutputTokens)
			j.pairs = append(j.pairs, pair{at: r.ScheduledUs, hour: in.hour(r.ScheduledUs), in: r.InputTokens, out: *r.OutputTokens})
			counts[0][r.InputTokens]++
			counts[1][*r.OutputTokens]++
		}
		j.perMin[k] = m
	}
	delete(j.perMin, (last-first)/60_000_000) // not a whole minute
	for dim := range j.atoms {
		j.atoms[dim] = topValues(counts[dim])
	}
	return j
}

// hour is the hour of the UTC day, or since the schedule's zero where the wall time is not known.
func (in *input) hour(us int64) int32 {
	if in.t.Meta.StartedAt.IsZero() {
		return int32(us / 3_600_000_000)
	}
	return int32(in.t.Meta.StartedAt.UTC().Add(time.Duration(us) * time.Microsecond).Hour())
}

// topValues are the most frequent values that are spikes: see lengthHist.
func topValues(counts map[int32]int64) map[int32]bool {
	type value struct {
		tokens int32
		n      int64
	}
	var values []value
	for v, n := range counts {
		if n > 1 || len(counts) <= maxAtoms {
			values = append(values, value{v, n})
		}
	}
	slices.SortFunc(values, func(a, b value) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.tokens, b.tokens)) })
	top := map[int32]bool{}
	for _, v := range values[:min(len(values), maxAtoms)] {
		top[v.tokens] = true
	}
	return top
}

// jointBin is the bin of v, two to the octave; an atom is a bin of its own.
func jointBin(v int32, atoms map[int32]bool) (lo, hi int32) {
	if atoms[v] || v < 2 {
		return v, above(v)
	}
	shift := bits.Len32(uint32(v)) - 2
	lo = v >> shift << shift
	if lo > math.MaxInt32-1<<shift {
		return lo, math.MaxInt32
	}
	return lo, lo + 1<<shift
}

// cells counts the pairs by hour and bins.
func (j *joint) cells(key schemas.ProfileKey) []schemas.ProfileJoint {
	counts := map[schemas.ProfileJoint]int64{}
	for _, p := range j.pairs {
		c := schemas.ProfileJoint{Hour: p.hour}
		c.InLo, c.InHi = jointBin(p.in, j.atoms[0])
		c.OutLo, c.OutHi = jointBin(p.out, j.atoms[1])
		counts[c]++
	}
	out := make([]schemas.ProfileJoint, 0, len(counts))
	for c, n := range counts {
		c.ProfileKey, c.N = key, n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b schemas.ProfileJoint) int {
		return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.InLo, b.InLo), cmp.Compare(a.InHi, b.InHi),
			cmp.Compare(a.OutLo, b.OutLo), cmp.Compare(a.OutHi, b.OutHi))
	})
	return out
}

// stat tells the dependence; one row, nulls where there are too few requests.
func (j *joint) stat(key schemas.ProfileKey) []schemas.ProfileJointStat {
	if len(j.pairs) == 0 {
		return nil
	}
	row := schemas.ProfileJointStat{ProfileKey: key, N: int64(len(j.pairs))}
	if len(j.pairs) >= minDependence {
		x, y := make([]float64, len(j.pairs)), make([]float64, len(j.pairs))
		for i, p := range j.pairs {
			x[i], y[i] = float64(p.in), float64(p.out)
		}
		rho := spearman(x, y)
		row.Spearman, row.MINats = val(rho), val(j.mutualInformation())
		r := 2 * math.Sin(math.Pi*rho/6) // of the Gaussian copula with that rank correlation (Pearson 1907)
		row.MIGaussNats = val(-0.5 * math.Log(1-r*r))
	}
	var load, mean []float64
	for _, m := range j.perMin {
		if m.known > 0 {
			load, mean = append(load, float64(m.arrivals)), append(mean, float64(m.tokensOut)/float64(m.known))
		}
	}
	if len(load) >= MinWindows {
		row.SpearmanRateOut = val(spearman(load, mean))
	}
	return []schemas.ProfileJointStat{row}
}

// mutualInformation is that of the binned lengths in nats, with the correction of Miller (1955) for the number of
// cells in use; never below 0.
func (j *joint) mutualInformation() float64 {
	n := float64(len(j.pairs))
	both := map[[2]int32]float64{}
	inputs, outputs := map[int32]float64{}, map[int32]float64{}
	for _, p := range j.pairs {
		a, _ := jointBin(p.in, nil)
		b, _ := jointBin(p.out, nil)
		both[[2]int32{a, b}]++
		inputs[a]++
		outputs[b]++
	}
	mi := 0.0
	cells := make([][2]int32, 0, len(both))
	for c := range both {
		cells = append(cells, c)
	}
	slices.SortFunc(cells, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, c := range cells { // in order: sums of floats must not depend on it
		mi += both[c] / n * math.Log(both[c]*n/(inputs[c[0]]*outputs[c[1]]))
	}
	return max(0, mi-float64(len(both)-len(inputs)-len(outputs)+1)/(2*n))
}

// spearman is Spearman's rank correlation, ties at their mean rank; NaN when one side is constant.
func spearman(x, y []float64) float64 { return stat.Correlation(ranks(x), ranks(y), nil) }

func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		end := i
		for end < len(order) && x[order[end]] == x[order[i]] {
			end++
		}
		for _, k := range order[i:end] {
			out[k] = float64(i+end-1)/2 + 1
		}
		i = end
	}
	return out
}
