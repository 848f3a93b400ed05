package profile

import "math"

// onOffFamily is the interrupted Poisson process: Poisson arrivals at rate p1 while on, going off at rate p2 and
// coming back at rate p3. Its gaps are independent, and their law is a mixture of two exponentials (A. Kuczura, "The
// interrupted Poisson process as an overflow process", 1973), which the EM algorithm fits (Dempster, Laird, Rubin
// 1977).
func onOffFamily() family {
	return family{
		dist: OnOff, params: 3,
		start: func(m moments, s *sample) params {
			if s.variance <= s.mean*s.mean {
				return params{math.NaN()} // smoother than Poisson: no mixture
			}
			x, _, w := s.flooredValues()
			q, a, b, ok := hyperexponential(binned(x, w), m)
			if !ok {
				return params{math.NaN()}
			}
			on := q*a + (1-q)*b
			back := a * b / on
			return params{on, a + b - on - back, back}
		},
		density: func(s *sample, p params) float64 {
			q, a, b := p.mixture()
			sum := 0.0
			for i, x := range s.x {
				sum += s.w[i] * math.Log(q*a*math.Exp(-a*x)+(1-q)*b*math.Exp(-b*x))
			}
			return sum
		},
		cdf: func(p params) func(float64) float64 {
			q, a, b := p.mixture()
			return func(x float64) float64 { return 1 - q*math.Exp(-a*x) - (1-q)*math.Exp(-b*x) }
		},
	}
}

// mixture is the law of the gaps of an ON/OFF process: rates a > b, a with probability q.
func (p params) mixture() (q, a, b float64) {
	sum := p[0] + p[1] + p[2]
	root := math.Sqrt(max(sum*sum-4*p[0]*p[2], 0))
	a, b = (sum+root)/2, (sum-root)/2
	return (p[0] - b) / (a - b), a, b
}

// The steps end when the log-likelihood of a gap grows by less.
const (
	emTolerance = 1e-8
	emSteps     = 500
)

// cell is some gaps of about the same length.
type cell struct{ x, w float64 }

// binned puts ascending gaps into cells of 2 % width at most, at their mean: the likelihood of a mixture hardly sees
// the difference, and the steps cost hundreds of cells instead of millions of gaps.
func binned(x, w []float64) []cell {
	var out []cell
	from := 0.0
	for i, v := range x {
		if len(out) == 0 || v > from*1.02 {
			out, from = append(out, cell{}), v
		}
		c := &out[len(out)-1]
		c.x, c.w = c.x+w[i]*v, c.w+w[i]
	}
	for i := range out {
		out[i].x /= out[i].w
	}
	return out
}

// hyper is q·a·exp(−ax) + (1−q)·b·exp(−bx).
type hyper struct{ q, a, b float64 }

// step is one step of the EM algorithm; like is the log-likelihood before it, where it is asked for. ok is false where a
// part of the mixture is empty.
func (h hyper) step(gaps []cell, likes bool) (next hyper, like float64, ok bool) {
	var n, n1, s, s1 float64
	for _, c := range gaps {
		p1, p2 := h.q*h.a*math.Exp(-h.a*c.x), (1-h.q)*h.b*math.Exp(-h.b*c.x)
		total := p1 + p2
		if !(total > 0) {
			return h, 0, false
		}
		r := c.w * p1 / total
		n1, s1 = n1+r, s1+r*c.x
		n, s = n+c.w, s+c.w*c.x
		if likes {
			like += c.w * math.Log(total)
		}
	}
	if n2, s2 := n-n1, s-s1; n1 > 0 && n2 > 0 && s1 > 0 && s2 > 0 {
		return hyper{n1 / n, n1 / s1, n2 / s2}, like, true
	}
	return h, like, false
}

func (h hyper) coordinates() [3]float64 {
	return [3]float64{math.Log(h.q / (1 - h.q)), math.Log(h.a), math.Log(h.b)}
}

func hyperAt(x [3]float64) hyper {
	return hyper{1 / (1 + math.Exp(-x[0])), math.Exp(x[1]), math.Exp(x[2])}
}

// leap goes on from two steps of EM in their direction by the length that they tell (SQUAREM, scheme S3: Varadhan and
// Roland, "Simple and globally convergent methods for accelerating the convergence of any EM algorithm", 2008).
func leap(from, one, two hyper) hyper {
	x, y, z := from.coordinates(), one.coordinates(), two.coordinates()
	var r, v [3]float64
	rr, vv := 0.0, 0.0
	for i := range x {
		r[i], v[i] = y[i]-x[i], z[i]-2*y[i]+x[i]
		rr, vv = rr+r[i]*r[i], vv+v[i]*v[i]
	}
	length := -math.Sqrt(rr / vv)
	if !(length < -1) || math.IsInf(length, 0) {
		return two
	}
	for i := range x {
		x[i] += -2*length*r[i] + length*length*v[i]
	}
	return hyperAt(x)
}

// hyperexponential fits the mixture, a > b. ok is false when the two rates are one.
func hyperexponential(gaps []cell, m moments) (q, a, b float64, ok bool) {
	// Half of the gaps below the mean against the rest is far enough from one exponential to start from.
	h := hyper{0.5, 2 / m.mean, 0.5 / m.mean}
	best, last := h, math.Inf(-1)
	for range emSteps / 3 {
		one, like, ok := h.step(gaps, true)
		if !ok || like < last { // the leap went too far
			if h == best {
				return 0, 0, 0, false
			}
			h, last = best, math.Inf(-1)
			if h, _, ok = h.step(gaps, false); !ok {
				return 0, 0, 0, false
			}
			best = h
			continue
		}
		grown := like - last
		best, last = h, like
		two, _, ok := one.step(gaps, false)
		if !ok {
			return 0, 0, 0, false
		}
		if best = two; grown < emTolerance*m.n {
			break
		}
		h = leap(h, one, two)
	}
	if best.a < best.b {
		best = hyper{1 - best.q, best.b, best.a}
	}
	return best.q, best.a, best.b, best.a > best.b*(1+1e-6) && best.q > 0 && best.q < 1
}
