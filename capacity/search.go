package capacity

import (
	"errors"
	"fmt"
	"math"
	"time"

	"tailgate/internal/fault"
)

// Kinds of steps of a search.
const (
	StepProbe   = "probe"
	StepConfirm = "confirm"
)

// States of a search.
const (
	SearchRunning      = "running"
	SearchConfirmed    = "confirmed"    // the rate was accepted in a run of its own
	SearchInconclusive = "inconclusive" // the budget ended first
)

// The rate that a search publishes lies below its estimate by safety standard errors, and never by less than
// leastMargin: a bound with less is over the truth too often where the fit is sharp by chance.
const (
	safety      = 1.645
	leastMargin = .02
	// agreement is by how much a confirmed rate may lie above the bound of the fit that its own run joined.
	agreement = 1.02
)

// SearchRule is one limit of the gate that the search keeps.
type SearchRule struct {
	Name string `json:"name"`
	// Allowed is the share of requests that may break it: .01 for a p99 rule.
	Allowed float64 `json:"allowed"`
}

// SearchOptions say how to search. Zero values take the defaults that were measured (docs/statistics.md).
type SearchOptions struct {
	// Ladder is the rate that the cluster can serve when saturated, requests/s; an error of 2 % is enough.
	Ladder float64
	Rules  []SearchRule
	// SameWindow replays one window of a trace in every probe, which then is as long as the window; the answer holds
	// for that window. Else every probe draws fresh arrivals.
	SameWindow bool
	Probe      time.Duration // counted part of a probe; 0 = 13 min, or 28 min of the window
	Warmup     time.Duration // in front of it; 0 = 2 min
	MinProbes  int           // 0 = 10, or 6 of the window
	Error      float64       // standard error of the rate to stop at; 0 = .025
	Confirm    time.Duration // counted part of a confirmation; 0 = 28 min
	Budget     time.Duration // of all runs, warm-ups included; 0 = 8 h
	MaxRate    float64       // that can be offered; 0 = any
}

