package synth

import (
	"cmp"
	"slices"

	"tailgate/internal/rng"
)

// stratum is the sessions of one tenant, one class and one class of size, by first arrival.
type stratum struct {
	size int // class of size, 0 = singletons
	labels
	members []int32 // numbers of sessions
	whole   bool    // one group: nothing but the mix is kept
}

// group is how many consecutive sessions of a stratum share one exact number of copies. Few keep the shape of
// the day, many keep the randomness of the gaps; singletons carry the gaps.
func (s *stratum) group() int {
	switch {
	case s.whole:
		return len(s.members)
	case s.size == 0:
		return 16
	}
	return 4
}

// sizeClass puts session sizes in the classes 1, 2, 3–4, 5–8 and 9 or more.
func sizeClass(turns int) int {
	switch {
	case turns <= 2:
		return turns - 1
	case turns <= 4:
		return 2
	case turns <= 8:
		return 3
	}
	return 4
}

// stratify sorts the sessions into strata; strata are in order of size, tenant and class. A session has the
// tenant and the class of its first row. Sessions are numbered by their first row, and so by first arrival.
func stratify(f *facts) []stratum {
	type key struct {
		size int
		labels
	}
	index := map[key]int{}
	var strata []stratum
	for j := range int32(f.sessions()) {
		k := key{sizeClass(f.size(j)), f.labels(j)}
		i, ok := index[k]
		if !ok {
			i = len(strata)
			index[k] = i
			strata = append(strata, stratum{size: k.size, labels: k.labels})
		}
		strata[i].members = append(strata[i].members, j)
	}
	slices.SortFunc(strata, func(a, b stratum) int {
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.class, b.class))
	})
	return strata
}

// mover moves copies in time. The original stays.
type mover struct {
	f    *facts
	seed uint64
	us   int64 // jitter: at most
	far  bool  // mode independent: half an hour to an hour, round the clock of the schedule
}

// shift is by how much copy q of session j moves as a whole.
func (x mover) shift(j, q int32) int64 {
	switch {
	case q == 0:
		return 0
	case x.far:
		return x.round(j, q)
	}
	return x.jitter(j, q)
}

// jitter is a draw from (−us, us), reflected at the ends of the schedule.
func (x mover) jitter(j, q int32) int64 {
	first, last := x.f.first(j), x.f.last(j)
	d := int64((2*x.draw(j, q) - 1) * float64(x.us))
	if first+d < 0 {
		d = -2*first - d
	}
	if last+d > x.f.lengthUs {
		d = 2*(x.f.lengthUs-last) - d
	}
	return min(max(d, -first), x.f.lengthUs-last)
}

// Shifts of independent copies: no user there does what another does at the same time.
const (
	leastShiftUs = 30 * minuteUs
	mostShiftUs  = 60 * minuteUs
)

// round is a draw from ±(30…60 min), of a short schedule from ±(a quarter…half of it). What would begin or end
// outside goes on at the other end.
func (x mover) round(j, q int32) int64 {
	first := x.f.first(j)
	room := x.f.lengthUs - (x.f.last(j) - first)
	least, most := min(leastShiftUs, x.f.lengthUs/4), min(mostShiftUs, x.f.lengthUs/2)
	u := 2*x.draw(j, q) - 1
	d := least + int64(max(u, -u)*float64(most-least))
	if u < 0 {
		d = -d
	}
	return ((first+d)%(room+1)+room+1)%(room+1) - first
}

func (x mover) draw(j, q int32) float64 {
	return rng.Float(x.seed, keyJitter, uint64(j), uint64(q))
}

// back is by how much a copy comes before its original at most.
func (x mover) back() int64 {
	if x.far {
		return x.f.lengthUs
	}
	return x.us
}
