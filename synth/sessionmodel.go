package synth

import (
	"math"
	"math/rand/v2"

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

// carryModel says how much of its parent's whole blocks a later turn has, beside what a shorter prompt has no room for.
type carryModel struct {
	branches, carry float64 // of the profile: share of turns that have less than all; blocks kept
	told            bool
	branch          float64 // share of turns that are cut although there was room
	mean            float64 // what those keep
}

// newCarryModel reads the sessions of a group. Where they tell nothing, and where turns only grow, a turn has all
// blocks of its parent.
func newCarryModel(stats []schemas.ProfileSessionStat, grows bool) carryModel {
	var c carryModel
	n := 0.0
	for i := range stats {
		s := &stats[i]
		if s.Branches != nil && s.Carry != nil {
			w := float64(s.LaterTurns)
			c.branches, c.carry, n = c.branches+w**s.Branches, c.carry+w**s.Carry, n+w
		}
	}
	if n == 0 || grows {
		return carryModel{}
	}
	c.branches, c.carry, c.told = c.branches/n, c.carry/n, true
	return c
}

// fit settles what is cut beyond what shorter prompts cut anyway: whole blocks of parents, those cut, and the share of
// turns that are shorter, as drawn. It returns the blocks that are lost in addition.
func (c *carryModel) fit(whole, cut, short float64) (lost float64) {
	c.branch, c.mean = 0, 0
	if !c.told || whole == 0 || short >= 1 {
		return 0
	}
	lost = max((1-c.carry)*whole-cut, 0)
	c.branch = max((c.branches-short)/(1-short), 0)
	open := c.branch * (whole - cut)
	if lost > open { // fewer branches than it takes: all of them lose everything
		c.branch = min(lost/max(whole-cut, 1), 1)
		return lost
	}
	if open > 0 {
		c.mean = 1 - lost/open
	}
	return lost
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
