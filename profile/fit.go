package profile

import (
	"math"

	"tailgate/schemas"
)

// Clocks, laws and methods of the fits.
const (
	ClockRaw   = "raw"   // seconds
	ClockOp60  = "op60"  // operational time by 60 s counts; one unit = one expected arrival
	ClockOp300 = "op300" // the same by 300 s counts

	Exponential = "exponential"
	Gamma       = "gamma"
	Weibull     = "weibull"
	LogNormal   = "lognormal"
	OnOff       = "onoff" // Poisson arrivals that are switched on and off

	MethodMLE     = "mle"
	MethodMoments = "moments"
)

// selectMin is the number of gaps from which on a law is chosen; with fewer, the fits stand without a choice.
const selectMin = 200

// rawFits fits the laws to the gaps in seconds: maximum likelihood for each law, and the Gamma shape by moments (1/CV²,
// the "burstiness" of load generators) beside it. The law with the least BIC among the likelihood fits is selected;
// KS is the effect size. Nothing is fitted below the clock's resolution: a tie is a gap of which the fit knows only
// that it is below half the resolution.
func (a *arrivals) rawFits(key schemas.ProfileKey) []schemas.ProfileIATFit {
	if len(a.sorted) < 2 {
		return nil
	}
	out := fitClock(ClockRaw, rawSample(a.sorted, float64(a.resolution)/2e6), key)
	blockIntervals(a.stamps, a.resolution, out)
	return out
}

// opFits is rawFits for gaps on operational time, which it uses up.
func (a *arrivals) opFits(clock string, gaps []float64, key schemas.ProfileKey) []schemas.ProfileIATFit {
	if len(gaps) < 2 {
		return nil
	}
	meanGap := float64(a.stamps[len(a.stamps)-1]) / 1e6 / float64(len(a.stamps)-1)
	return fitClock(clock, sampleOf(gaps, float64(a.resolution)/2e6/meanGap), key)
}

func fitClock(clock string, s *sample, key schemas.ProfileKey) []schemas.ProfileIATFit {
	var out []schemas.ProfileIATFit
	best := -1
	add := func(f family, method string, p params) {
		row, ok := fitRow(s, f, method, p)
		if !ok {
			return
		}
		row.ProfileKey, row.Clock = key, clock
		out = append(out, row)
		if method == MethodMLE && (best < 0 || *row.BIC < *out[best].BIC) {
			best = len(out) - 1
		}
	}
	for _, f := range families() {
		if p, ok := f.mle(s); ok {
			add(f, MethodMLE, p)
		}
	}
	if shape := s.mean * s.mean / s.variance; finite(shape) && shape > 0 {
		add(gammaFamily(), MethodMoments, params{shape, s.mean / shape})
	}
	if best >= 0 && s.n >= selectMin {
		out[best].Selected = true
	}
	return out
}

// fitRow measures a law with its parameters against the sample; ok is false when a figure is not finite.
func fitRow(s *sample, f family, method string, p params) (schemas.ProfileIATFit, bool) {
	loglik := s.loglik(f, p)
	bic := float64(f.params)*math.Log(s.n) - 2*loglik
	row := schemas.ProfileIATFit{
		Dist: f.dist, Method: method,
		P1: val(p[0]), LogLik: val(loglik), BIC: val(bic), KS: val(s.ks(f.cdf(p))),
	}
	if f.params > 1 {
		row.P2 = val(p[1])
	}
	if f.params > 2 {
		row.P3 = val(p[2])
	}
	return row, row.P1 != nil && (f.params < 2 || row.P2 != nil) && (f.params < 3 || row.P3 != nil) && row.LogLik != nil && row.KS != nil
}
