package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Answer is what a search found so far. Rates are requests/s.
type Answer struct {
	State string `json:"state"`
	// SafeRate is the published rate: the confirmed one; 0 = none is confirmed.
	SafeRate float64 `json:"safe_rate"`
	// Provisional is the bound of the fit where nothing is confirmed.
	Provisional  float64       `json:"provisional_rate"`
	NeedsMinutes float64       `json:"needs_minutes"` // about so many more until a confirmed rate; 0 when there is one
	Rules        []RuleAnswer  `json:"rules"`
	Probes       int           `json:"probes"`
	Confirms     int           `json:"confirmations"`
	Measured     time.Duration `json:"-"` // of all runs, warm-ups included
	HighestTried float64       `json:"highest_tried"`
	Warnings     []string      `json:"warnings"`
}

// RuleAnswer is the estimate of one rule.
type RuleAnswer struct {
	Rule      string  `json:"rule"`
	Allowed   float64 `json:"allowed"`
	Estimate  float64 `json:"estimate"`   // rate at which the share of violations is the allowed one
	Error     float64 `json:"error"`      // its relative standard error
	Lower     float64 `json:"lower"`      // R_L: estimate less max(1.645 standard errors, 2 %)
	Upper     float64 `json:"upper"`      // estimate and as much on top
	Slope     float64 `json:"slope"`      // of logit share over log rate
	Scatter   float64 `json:"dispersion"` // of the blocks, 1 = binomial
	Decides   bool    `json:"decides"`
	Violation float64 `json:"violations"` // of all points together
}

// Answer tells what the points say.
func (s *Search) Answer() Answer {
	a := Answer{State: s.state, Probes: s.probes, Confirms: len(s.points) - s.probes, Measured: s.used, Warnings: []string{}}
	if len(s.points) == 0 {
		return a
	}
	_, a.HighestTried = s.tried()
	curves := s.curves()
	least, _, _ := s.decides(curves)
	for i, c := range curves {
		rule := s.o.Rules[i]
		r := RuleAnswer{Rule: rule.Name, Allowed: rule.Allowed, Error: c.err(rule.Allowed), Slope: c.beta[1], Scatter: c.phi}
		margin := max(safety*r.Error, leastMargin)
		r.Estimate = s.o.Ladder * math.Exp(c.at(rule.Allowed))
		low, _ := s.lower(c, rule.Allowed)
		r.Lower, r.Upper = s.o.Ladder*math.Exp(low), r.Estimate*math.Exp(margin)
		for _, b := range s.blocks(i) {
			r.Violation += b.Violations
		}
		a.Rules = append(a.Rules, r)
		a.Warnings = append(a.Warnings, s.doubts(i, c)...)
	}
	a.Rules[least].Decides = true
	if s.o.MaxRate > 0 && a.HighestTried >= s.o.MaxRate {
		a.Warnings = append(a.Warnings, fmt.Sprintf("no more than %.4g/s can be offered: the trace cannot be rescaled further", s.o.MaxRate))
	}
	switch s.state {
	case SearchConfirmed:
		a.SafeRate = s.candidate
	case SearchInconclusive:
		a.Provisional = s.bound()
		a.NeedsMinutes = s.more(a.Rules[least].Error)
	default:
		a.Provisional = s.bound()
	}
	return a
}

// more is about how many minutes a search lacks: those for the wanted standard error by the law that errors fall
// with the root of the time, and those of the confirmation.
func (s *Search) more(err float64) float64 {
	probing := 0.0
	if ratio := err / s.o.Error; ratio > 1 {
		probing = s.used.Minutes() * (ratio*ratio - 1)
	}
	return math.Ceil(probing + (s.o.Warmup + s.o.Confirm).Minutes())
}

// doubts are the signs that the curve of a rule is not what the fit takes it for: a share that falls while the rate
// rises, or a bend that moves the answer.
func (s *Search) doubts(rule int, c curve) []string {
	var out []string
	name := s.o.Rules[rule].Name
	points := slices.Clone(s.points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Rate, b.Rate) })
	shares, weights := make([]float64, len(points)), make([]float64, len(points))
	for i, p := range points {
		share, n := p.share(rule)
		shares[i], weights[i] = share, float64(n)
	}
	for i, fitted := range monotone(shares, weights) {
		p := c.share(math.Log(points[i].Rate / s.o.Ladder))
		if weights[i] > 0 && math.Abs(shares[i]-fitted) > 3*math.Sqrt(c.phi*p*(1-p)/weights[i]) {
			out = append(out, fmt.Sprintf("%s: %.3g %% broke the limit at %.4g/s, which does not fit between the rates beside it: the cluster did not behave alike in all probes", name, 100*shares[i], points[i].Rate))
		}
	}
	if len(points) < s.o.MinProbes {
		return out
	}
	if c.beta[1] <= slopeLeast*1.001 {
		return append(out, fmt.Sprintf("%s: the share of violations hardly depends on the rate: the limit may not be reachable at any", name))
	}
	x := c.at(s.o.Rules[rule].Allowed)
	bent := fitCurve(s.blocks(rule), true)
	if moved := bent.bentAt(s.o.Rules[rule].Allowed, x); math.Abs(moved-x) > c.err(s.o.Rules[rule].Allowed) {
		out = append(out, fmt.Sprintf("%s: a bend in the curve would move the estimate from %.4g/s to %.4g/s", name, s.o.Ladder*math.Exp(x), s.o.Ladder*math.Exp(moved)))
	}
	return out
}

// monotone is the non-decreasing sequence nearest to y by weighted squares (pool adjacent violators; Ayer et al. 1955).
func monotone(y, w []float64) []float64 {
	type pool struct {
		sum, weight float64
		n           int
	}
	var pools []pool
	mean := func(p pool) float64 { return p.sum / max(p.weight, 1e-12) }
	for i := range y {
		pools = append(pools, pool{y[i] * w[i], w[i], 1})
		for len(pools) > 1 && mean(pools[len(pools)-2]) >= mean(pools[len(pools)-1]) {
			last := pools[len(pools)-1]
			pools = pools[:len(pools)-1]
			p := &pools[len(pools)-1]
			p.sum, p.weight, p.n = p.sum+last.sum, p.weight+last.weight, p.n+last.n
		}
	}
	out := make([]float64, 0, len(y))
	for _, p := range pools {
		for range p.n {
			out = append(out, mean(p))
		}
	}
	return out
}
