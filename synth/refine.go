package synth

import "math"

const (
	neighbours   = 3 // partners that are tried with each session
	refinePasses = 4
	refineNeeded = .01 // below this cost a selection uses less than a tenth of every limit
	refineEnough = .05 // a pass that gains less than this share of the cost is the last
)

// refine exchanges a selected session with an unselected one of the same size nearby in the same group, where
// that lowers the cost of tokens, hits and shape. Group counts and rows stay exact; what is left of the draw is
// random, but a sample that is good in all respects need not be hoped for among 32.
func (s *selector) refine(sel selection) {
	x := newExchange(s.score, sel)
	for range refinePasses {
		before := x.cost
		if before < refineNeeded || s.enough(before) {
			return
		}
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
	n, x, xx, y, yy, xy int64
}

func newExchange(s *scorer, sel selection) *exchange {
	e := &exchange{s: s, sel: sel, got: s.tally(sel), n: int64(len(s.source.minutes))}
	for i := range s.source.minutes {
		x, y := int64(s.source.minutes[i]), int64(e.got.minutes[i])
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
	n, x, y := float64(e.n), float64(e.x), float64(e.y)
	vx, vy := n*float64(e.xx)-x*x, n*float64(e.yy)-y*y
	if vx > 0 && vy > 0 {
		cost += e.s.shapeCost((n*float64(e.xy) - x*y) / math.Sqrt(vx*vy))
	}
	return cost
}

// try exchanges a and b when one is selected, the other is not, their sizes are equal, and the cost falls.
func (e *exchange) try(a, b int32) {
	if e.sel[a] == e.sel[b] || e.s.size(a) != e.s.size(b) {
		return
	}
	if e.sel[b] {
		a, b = b, a
	}
	e.move(a, -1)
	e.move(b, 1)
	if cost := e.value(); cost < e.cost {
		e.cost = cost
		e.sel[a], e.sel[b] = false, true
		return
	}
	e.move(b, -1)
	e.move(a, 1)
}

// move adds a session to the tally, or with by = -1 takes it away.
func (e *exchange) move(j int32, by int32) {
	for _, i := range e.s.rows(j) {
		e.s.addRow(&e.got.sums, i, int64(by))
		m := e.s.load[i].minute
		y := int64(e.got.minutes[m])
		e.yy += int64(by) * (2*y + int64(by))
		e.xy += int64(by) * int64(e.s.source.minutes[m])
		e.got.minutes[m] += by
	}
}
