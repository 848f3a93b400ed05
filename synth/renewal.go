package synth

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/profile"
	"tailgate/schemas"
)

// gapLaw is a law of the gaps on operational time, scaled to the mean 1.
type gapLaw struct {
	dist string
	p    [3]float64
	mean float64 // of the law before it is scaled
	cv2  float64 // squared coefficient of variation
}

// Laws of gaps beside those of package profile.
const constantGaps = "constant"

var exponentialGaps = gapLaw{dist: profile.Exponential, p: [3]float64{1}, mean: 1, cv2: 1}

// gammaGaps is the law of the given shape.
func gammaGaps(shape float64) gapLaw {
	return gapLaw{dist: profile.Gamma, p: [3]float64{shape, 1 / shape}, mean: 1, cv2: 1 / shape}
}

// fittedGaps is the law that a profile fitted; ok is false for one that has no finite mean and variance here.
func fittedGaps(f *schemas.ProfileIATFit) (gapLaw, bool) {
	l := gapLaw{dist: f.Dist}
	for i, v := range []*float64{f.P1, f.P2, f.P3} {
		if v != nil {
			l.p[i] = *v
		}
	}
	var second float64 // raw moment
	switch l.dist {
	case profile.Exponential:
		return exponentialGaps, l.p[0] > 0
	case profile.Gamma:
		l.mean = l.p[0] * l.p[1]
		second = l.mean * l.mean * (1 + 1/l.p[0])
	case profile.Weibull:
		l.mean = l.p[1] * math.Gamma(1+1/l.p[0])
		second = l.p[1] * l.p[1] * math.Gamma(1+2/l.p[0])
	case profile.LogNormal:
		l.mean = math.Exp(l.p[0] + l.p[1]*l.p[1]/2)
		second = math.Exp(2*l.p[0] + 2*l.p[1]*l.p[1])
	case profile.OnOff:
		q, a, b := l.mixture()
		l.mean = q/a + (1-q)/b
		second = 2 * (q/(a*a) + (1-q)/(b*b))
	default:
		return l, false
	}
	l.cv2 = second/(l.mean*l.mean) - 1
	return l, positive(l.mean) && positive(l.cv2)
}

// mixture is the law of the gaps of an ON/OFF process, two exponentials (Kuczura 1973).
func (l gapLaw) mixture() (q, a, b float64) {
	sum := l.p[0] + l.p[1] + l.p[2]
	root := math.Sqrt(max(sum*sum-4*l.p[0]*l.p[2], 0))
	a, b = (sum+root)/2, (sum-root)/2
	return (l.p[0] - b) / (a - b), a, b
}

// gap draws one gap.
func (l gapLaw) gap(r *rand.Rand) float64 {
	switch l.dist {
	case constantGaps:
		return 1
	case profile.Gamma:
		return distuv.Gamma{Alpha: l.p[0], Beta: 1 / l.p[1], Src: r}.Rand() / l.mean
	case profile.Weibull:
		return l.p[1] * math.Pow(r.ExpFloat64(), 1/l.p[0]) / l.mean
	case profile.LogNormal:
		return math.Exp(l.p[0]+l.p[1]*r.NormFloat64()) / l.mean
	case profile.OnOff:
		q, a, b := l.mixture()
		if r.Float64() < q {
			return r.ExpFloat64() / a / l.mean
		}
		return r.ExpFloat64() / b / l.mean
	}
	return r.ExpFloat64()
}

// wait draws the rest of the gap that is under way at a random moment: a gap drawn in proportion to its length, cut at
// a uniform place. With it the mean number of arrivals in any interval is its operational length.
func (l gapLaw) wait(r *rand.Rand) float64 {
	u := r.Float64()
	switch l.dist {
	case constantGaps:
		return 0
	case profile.Gamma:
		return u * distuv.Gamma{Alpha: l.p[0] + 1, Beta: 1 / l.p[1], Src: r}.Rand() / l.mean
	case profile.Weibull:
		// x^k/scale^k of the length-biased law is Gamma(1+1/k).
		g := distuv.Gamma{Alpha: 1 + 1/l.p[0], Beta: 1, Src: r}.Rand()
		return u * l.p[1] * math.Pow(g, 1/l.p[0]) / l.mean
	case profile.LogNormal:
		return u * math.Exp(l.p[0]+l.p[1]*l.p[1]+l.p[1]*r.NormFloat64()) / l.mean
	case profile.OnOff:
		q, a, b := l.mixture()
		rate := b
		if r.Float64() < q/a/(q/a+(1-q)/b) {
			rate = a
		}
		return r.ExpFloat64() / rate / l.mean // the rest of an exponential gap is one
	}
	return r.ExpFloat64()
}

// process is a renewal process on the operational time of a curve. The law may change over time.
type process struct {
	at    cursor
	laws  func(t float64) gapLaw
	r     *rand.Rand
	op    float64
	t     float64
	begun bool
}

func newProcess(c *curve, laws func(t float64) gapLaw, r *rand.Rand) *process {
	return &process{at: cursor{c: c}, laws: laws, r: r}
}

func always(l gapLaw) func(float64) gapLaw { return func(float64) gapLaw { return l } }

// next is the next arrival in seconds; ok is false after the curve's end.
func (p *process) next() (t float64, ok bool) {
	if !p.begun {
		p.begun = true
		if len(p.at.c.segs) > 0 {
			p.t = p.at.c.segs[0].from
		}
		p.op = p.laws(p.t).wait(p.r)
	} else {
		p.op += p.laws(p.t).gap(p.r)
	}
	p.t, ok = p.at.when(p.op)
	return p.t, ok
}
