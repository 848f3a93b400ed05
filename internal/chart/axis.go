package chart

import (
	"math"
	"slices"
	"strconv"
)

// axis maps values to places.
type axis struct {
	lo, hi   float64
	from, to float64
	log      bool
	sym      bool    // logarithmic to both sides of zero
	nines    bool    // shares: each nine takes the same room
	most     float64 // steps between ticks; 0 = 6
}

func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	switch {
	case a.log:
		v, lo, hi = math.Log10(v), math.Log10(lo), math.Log10(hi)
	case a.sym:
		v, lo, hi = symLog(v), symLog(lo), symLog(hi)
	case a.nines:
		v, lo, hi = nines(v), nines(lo), nines(hi)
	}
	return a.from + (v-lo)/(hi-lo)*(a.to-a.from)
}

// ticks are round values inside the axis: powers of ten on a log axis, with some between them on a short one, else 1, 2 or 5 times one.
func (a axis) ticks() []float64 {
	var out []float64
	if a.nines {
		out = []float64{.5, .9, .99, .999, .9999, .99999, .999999}
		if math.Abs(a.at(.5)-a.at(0)) > 18 { // else their texts would touch
			out = append(out, 0)
		}
		return slices.DeleteFunc(out, func(v float64) bool { return v > a.hi })
	}
	if a.sym {
		for e := 6.0; e >= 0; e-- {
			out = append(out, -math.Pow(10, e), math.Pow(10, e))
		}
		return slices.DeleteFunc(append(out, 0), func(v float64) bool { return v < a.lo || v > a.hi })
	}
	if a.log {
		decades := math.Log10(a.hi / a.lo)
		for e := math.Floor(math.Log10(a.lo)); e <= math.Ceil(math.Log10(a.hi)); e++ {
			if decades > 9 && math.Mod(e, 2) != 0 {
				continue
			}
			for _, m := range mantissas(decades) {
				v := m * math.Pow(10, e)
				if v >= a.lo*(1-1e-9) && v <= a.hi*(1+1e-9) {
					out = append(out, v)
				}
			}
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10((a.hi-a.lo)/4)))
	most := a.most
	if most == 0 {
		most = 6
	}
	for _, m := range []float64{1, 2, 5, 10} {
		if (a.hi-a.lo)/(m*step) <= most {
			step *= m
			break
		}
	}
	for k := math.Ceil(a.lo/step - 1e-9); k*step <= a.hi*(1+1e-9); k++ {
		out = append(out, k*step)
	}
	return out
}

// mantissas are the digits that ticks of a log axis begin with: more of them the shorter it is.
func mantissas(decades float64) []float64 {
	switch {
	case decades < .6:
		return []float64{1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9}
	case decades < 1.2:
		return []float64{1, 1.5, 2, 3, 5, 7}
	case decades < 2.5:
		return []float64{1, 2, 5}
	}
	return []float64{1}
}

// symLog is the scale of a symmetric axis: linear near zero.
func symLog(v float64) float64 { return math.Copysign(math.Log10(1+math.Abs(v)), v) }

// nines is how many nines a share has: 1 for .9, 2 for .99.
func nines(share float64) float64 { return -math.Log10(1 - share) }

// text is the label of a tick, in percent on a scale of nines.
func (a axis) text(v float64) string {
	if a.nines {
		return strconv.FormatFloat(100*v, 'g', 8, 64)
	}
	return tickText(v)
}

func tickText(v float64) string {
	if math.Abs(v) < 1e-12 {
		return "0"
	}
	if math.Abs(v) >= 1e6 {
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	}
	if math.Abs(v) >= 1e4 {
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
