package capacity

import (
	"math"
)

// The prior of the fit. The slope of logit share over log rate was found between 9 and 35 on the engines of the
// study; its prior 18 ± 12 leaves that to the data, and keeps a fit on few violations from being flat.
const (
	slopeMean, slopeSD = 18.0, 12.0
	slopeLeast         = 4.0
	levelMean          = -3.0
	levelPrecision     = .02 // 1/7², twice the .01 of the penalty (a+3)²
	curvePrecision     = 1.0 / (30 * 30)
	dispersionMean     = 20.0 // of a block before any was seen …
	dispersionWeight   = 6.0  // … worth so many blocks
	fitRounds          = 6
)

// Count is what one block of a run says about one rule: the requests that were due, and how many of them broke the
// rule's limit. Failed and unfinished requests break it. For gaps between tokens, Violations is the share of gaps
// over the limit times N.
type Count struct {
	N          int     `json:"n"`
	Violations float64 `json:"violations"`
}

// block is a Count at its place on the rate axis.
type block struct {
	x float64 // log(rate / ladder)
	Count
}

// curve is the fitted share of violations over the rate: logit p = a + b·x (+ c·x²), a quasi-binomial regression
// with one dispersion for all blocks (McCullagh and Nelder, Generalized Linear Models, ch. 4 and 9) and a weak
// normal prior.
type curve struct {
	beta       []float64
	phi        float64
	model      matrix // covariance by the model
	sandwich   matrix // covariance that trusts the blocks' own scatter (White 1980)
	blockCount int
}

// fitCurve fits blocks, of which there must be one at least. With bend a quadratic term is fitted too.
func fitCurve(blocks []block, bend bool) curve {
	prior := []float64{levelMean, slopeMean}
	precision := []float64{levelPrecision, 1 / (slopeSD * slopeSD)}
	if bend {
		prior, precision = append(prior, 0), append(precision, curvePrecision)
	}
	c := curve{beta: append([]float64(nil), prior...), phi: dispersionMean, blockCount: len(blocks)}
	g := float64(len(blocks))
	few := g / max(g-2, 1) // for the two coefficients that the scatter is taken around
	for range fitRounds {
		c.climb(blocks, prior, precision)
		sum := 0.0
		for _, b := range blocks {
			p := c.share(b.x)
			r := (b.Violations - float64(b.N)*p) / math.Sqrt(max(float64(b.N)*p*(1-p), .25))
			sum += r * r
		}
		c.phi = max(1, (dispersionWeight*dispersionMean+sum*few)/(dispersionWeight+g))
	}
	c.climb(blocks, prior, precision)
	h, meat := c.hessian(blocks, precision), newMatrix(len(prior))
	for _, b := range blocks {
		u := (b.Violations - float64(b.N)*c.share(b.x)) / c.phi
		meat.addOuter(powers(b.x, len(prior)), u*u*few)
	}
	c.model = h.inverse()
	c.sandwich = c.model.times(meat).times(c.model)
	return c
}

// climb maximises the penalised quasi-likelihood at the present dispersion by Newton's method with halved steps;
// the slope stays at slopeLeast or above.
func (c *curve) climb(blocks []block, prior, precision []float64) {
	value := c.objective(blocks, prior, precision)
	for range 60 {
		grad := make([]float64, len(prior))
		for _, b := range blocks {
			u := (b.Violations - float64(b.N)*c.share(b.x)) / c.phi
			for i, z := range powers(b.x, len(prior)) {
				grad[i] += u * z
			}
		}
		for i := range grad {
			grad[i] -= precision[i] * (c.beta[i] - prior[i])
		}
		step := c.hessian(blocks, precision).inverse().apply(grad)
		before := append([]float64(nil), c.beta...)
		better := value
		for shrink := 1.0; shrink > 1e-6; shrink /= 2 {
			for i := range c.beta {
				c.beta[i] = before[i] + shrink*step[i]
			}
			c.beta[1] = max(c.beta[1], slopeLeast)
			if better = c.objective(blocks, prior, precision); better >= value {
				break
			}
		}
		if better <= value+1e-10 {
			if better < value {
				c.beta = before
			}
			return
		}
		value = better
	}
}

func (c *curve) objective(blocks []block, prior, precision []float64) float64 {
	sum := 0.0
	for _, b := range blocks {
		z := c.logit(b.x)
		// k·log p + (n−k)·log(1−p) without overflow.
		sum += (b.Violations*z - float64(b.N)*softplus(z)) / c.phi
	}
	for i := range prior {
		d := c.beta[i] - prior[i]
		sum -= precision[i] * d * d / 2
	}
	return sum
}

func (c *curve) hessian(blocks []block, precision []float64) matrix {
	h := newMatrix(len(precision))
	for i, p := range precision {
		h[i][i] = p
	}
	for _, b := range blocks {
		p := c.share(b.x)
		h.addOuter(powers(b.x, len(precision)), float64(b.N)*p*(1-p)/c.phi)
	}
	return h
}

func (c *curve) logit(x float64) float64 {
	z := 0.0
	for i, p := range powers(x, len(c.beta)) {
		z += c.beta[i] * p
	}
	return z
}

// share is the fitted share of violations at x.
func (c *curve) share(x float64) float64 { return 1 / (1 + math.Exp(-c.logit(x))) }

// at is the x at which the share is q, on the straight curve.
func (c *curve) at(q float64) float64 { return (logit(q) - c.beta[0]) / c.beta[1] }

// err is the standard error of at(q): the relative one of the rate. Of the two covariances the larger counts; the
// form is that of the delta method, since a bound of the share that crosses q has a heavy lower tail.
func (c *curve) err(q float64) float64 {
	return c.logitErr(c.at(q)) / c.beta[1]
}

// logitErr is the standard error of the curve at x.
func (c *curve) logitErr(x float64) float64 {
	z := powers(x, len(c.beta))
	return math.Sqrt(max(c.model.form(z), c.sandwich.form(z)))
}

// bentAt is the x nearest to near at which the share of a bent curve is q.
func (c *curve) bentAt(q, near float64) float64 {
	x := near
	for range 50 {
		slope := c.beta[1] + 2*c.beta[2]*x
		if slope < slopeLeast {
			return math.NaN()
		}
		step := (c.logit(x) - logit(q)) / slope
		x -= step
		if math.Abs(step) < 1e-9 {
			return x
		}
	}
	return math.NaN()
}

func logit(p float64) float64 { return math.Log(p / (1 - p)) }

func softplus(z float64) float64 {
	if z > 30 {
		return z
	}
	return math.Log1p(math.Exp(z))
}

func powers(x float64, n int) []float64 {
	z := []float64{1, x, x * x}
	return z[:n]
}
