package profile

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"tailgate/schemas"
)

const (
	hourUs   = 3_600_000_000
	allHours = -1 // of a cell that is not told by hour
)

// minDependence is the number of requests from which on a dependence of lengths is told.
const minDependence = 100

// joint holds what is told of the lengths of a group's requests that did not fail and whose output is known.
type joint struct {
	in     *input
	g      group
	values [2][]valueCount // of input and output
	n      int64
}

// minute is the load of a whole minute from the first arrival on; all arrivals count, also failed ones.
type minute struct {
	arrivals, known int64
	tokensOut       int64
}

// known tells whether both lengths of row i are.
func (in *input) known(i int32) bool { return in.answered(i) && in.out[i] != none }

func (in *input) joint(g group, scratch *scratch) *joint {
	j := &joint{in: in, g: g}
	counts := &scratch.lengths
	counts[0].reset()
	counts[1].reset()
	for i := range in.each(g) {
		if in.known(i) {
			counts[0].add(in.in[i])
			counts[1].add(in.out[i])
			j.n++
		}
	}
	j.values = [2][]valueCount{counts[0].values(), counts[1].values()}
	return j
}

// hourOf gives the hour of the UTC day, or since the schedule's zero where the wall time is not known.
func (in *input) hourOf() func(us int64) int32 {
	if in.meta.StartedAt.IsZero() {
		return func(us int64) int32 { return int32(us / hourUs) }
	}
	start := in.meta.StartedAt.UTC()
	zero := start.Sub(start.Truncate(24 * time.Hour)).Microseconds()
	return func(us int64) int32 { return int32((zero + us) % dayUs / hourUs) }
}

// A joint bin has a place: its own two to the octave, or, for an atom, one behind these.
const (
	octavePlaces = 64
	jointPlaces  = octavePlaces + maxAtoms
)

// jointPlace is the place of the bin of v, two to the octave.
func jointPlace(v int32) int {
	if v < 2 {
		return int(v)
	}
	shift := bits.Len32(uint32(v)) - 2
	return 2*shift + int(v>>shift)
}

// jointBorders are the borders of a place below octavePlaces.
func jointBorders(place int) (lo, hi int32) {
	if place < 2 {
		return int32(place), above(int32(place))
	}
	shift := place/2 - 1
	lo = int32(place%2+2) << shift
	if lo > math.MaxInt32-1<<shift {
		return lo, math.MaxInt32
	}
	return lo, lo + 1<<shift
}

// side is one of the two lengths with its atoms.
type side struct {
	atoms  []valueCount
	places *lookup
}

func newSide(values []valueCount) side {
	s := side{atoms: atoms(values)}
	own := map[int32]int{}
	for k, a := range s.atoms {
		own[a.tokens] = octavePlaces + k
	}
	s.places = newLookup(values, func(k int) float64 {
		if place, ok := own[values[k].tokens]; ok {
			return float64(place)
		}
		return float64(jointPlace(values[k].tokens))
	})
	return s
}

func (s side) borders(place int) (lo, hi int32) {
	if place >= octavePlaces {
		v := s.atoms[place-octavePlaces].tokens
		return v, above(v)
	}
	return jointBorders(place)
}