// Validate reports every fault.
func (o SearchOptions) Validate() error {
	var errs []error
	if !(o.Ladder > 0) || math.IsInf(o.Ladder, 0) {
		errs = append(errs, fmt.Errorf("the ladder's rate must be above 0, not %v", o.Ladder))
	}
	if len(o.Rules) == 0 {
		errs = append(errs, errors.New("a search needs a rule on a percentile or on success_rate"))
	}
	for _, r := range o.Rules {
		if !(r.Allowed > 0 && r.Allowed < .5) {
			errs = append(errs, fmt.Errorf("rule %s: an allowed share of %v cannot be searched for, it must be in (0, 0.5)", r.Name, r.Allowed))
		}
	}
	for _, t := range []struct {
		name string
		d    time.Duration
	}{{"probe", o.Probe}, {"warmup", o.Warmup}, {"confirm", o.Confirm}, {"budget", o.Budget}} {
		if t.d < 0 {
			errs = append(errs, fmt.Errorf("%s must be >= 0, not %v", t.name, t.d))
		}
	}
	if o.Probe > 0 && o.Probe < 2*shortestBlock {
		errs = append(errs, fmt.Errorf("a probe of %v is too short: two blocks of %v are needed", o.Probe, shortestBlock))
	}
	if o.MinProbes < 0 || o.Error < 0 {
		errs = append(errs, errors.New("min_probes and error must be >= 0"))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// shortestBlock is the length below which violations of one block say nothing about those of the next.
const shortestBlock = 4 * time.Minute

func (o SearchOptions) filled() SearchOptions {
	if o.Probe == 0 {
		if o.Probe = 13 * time.Minute; o.SameWindow {
			o.Probe = 28 * time.Minute
		}
	}
	if o.Warmup == 0 {
		o.Warmup = 2 * time.Minute
	}
	if o.MinProbes == 0 {
		if o.MinProbes = 10; o.SameWindow {
			o.MinProbes = 6
		}
	}
	if o.Error == 0 {
		o.Error = .025
	}
	if o.Confirm == 0 {
		o.Confirm = 28 * time.Minute
		if o.SameWindow {
			o.Confirm = max(o.Confirm, o.Probe)
		}
	}
	if o.Budget == 0 {
		o.Budget = 8 * time.Hour
	}
	return o
}

// Step is a run that the search asks for.
type Step struct {
	Kind   string // StepProbe or StepConfirm
	Number int    // from 0, over both kinds
	Rate   float64
	Warmup time.Duration
	Length time.Duration // counted, behind the warm-up
	Blocks int           // equal parts of Length to count violations in
}

// Point is a step that was run.
type Point struct {
	Kind   string        `json:"kind"`
	Rate   float64       `json:"rate"`
	Length time.Duration `json:"-"`
	// Counts has one list of blocks for each rule, in the order of SearchOptions.Rules.
	Counts [][]Count `json:"counts"`
}

// share is the violation share of rule i in the whole run.
func (p Point) share(rule int) (share float64, n int) {
	k := 0.0
	for _, c := range p.Counts[rule] {
		k, n = k+c.Violations, n+c.N
	}
	if n == 0 {
		return 0, 0
	}
	return k / float64(n), n
}

// Search finds the highest rate that keeps its rules: the sequential algorithm of docs/statistics.md, which pools
// all probes in one curve, stops when the rate's standard error is small, and confirms. It runs nothing itself, and
// its next step depends on its points only.
type Search struct {
	o      SearchOptions
	points []Point
	used   time.Duration
	probes int
	// candidate is the rate that is being confirmed; 0 = still probing.
	candidate float64
	state     string
}

// NewSearch starts a search.
func NewSearch(o SearchOptions) (*Search, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Search{o: o.filled(), state: SearchRunning}, nil
}

// Options are those of NewSearch with the defaults filled in.
func (s *Search) Options() SearchOptions { return s.o }

// Next is the run to make; false = the search is over.
func (s *Search) Next() (Step, bool) {
	if s.state != SearchRunning {
		return Step{}, false
	}
	step := Step{Number: len(s.points), Warmup: s.o.Warmup}
	if s.candidate > 0 {
		step.Kind, step.Rate, step.Length = StepConfirm, s.candidate, s.o.Confirm
	} else {
		step.Kind, step.Rate, step.Length = StepProbe, s.place(), s.o.Probe
	}
	step.Blocks = max(2, int(step.Length/max(s.o.Probe/2, shortestBlock)))
	return step, true
}

// Add takes the outcome of the step that Next told.
func (s *Search) Add(counts [][]Count) error {
	step, ok := s.Next()
	switch {
	case !ok:
		return errors.New("adding a point to a search that is over")
	case len(counts) != len(s.o.Rules):
		return fmt.Errorf("adding a point: %d lists of counts for %d rules", len(counts), len(s.o.Rules))
	}
	p := Point{Kind: step.Kind, Rate: step.Rate, Length: step.Length, Counts: counts}
	s.points = append(s.points, p)
	s.used += step.Warmup + step.Length
	if step.Kind == StepProbe {
		s.probes++
	}
	s.decide(p)
	return nil
}

// decide says what comes after point p.
func (s *Search) decide(p Point) {
	if p.Kind == StepConfirm {
		bound := s.bound()
		if s.kept(p) && s.candidate <= agreement*bound {
			s.state = SearchConfirmed
			return
		}
		s.candidate = min(s.candidate, bound)
	} else if s.probes >= s.o.MinProbes && s.sharpEnough() {
		s.candidate = s.bound()
	}
	left := s.o.Budget - s.used
	need := s.o.Warmup + s.o.Confirm
	if s.candidate == 0 {
		need += s.o.Warmup + s.o.Probe // a probe that leaves no room for its confirmation is of no use
	}
	if left < need {
		s.state = SearchInconclusive
	}
}

// kept tells whether the run's own shares keep every rule.
func (s *Search) kept(p Point) bool {
	for i, r := range s.o.Rules {
		if share, _ := p.share(i); share > r.Allowed {
			return false
		}
	}
	return true
}

// curves fits one curve for each rule.
func (s *Search) curves() []curve {
	out := make([]curve, len(s.o.Rules))
	for i := range s.o.Rules {
		out[i] = fitCurve(s.blocks(i), false)
	}
	return out
}

func (s *Search) blocks(rule int) []block {
	var out []block
	for _, p := range s.points {
		for _, c := range p.Counts[rule] {
			if c.N > 0 {
				out = append(out, block{math.Log(p.Rate / s.o.Ladder), c})
			}
		}
	}
	return out
}

// lower is the bound R_L of a rule's curve as a log rate. Where the estimate lies beyond every tested rate, its error is
// one of extrapolation; when the curve, with its error, keeps the allowed share at the highest tested rate, that rate
// is the bound (tested).
func (s *Search) lower(c curve, allowed float64) (x float64, tested bool) {
	x = c.at(allowed) - max(safety*c.err(allowed), leastMargin)
	_, highest := s.tried()
	most := math.Log(highest / s.o.Ladder)
	if c.at(allowed) > most && c.logit(most)+safety*c.logitErr(most) <= logit(allowed) {
		return most, true
	}
	return x, false
}

// decides is the rule with the lowest bound.
func (s *Search) decides(curves []curve) (rule int, x float64, tested bool) {
	x = math.Inf(1)
	for i, c := range curves {
		if low, isTested := s.lower(c, s.o.Rules[i].Allowed); low < x {
			rule, x, tested = i, low, isTested
		}
	}
	return rule, x, tested
}

// bound is the lowest R_L of the rules, never above the highest tested rate.
func (s *Search) bound() float64 {
	_, x, _ := s.decides(s.curves())
	_, highest := s.tried()
	return min(s.o.Ladder*math.Exp(x), highest)
}

// sharpEnough tells whether the standard error of the rule that decides is small enough, or no higher rate can be
// offered.
func (s *Search) sharpEnough() bool {
	curves := s.curves()
	rule, _, tested := s.decides(curves)
	if _, highest := s.tried(); tested {
		return s.o.MaxRate > 0 && highest >= s.o.MaxRate
	}
	return curves[rule].err(s.o.Rules[rule].Allowed) <= s.o.Error
}

// The places of probes: the first, and the range, in units of the ladder's rate; and how far one goes beyond the
// rates that were tried.
const (
	firstPlace, lowestPlace, highestPlace = .75, .45, 1.02
	stepDown, stepUp                      = .8, 1.15
	mostShare                             = .4
)

// place is the rate of the next probe: in turn where the curve has the allowed share, half and twice of it. It aims
// at the rule with the lowest estimate, and once that is known well, at the one with the lowest bound.
func (s *Search) place() float64 {
	if len(s.points) == 0 {
		return s.offerable(firstPlace * s.o.Ladder)
	}
	curves := s.curves()
	aim := 0
	for i, c := range curves {
		if c.at(s.o.Rules[i].Allowed) < curves[aim].at(s.o.Rules[aim].Allowed) {
			aim = i
		}
	}
	if curves[aim].err(s.o.Rules[aim].Allowed) <= s.o.Error {
		aim, _, _ = s.decides(curves)
	}
	factor := []float64{1, .5, 2}[s.probes%3]
	rate := s.o.Ladder * math.Exp(curves[aim].at(min(mostShare, factor*s.o.Rules[aim].Allowed)))
	lowest, highest := s.tried()
	rate = min(max(rate, stepDown*lowest), stepUp*highest)
	floor, ceiling := lowestPlace*s.o.Ladder, highestPlace*s.o.Ladder
	// A ladder that was far off, as that of another mix is, must not keep the search from the truth.
	for _, p := range s.points {
		if kept := s.kept(p); kept && p.Rate >= ceiling {
			ceiling = math.Inf(1)
		} else if !kept && p.Rate <= floor {
			floor = 0
		}
	}
	return s.offerable(min(max(rate, floor), ceiling))
}

func (s *Search) offerable(rate float64) float64 {
	if s.o.MaxRate > 0 {
		return min(rate, s.o.MaxRate)
	}
	return rate
}

// tried are the lowest and the highest rate of the points.
func (s *Search) tried() (lowest, highest float64) {
	lowest = math.Inf(1)
	for _, p := range s.points {
		lowest, highest = min(lowest, p.Rate), max(highest, p.Rate)
	}
	return lowest, highest
}
