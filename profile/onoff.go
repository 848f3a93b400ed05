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
			x, w := s.flooredValues()
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

// The EM steps end when the log-likelihood of a gap grows by less.
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

// hyperexponential fits q·a·exp(−ax) + (1−q)·b·exp(−bx), a > b. ok is false when the two rates are one.
func hyperexponential(gaps []cell, m moments) (q, a, b float64, ok bool) {
	// Half of the gaps below the mean against the rest is far enough from one exponential to start from.
	q, a, b = 0.5, 2/m.mean, 0.5/m.mean
	last := math.Inf(-1)
	for range emSteps {
		var n1, n2, s1, s2, like float64
		for _, c := range gaps {
			p1, p2 := q*a*math.Exp(-a*c.x), (1-q)*b*math.Exp(-b*c.x)
			total := p1 + p2
			if !(total > 0) {
				return 0, 0, 0, false
			}
			r := c.w * p1 / total
			n1, s1 = n1+r, s1+r*c.x
			n2, s2 = n2+c.w-r, s2+(c.w-r)*c.x
			like += c.w * math.Log(total)
		}
		if !(n1 > 0 && n2 > 0 && s1 > 0 && s2 > 0) {
			return 0, 0, 0, false
		}
		q, a, b = n1/(n1+n2), n1/s1, n2/s2
		if like-last < emTolerance*(n1+n2) {
			break
		}
		last = like
	}
	if a < b {
		q, a, b = 1-q, b, a
	}
	return q, a, b, a > b*(1+1e-6) && q > 0 && q < 1
}
