package chart

import (
	"math"
	"slices"
)

// span is a range of values that grows.
type span struct {
	lo, hi float64
	log    bool // only what is above zero counts
}

func newSpan(log bool) span { return span{lo: math.Inf(1), hi: math.Inf(-1), log: log} }

func (s *span) add(values ...float64) {
	for _, v := range values {
		if !math.IsNaN(v) && (!s.log || v > 0) {
			s.lo, s.hi = min(s.lo, v), max(s.hi, v)
		}
	}
}

// spans cover the values of everything that is drawn, and the limits near them; any is false where nothing is.
func (c *Chart) spans() (xs, ys span, any bool) {
	xs, ys = newSpan(c.LogX), newSpan(c.LogY)
	for _, l := range slices.Concat(c.Lines, c.Dots) {
		for i := range l.X {
			if c.LogX && l.X[i] <= 0 {
				continue
			}
			xs.add(l.X[i])
			ys.add(l.Y[i])
		}
	}
	for _, b := range c.Bars {
		xs.add(b.X0, b.X1)
		ys.add(b.Base, b.Y)
	}
	for _, e := range c.Cells {
		xs.add(e.X0, e.X1)
		ys.add(e.Y0, e.Y1)
	}
	for _, r := range c.Ranges {
		xs.add(r.X...)
		ys.add(r.Lo...)
		ys.add(r.Hi...)
	}
	for _, w := range c.Whiskers {
		ys.add(w.Lo, w.Hi)
	}
	any = !math.IsInf(ys.hi, -1)
	if !c.LogY {
		ys.lo = min(ys.lo, 0)
	}
	for _, l := range c.Limits {
		switch {
		case l.OnX && l.near(xs, c.LogX):
			xs.add(l.Value)
		case !l.OnX && any && l.near(ys, c.LogY):
			ys.add(l.Value)
		}
	}
	return xs, ys, any
}

// bounds are the axes of what is drawn, with some room beside it; a flat span is widened.
func (c *Chart) bounds() (x, y axis, any bool) {
	xs, ys, any := c.spans()
	switch {
	case c.XRange != nil:
		xs.lo, xs.hi = c.XRange[0], c.XRange[1]
	case c.LogX && len(c.Cells) == 0:
		xs.lo, xs.hi = xs.lo/1.4, xs.hi*1.4
	}
	if xs.hi <= xs.lo {
		xs.lo, xs.hi = xs.lo*.9, xs.hi*1.1
		if xs.lo == 0 {
			xs.hi = 1
		}
	}
	switch {
	case c.Percentiles:
		ys.lo, ys.hi = 0, max(ys.hi, .9)
	case c.LogY && len(c.Cells) == 0:
		ys.lo, ys.hi = ys.lo/1.4, ys.hi*1.4
	case c.LogY:
	case ys.hi <= ys.lo:
		ys.hi = ys.lo + 1
	default:
		ys.hi += .06 * (ys.hi - ys.lo)
	}
	x = axis{lo: xs.lo, hi: xs.hi, from: padLeft, to: chartW - padRight, log: c.LogX, sym: c.SymX}
	y = axis{lo: ys.lo, hi: ys.hi, from: chartH - low, to: padTop, log: c.LogY, nines: c.Percentiles}
	if c.XRange != nil {
		x.most = 8
	}
	return x, y, any
}
