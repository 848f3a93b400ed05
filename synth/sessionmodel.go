package synth

import (
	"math"
	"math/rand/v2"
	"sort"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// sessionModel is the shape of a group's sessions: turns, the times between them, and what a turn adds.
type sessionModel struct {
	turns  weighted
	gaps   map[int]weighted // by placeOf the later turn; µs
	think  *DurationDist    // instead of gaps
	growth weighted         // tokens; empty = a later turn is drawn like any request
	carry  carryModel
}

// weighted is a distribution over ranges of whole numbers, both ends inclusive, uniform inside.
type weighted struct {
	lo, hi []int64
	cum    []float64
}

func (w *weighted) add(lo, hi int64, weight float64) {
	if !(weight > 0) {
		return
	}
	w.lo, w.hi = append(w.lo, lo), append(w.hi, max(lo, hi))
	sum := weight
	if n := len(w.cum); n > 0 {
		sum += w.cum[n-1]
	}
	w.cum = append(w.cum, sum)
}

func (w *weighted) empty() bool { return len(w.cum) == 0 }

func (w *weighted) draw(r *rand.Rand) int64 {
	i := pick(w.cum, r)
	if w.lo[i] == w.hi[i] {
		return w.lo[i]
	}
	return w.lo[i] + r.Int64N(w.hi[i]-w.lo[i]+1)
}

func (w *weighted) mean() float64 {
	sum, before := 0.0, 0.0
	for i, c := range w.cum {
		sum += (c - before) * float64(w.lo[i]+w.hi[i]) / 2
		before = c
	}
	return sum / before
}

// tail is the share of values above v.
func (w *weighted) tail(v int64) float64 {
	sum, before := 0.0, 0.0
	for i, c := range w.cum {
		n := float64(w.hi[i] - w.lo[i] + 1)
		sum += (c - before) * clampTo(float64(w.hi[i]-v)/n, 0, 1)
		before = c
	}
	return sum / before
}

func clampTo(x, lo, hi float64) float64 { return max(lo, min(hi, x)) }

func (d IntDist) weighted() (w weighted) {
	for _, r := range d {
		w.add(r.Lo, r.Hi, r.Weight)
	}
	return w
}

// places are the rows of the table of gaps between turns.
var places = map[string]int{"1": 0, "2": 1, "3-4": 2, "5-8": 3, "9+": 4}

func placeOf(turn int) int {
	switch {
	case turn <= 1:
		return 0
	case turn == 2:
		return 1
	case turn <= 4:
		return 2
	case turn <= 8:
		return 3
	}
	return 4
}

// newSessionModel reads the tables of a group; o has the word over them.
func newSessionModel(g *groupTables, o *ModelOptions) *sessionModel {
	m := &sessionModel{gaps: map[int]weighted{}, think: o.ThinkTime}
	for i := range g.turns {
		m.turns.add(int64(g.turns[i].Turns), int64(g.turns[i].Turns), float64(g.turns[i].Sessions))
	}
	if o.Turns != nil {
		m.turns = o.Turns.weighted()
	}
	if m.turns.empty() {
		m.turns.add(1, 1, 1)
	}
	for i := range g.gaps {
		b := &g.gaps[i]
		if place, ok := places[b.Turn]; ok {
			w := m.gaps[place]
			w.add(b.LoUs, b.HiUs-1, float64(b.N))
			m.gaps[place] = w
		}
	}
	for i := range g.growth {
		m.growth.add(int64(g.growth[i].LoTok), int64(g.growth[i].HiTok)-1, float64(g.growth[i].N))
	}
	if o.Growth != nil {
		m.growth = o.Growth.weighted()
	}
	m.carry = newCarryModel(g.sessions, o.Growth != nil)
	return m
}

// needs names what the sessions lack to have more than one turn; "" for nothing.
func (m *sessionModel) needs() string {
	switch {
	case m.turns.tail(1) == 0:
		return ""
	case m.think == nil && len(m.gaps) == 0:
		return "think times"
	case m.growth.empty():
		return "growth of later turns"
	}
	return ""
}

// gap draws the time to a later turn, from 1 on, in µs; the nearest place stands in for one without gaps.
func (m *sessionModel) gap(turn int, r *rand.Rand) int64 {
	if m.think != nil {
		us := float64(m.think.Median.Microseconds()) * math.Exp(m.think.Sigma*r.NormFloat64())
		return int64(min(us, maxSeconds*1e6))
	}
	at := placeOf(turn)
	for d := range len(places) {
		for _, k := range []int{at - d, at + d} {
			if w, ok := m.gaps[k]; ok {
				return w.draw(r)
			}
		}
	}
	return 0
}

// turnTimes are the times of a session's turns, drawn from a stream of their own: it can be drawn again.
type turnTimes struct {
	m     *sessionModel
	r     *rand.Rand
	pcg   rand.PCG
	turns int // left
	at    int // turn that comes
}

func (m *sessionModel) times(seed uint64, number int64) *turnTimes {
	s := &turnTimes{m: m}
	s.pcg.Seed(rng.Hash(seed, 1), uint64(number))
	s.r = rand.New(&s.pcg)
	s.turns = int(m.turns.draw(s.r)) - 1
	return s
}

// next gives the time to the next turn, in µs; ok is false after the last.
func (s *turnTimes) next() (gap int64, ok bool) {
	if s.turns <= 0 {
		return 0, false
	}
	s.turns--
	s.at++
	return s.m.gap(s.at, s.r), true
}

// span is the time from the first to the last turn, in µs.
func (m *sessionModel) span(seed uint64, number int64) int64 {
	s, sum := m.times(seed, number), int64(0)
	for gap, ok := s.next(); ok; gap, ok = s.next() {
		sum = min(sum+gap, maxSeconds*1_000_000)
	}
	return sum
}

// place gives each start (µs, ascending) the number of a shape that ends before the end, so that the shapes as a whole
// stay as drawn: the longest first, each to a uniform one of the starts that are early enough. Where none is left, the
// shape goes to the earliest free start and loses its last turns.
func (m *sessionModel) place(starts []int64, end int64, seed uint64, r *rand.Rand) []int64 {
	type long struct{ span, number int64 }
	shapes := make([]long, len(starts))
	for i := range shapes {
		shapes[i] = long{m.span(seed, int64(i)), int64(i)}
	}
	sort.SliceStable(shapes, func(a, b int) bool { return shapes[a].span > shapes[b].span })
	out := make([]int64, len(starts))
	free := make([]int32, 0, len(starts))
	reached := 0
	for _, s := range shapes {
		for reached < len(starts) && (starts[reached]+s.span < end || len(free) == 0) {
			free = append(free, int32(reached))
			reached++
		}
		k := r.IntN(len(free))
		out[free[k]] = s.number
		free[k] = free[len(free)-1]
		free = free[:len(free)-1]
	}
	return out
}

// carryModel says how much of its parent's whole blocks a later turn has.
type carryModel struct {
	branch float64 // share of turns that have less than all
	mean   float64 // of those turns' share
}

// newCarryModel reads the sessions of a group. Without any, or where turns only grow, a turn has all blocks of its
// parent.
func newCarryModel(stats []schemas.ProfileSessionStat, grows bool) carryModel {
	var branch, carry, n float64
	for i := range stats {
		s := &stats[i]
		if s.Branches != nil && s.Carry != nil {
			w := float64(s.LaterTurns)
			branch, carry, n = branch+w**s.Branches, carry+w**s.Carry, n+w
		}
	}
	if n == 0 || grows {
		return carryModel{}
	}
	branch, carry = branch/n, carry/n
	c := carryModel{branch: branch}
	if branch > 0 {
		c.mean = clampTo((carry-(1-branch))/branch, 0, 1)
	}
	return c
}

// kept draws how many of the parent's blocks a later turn keeps.
func (c carryModel) kept(blocks int, r *rand.Rand) int {
	if c.branch == 0 || r.Float64() >= c.branch || c.mean >= 1 {
		return blocks
	}
	if c.mean <= 0 {
		return 0
	}
	// u^a has the mean 1/(a+1).
	return int(float64(blocks) * math.Pow(r.Float64(), 1/c.mean-1))
}
