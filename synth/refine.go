package synth

import "math"

const (
	neighbours   = 3 // partners that are tried with each session
	refinePasses = 4
	refineEnough = .05 // a pass that gains less than this share of the cost is the last
)

// refine exchanges a selected session with an unselected one of the same size nearby in the same group, where
// that lowers the cost of tokens, hits and shape. Group counts and rows stay exact; what is left of the draw is
// random, but a sample that is good in all respects need not be hoped for among 32.
func (s *selector) refine(sel selection) {
	x := newExchange(s.score, sel)
	for range refinePasses {
		before := x.cost
		for _, st := range s.strata {
			for rest := st.members; len(rest) > 0; {
				group := rest[:min(len(rest), st.group())]
				rest = rest[len(group):]
				for i := range group {
					for k := i + 1; k < min(i+1+neighbours, len(group)); k++ {
						x.try(group[i], group[k])
					}
				}
			}
		}
		if before-x.cost < refineEnough*before {
			return
		}
	}
}

// exchange keeps the tally of a selection up to date under exchanges, with the moments of its shape, so that a
// trial costs no more than the two sessions have rows.
type exchange struct {
	s    *scorer
	sel  selection
	got  *tally
	cost float64
	// Source minutes x and result minutes y: Σx, Σx² stay; Σy stays too, since both sessions have as many rows.
	n, x, xx, y, yy, xy float64
}

func newExchange(s *scorer, sel selection) *exchange {
	e := &exchange{s: s, sel: sel, got: s.tally(sel), n: float64(len(s.source.minutes))}
	for i, x := range s.source.minutes {
		y := e.got.minutes[i]
		e.x += x
		e.xx += x * x
		e.y += y
		e.yy += y * y
		e.xy += x * y
	}
	e.cost = e.value()
	return e
}

func (e *exchange) value() float64 {
	cost := e.s.sumsCost(e.got)
	vx, vy := e.n*e.xx-e.x*e.x, e.n*e.yy-e.y*e.y
	if vx > 0 && vy > 0 {
		cost += e.s.shapeCost((e.n*e.xy - e.x*e.y) / math.Sqrt(vx*vy))
	}
	return cost
}

// try exchanges a and b when one is selected, the other is not, their sizes are equal, and the cost falls.
func (e *exchange) try(a, b int32) {
	if e.sel[a] == e.sel[b] || e.s.sessions[a].size() != e.s.sessions[b].size() {
		return
	}
	if e.sel[b] {
		a, b = b, a
	}
	sums := e.got.sums
	e.move(a, -1)
	e.move(b, 1)
	if cost := e.value(); cost < e.cost {
		e.cost = cost
		e.sel[a], e.sel[b] = false, true
		return
	}
	e.move(b, -1)
	e.move(a, 1)
	e.got.sums = sums // to the bit
}

// move adds a session to the tally, or with by = -1 takes it away.
func (e *exchange) move(j int32, by float64) {
	e.got.sums.add(&e.s.sums[j], by)
	for _, i := range e.s.sessions[j].rows {
		m := e.s.minute[i]
		y := e.got.minutes[m]
		e.yy += by * (2*y + by)
		e.xy += by * e.s.source.minutes[m]
		e.got.minutes[m] = y + by
	}
}
