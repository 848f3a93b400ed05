package profile

import (
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// Guards of the iterations. A shape outside [minShape, maxShape] is no fit: the gaps are all but equal, or all
// but zero.
const (
	minShape  = 1e-4
	maxShape  = 1e6
	tolerance = 1e-12
	maxSteps  = 200
)

// params are the parameters of a law, as many as it has.
type params [3]float64

// family is one law of the gaps.
type family struct {
	dist    string
	params  int
	anySign [3]bool                           // the parameter may be negative
	start   func(m moments, s *sample) params // maximum likelihood without ties; NaN when there is none
	density func(s *sample, p params) float64 // log-density of the gaps above half a step, summed up
	cdf     func(p params) func(x float64) float64
}

func families() []family {
	return []family{exponentialFamily(), gammaFamily(), weibullFamily(), logNormalFamily(), onOffFamily()}
}

// mle is the maximum likelihood fit; ok is false when the sample has none.
func (f family) mle(s *sample) (params, bool) {
	p := f.start(s.floored, s)
	if !finite(p[0]) || !finite(p[1]) || !finite(p[2]) {
		return p, false
	}
	p = s.refine(f, p)
	shaped := f.dist == Gamma || f.dist == Weibull
	return p, !shaped || p[0] > minShape && p[0] < maxShape
}

func exponentialFamily() family {
	return family{
		dist: Exponential, params: 1,
		start: func(m moments, _ *sample) params { return params{1 / m.mean} },
		density: func(s *sample, p params) float64 {
			return s.above.n * (math.Log(p[0]) - p[0]*s.above.mean)
		},
		cdf: func(p params) func(float64) float64 { return distuv.Exponential{Rate: p[0]}.CDF },
	}
}

func gammaFamily() family {
	return family{
		dist: Gamma, params: 2,
		start: func(m moments, _ *sample) params {
			k := gammaShape(math.Log(m.mean) - m.meanLog)
			return params{k, m.mean / k}
		},
		density: func(s *sample, p params) float64 {
			lgamma, _ := math.Lgamma(p[0])
			return s.above.n * ((p[0]-1)*s.above.meanLog - s.above.mean/p[1] - p[0]*math.Log(p[1]) - lgamma)
		},
		cdf: func(p params) func(float64) float64 {
			return func(x float64) float64 { return mathext.GammaIncReg(p[0], x/p[1]) }
		},
	}
}

// gammaShape solves log k − ψ(k) = gap, the gap between log(mean) and mean(log), by Minka's generalised Newton
// steps from his starting point (T. Minka, "Estimating a Gamma distribution", 2002). NaN when there is none.
func gammaShape(gap float64) float64 {
	return gammaShapeNear(gap, (3-gap+math.Sqrt((gap-3)*(gap-3)+24*gap))/(12*gap))
}

// gammaShapeNear is gammaShape from a start.
func gammaShapeNear(gap, k float64) float64 {
	if !(gap > 1/(2*maxShape)) {
		return math.NaN()
	}
	for range maxSteps {
		trigamma := mathext.Zeta(2, k)
		next := 1 / (1/k + (math.Log(k)-mathext.Digamma(k)-gap)/(k*k*(1/k-trigamma)))
		if !(next > 0) {
			return math.NaN()
		}
		if math.Abs(next-k) <= tolerance*k {
			return next
		}
		k = next
	}
	return k
}

func weibullFamily() family {
	return family{
		dist: Weibull, params: 2,
		start: func(m moments, s *sample) params {
			_, logs, w := s.flooredValues()
			k := weibullShape(m, logs, w)
			return params{k, math.Pow(powerSum(logs, w, k, 1)/m.n, 1/k)}
		},
		density: func(s *sample, p params) float64 {
			k, scale := p[0], p[1]
			return s.above.n*(math.Log(k)-k*math.Log(scale)+(k-1)*s.above.meanLog) - powerSum(s.logs, s.w, k, scale)
		},
		cdf: func(p params) func(float64) float64 { return distuv.Weibull{K: p[0], Lambda: p[1]}.CDF },
	}
}

// flooredValues are the values, their logs and weights with the ties at half a step.
func (s *sample) flooredValues() (x, logs, w []float64) {
	if s.ties == 0 {
		return s.x, s.logs, s.w
	}
	return append([]float64{s.half}, s.x...), append([]float64{math.Log(s.half)}, s.logs...), append([]float64{s.ties}, s.w...)
}

// powerSum is Σ w·(x/scale)ᵏ.
func powerSum(logs, w []float64, k, scale float64) (sum float64) {
	top := math.Log(scale)
	for i, l := range logs {
		sum += w[i] * math.Exp(k*(l-top))
	}
	return sum
}

// weibullShape solves the profile likelihood equation Σxᵏlog x/Σxᵏ − 1/k = mean(log x), whose left side grows in
// k, by Newton steps kept inside a shrinking bracket (Johnson, Kotz, Balakrishnan 1994, ch. 21). NaN when there
// is none.
func weibullShape(m moments, logs, w []float64) float64 {
	if !(m.varLog > 1/(maxShape*maxShape)) {
		return math.NaN()
	}
	lo, hi := minShape, maxShape
	k := min(max(math.Pi/math.Sqrt(6*m.varLog), lo), hi) // by the moments of log x
	for range maxSteps {
		g, slope := weibullScore(logs, w, m.meanLog, k)
		if g > 0 {
			hi = k
		} else {
			lo = k
		}
		next := k - g/slope
		if !(next > lo && next < hi) {
			next = math.Sqrt(lo * hi)
		}
		if math.Abs(next-k) <= tolerance*k {
			return next
		}
		k = next
	}
	return k
}

// weibullScore is the profile score and its slope. The logs are taken from their greatest value, so that no
// power overflows.
func weibullScore(logs, w []float64, meanLog, k float64) (g, slope float64) {
	top := logs[len(logs)-1]
	var e0, e1, e2 float64
	for i, l := range logs {
		l -= top
		e := w[i] * math.Exp(k*l)
		e0 += e
		e1 += e * l
		e2 += e * l * l
	}
	mean := e1 / e0
	return mean + top - 1/k - meanLog, e2/e0 - mean*mean + 1/(k*k)
}

func logNormalFamily() family {
	return family{
		dist: LogNormal, params: 2, anySign: [3]bool{true, false},
		start: func(m moments, _ *sample) params {
			if !(m.varLog > 0) {
				return params{math.NaN()}
			}
			return params{m.meanLog, math.Sqrt(m.varLog)}
		},
		density: func(s *sample, p params) float64 {
			d := s.above.meanLog - p[0]
			return -s.above.n * (s.above.meanLog + math.Log(p[1]) + math.Log(2*math.Pi)/2 + (s.above.varLog+d*d)/(2*p[1]*p[1]))
		},
		cdf: func(p params) func(float64) float64 { return distuv.LogNormal{Mu: p[0], Sigma: p[1]}.CDF },
	}
}
