package synth

import "math"

// curve is a rate over time, piecewise linear, with its integral: the expected number of arrivals until a moment
// (operational time).
type curve struct{ segs []segment }

type segment struct {
	from, to float64 // seconds
	r0, r1   float64 // rate at both ends
	before   float64 // expected arrivals before from
}

func (s segment) area() float64 { return (s.to - s.from) * (s.r0 + s.r1) / 2 }

// add appends a piece; a gap to the piece before has rate 0. Empty pieces are left out.
func (c *curve) add(from, to, r0, r1 float64) {
	if !(to > from) || r0 <= 0 && r1 <= 0 {
		return
	}
	if n := len(c.segs); n > 0 {
		last := &c.segs[n-1]
		if last.to == from && last.r0 == last.r1 && last.r1 == r0 && r0 == r1 {
			last.to = to
			return
		}
	}
	c.segs = append(c.segs, segment{from: from, to: to, r0: r0, r1: r1, before: c.total()})
}

// total is the expected number of arrivals.
func (c *curve) total() float64 {
	if len(c.segs) == 0 {
		return 0
	}
	last := c.segs[len(c.segs)-1]
	return last.before + last.area()
}

// scaled is the curve times k.
func (c *curve) scaled(k float64) *curve {
	out := &curve{segs: make([]segment, len(c.segs))}
	for i, s := range c.segs {
		s.r0, s.r1, s.before = s.r0*k, s.r1*k, s.before*k
		out.segs[i] = s
	}
	return out
}

// tiled repeats the curve of one period so that it covers [from, to); from may be negative.
func (c *curve) tiled(period, from, to float64) *curve {
	out := &curve{}
	for k := math.Floor(from / period); k*period < to; k++ {
		for _, s := range c.segs {
			s.from, s.to = s.from+k*period, s.to+k*period
			out.addPart(s, from, to)
		}
	}
	return out
}

// shifted moves the curve by seconds and returns it.
func (c *curve) shifted(by float64) *curve {
	for i := range c.segs {
		c.segs[i].from, c.segs[i].to = c.segs[i].from+by, c.segs[i].to+by
	}
	return c
}

// within is the part of the curve in [from, to), on the same clock.
func (c *curve) within(from, to float64) *curve {
	out := &curve{}
	for _, s := range c.segs {
		out.addPart(s, from, to)
	}
	return out
}

func (c *curve) addPart(s segment, from, to float64) {
	lo, hi := max(s.from, from), min(s.to, to)
	c.add(lo, hi, s.at(lo), s.at(hi))
}

// at is the rate at t inside the segment.
func (s segment) at(t float64) float64 { return s.r0 + (s.r1-s.r0)*(t-s.from)/(s.to-s.from) }

// cursor walks a curve forward.
type cursor struct {
	c *curve
	i int
}

// when is the moment at which the expected number of arrivals reaches u, which never falls from call to call; ok is
// false after the curve's end.
func (k *cursor) when(u float64) (t float64, ok bool) {
	for ; k.i < len(k.c.segs); k.i++ {
		s := k.c.segs[k.i]
		rest := u - s.before
		if rest >= s.area() {
			continue
		}
		slope := (s.r1 - s.r0) / (s.to - s.from)
		if slope == 0 {
			return s.from + rest/s.r0, true
		}
		// r0·x + slope·x²/2 = rest, in the form that loses no digits where slope is small.
		return s.from + 2*rest/(s.r0+math.Sqrt(max(s.r0*s.r0+2*slope*rest, 0))), true
	}
	return 0, false
}

// rate is the rate at t, which never falls from call to call.
func (k *cursor) rate(t float64) float64 {
	for ; k.i < len(k.c.segs); k.i++ {
		s := k.c.segs[k.i]
		if t < s.from {
			return 0
		}
		if t < s.to {
			return s.at(t)
		}
	}
	return 0
}