// cells counts the requests by hour and bins.
func (j *joint) cells(key schemas.ProfileKey, scratch *scratch) []schemas.ProfileJoint {
	type place struct {
		hour int32
		cell int32
	}
	counts := map[place]int64{}
	sides := [2]side{newSide(j.values[0]), newSide(j.values[1])}
	if scratch.cells == nil {
		scratch.cells = make([]int64, jointPlaces*jointPlaces)
	}
	open, hour := []int32{}, int32(0) // cells of the open hour that are in use
	flush := func() {
		for _, c := range open {
			counts[place{hour, c}] += scratch.cells[c]
			scratch.cells[c] = 0
		}
		open = open[:0]
	}
	hourOf := j.in.hourOf()
	if !j.g.total && !j.in.groupHours {
		hourOf = func(int64) int32 { return allHours }
	}
	for i := range j.in.each(j.g) {
		if !j.in.known(i) {
			continue
		}
		if h := hourOf(j.in.at[i]); h != hour {
			flush()
			hour = h
		}
		c := int32(sides[0].places.of(j.in.in[i]))*jointPlaces + int32(sides[1].places.of(j.in.out[i]))
		if scratch.cells[c] == 0 {
			open = append(open, c)
		}
		scratch.cells[c]++
	}
	flush()
	out := make([]schemas.ProfileJoint, 0, len(counts))
	for p, n := range counts {
		c := schemas.ProfileJoint{ProfileKey: key, Hour: p.hour, N: n}
		c.InLo, c.InHi = sides[0].borders(int(p.cell / jointPlaces))
		c.OutLo, c.OutHi = sides[1].borders(int(p.cell % jointPlaces))
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
	if j.n == 0 {
		return nil
	}
	row := schemas.ProfileJointStat{ProfileKey: key, N: j.n}
	if j.n >= minDependence {
		rho := j.spearman()
		row.Spearman, row.MINats = val(rho), val(j.mutualInformation())
		r := 2 * math.Sin(math.Pi*rho/6) // of the Gaussian copula with that rank correlation (Pearson 1907)
		row.MIGaussNats = val(-0.5 * math.Log(1-r*r))
	}
	var load, mean []float64
	for _, m := range j.minutes() {
		if m.known > 0 {
			load, mean = append(load, float64(m.arrivals)), append(mean, float64(m.tokensOut)/float64(m.known))
		}
	}
	if len(load) >= MinWindows {
		row.SpearmanRateOut = val(spearman(load, mean))
	}
	return []schemas.ProfileJointStat{row}
}

// minutes are the whole minutes from the first arrival on that have an arrival.
func (j *joint) minutes() []minute {
	var out []minute
	first, end := int64(-1), int64(0)
	for i := range j.in.each(j.g) {
		at := j.in.at[i]
		if first < 0 {
			first = at
		}
		if at >= end {
			out = append(out, minute{})
			end = first + (at-first)/60_000_000*60_000_000 + 60_000_000
		}
		m := &out[len(out)-1]
		m.arrivals++
		if j.in.known(i) {
			m.known++
			m.tokensOut += int64(j.in.out[i])
		}
	}
	return out[:max(len(out)-1, 0)] // the minute of the last arrival is not whole
}

// spearman is Spearman's rank correlation of the lengths, ties at their mean rank; NaN when one side is constant.
func (j *joint) spearman() float64 {
	var ranks [2]*lookup
	var spread [2]float64
	middle := float64(j.n+1) / 2
	for k, values := range j.values {
		before := make([]int64, len(values)+1)
		for i, v := range values {
			before[i+1] = before[i] + v.n
			d := float64(before[i]) + float64(v.n+1)/2 - middle
			spread[k] += float64(v.n) * d * d
		}
		ranks[k] = newLookup(values, func(i int) float64 { return float64(before[i]) + float64(values[i].n+1)/2 - middle })
	}
	sum := 0.0
	for i := range j.in.each(j.g) {
		if j.in.known(i) {
			sum += ranks[0].of(j.in.in[i]) * ranks[1].of(j.in.out[i])
		}
	}
	return sum / math.Sqrt(spread[0]*spread[1])
}

// mutualInformation is that of the binned lengths in nats, with the correction of Miller (1955) for the number of
// cells in use; never below 0.
func (j *joint) mutualInformation() float64 {
	n := float64(j.n)
	both := make([]float64, octavePlaces*octavePlaces)
	for i := range j.in.each(j.g) {
		if j.in.known(i) {
			both[jointPlace(j.in.in[i])*octavePlaces+jointPlace(j.in.out[i])]++
		}
	}
	var inputs, outputs [octavePlaces]float64
	for c, k := range both {
		inputs[c/octavePlaces] += k
		outputs[c%octavePlaces] += k
	}
	mi, cells := 0.0, 0
	for c, k := range both {
		if k > 0 {
			mi += k / n * math.Log(k*n/(inputs[c/octavePlaces]*outputs[c%octavePlaces]))
			cells++
		}
	}
	return max(0, mi-float64(cells-used(inputs[:])-used(outputs[:])+1)/(2*n))
}

func used(counts []float64) (n int) {
	for _, c := range counts {
		if c > 0 {
			n++
		}
	}
	return n
}
