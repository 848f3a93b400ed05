package synth

import (
	"cmp"
	"slices"

	"tailgate/internal/rng"
	"tailgate/trace"
)

// session is one session of the source.
type session struct {
	rows        []int32 // in schedule order
	first, last int64   // µs
}

func (s *session) size() int { return len(s.rows) }

// stratum is the sessions of one tenant, one class and one class of size, by first arrival.
type stratum struct {
	size          int // class of size, 0 = singletons
	tenant, class string
	members       []int32 // indexes of sessions
}

// group is how many consecutive sessions of a stratum share one exact number of copies. Few keep the shape of
// the day, many keep the randomness of the gaps; singletons carry the gaps.
func (s *stratum) group() int {
	if s.size == 0 {
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

// stratify sorts the sessions of t into strata; strata are in order of size, tenant and class. A session has
// the tenant and the class of its first row.
func stratify(t *trace.Trace, rowsOf [][]int32) ([]session, []stratum) {
	type key struct {
		size          int
		tenant, class string
	}
	sessions := make([]session, len(rowsOf))
	index := map[key]int{}
	var strata []stratum
	for j, rows := range rowsOf {
		first := &t.Rows[rows[0]]
		sessions[j] = session{rows: rows, first: first.ScheduledUs, last: t.Rows[rows[len(rows)-1]].ScheduledUs}
		k := key{size: sizeClass(len(rows)), tenant: text(first.Tenant), class: text(first.Class)}
		i, ok := index[k]
		if !ok {
			i = len(strata)
			index[k] = i
			strata = append(strata, stratum{size: k.size, tenant: k.tenant, class: k.class})
		}
		strata[i].members = append(strata[i].members, int32(j))
	}
	for i := range strata {
		slices.SortFunc(strata[i].members, func(a, b int32) int {
			return cmp.Or(cmp.Compare(sessions[a].first, sessions[b].first), cmp.Compare(sessions[a].rows[0], sessions[b].rows[0]))
		})
	}
	slices.SortFunc(strata, func(a, b stratum) int {
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.class, b.class))
	})
	return sessions, strata
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// jitter moves copies in time.
type jitter struct {
	seed     uint64
	us       int64 // at most
	lengthUs int64 // of the schedule
}

// shift moves copy q of session number j as a whole by a draw from (−us, us), reflected at the ends of the
// schedule. The original stays.
func (x jitter) shift(s *session, j, q int32) int64 {
	if q == 0 {
		return 0
	}
	u := 2*rng.Float(x.seed, keyJitter, uint64(j), uint64(q)) - 1
	d := int64(u * float64(x.us))
	if s.first+d < 0 {
		d = -2*s.first - d
	}
	if s.last+d > x.lengthUs {
		d = 2*(x.lengthUs-s.last) - d
	}
	return min(max(d, -s.first), x.lengthUs-s.last)
}
