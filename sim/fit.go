package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/fault"
)

// FitOptions say how to estimate the coefficients of the step model.
type FitOptions struct {
	// Base has what a run does not show: the limits and memory of the engine. Its coefficients are not used.
	Base Config
	// MaxBatchedTokens is the token budget of a step; 0 = that of Base.
	MaxBatchedTokens int
	// ActiveExperts of Experts are read per token; 0 = the model has no experts.
	ActiveExperts, Experts int
	Confidence             float64 // of the intervals; 0 = 0.95
}

// Coefficient is one estimate.
type Coefficient struct {
	Name  string
	Unit  string
	Value float64
	// Low and High are the interval; both are NaN when the run does not tell this coefficient.
	Low, High float64
	Note      string // what to know about it, "" = nothing
}

// Fit is the step model of a run.
type Fit struct {
	Coefficients []Coefficient
	Config       Config // Base with the coefficients
	Confidence   float64

	Requests, Unusable int // read; and of these without whole times and tokens
	Targets            int
	Steps              float64 // counted
	Equations, Dropped int     // spans between known ends of steps; and those left out as outliers
	// Agreeing is the share of requests for which the steps counted are those that their tokens tell.
	Agreeing float64
	// Residual is how far the model's length of a span is from the measured one, as a share: median and p95.
	ResidualP50, ResidualP95 float64
	Notes                    []string
}

// columns of the equations, in the order of the coefficients.
const (
	colA = iota
	colB
	colC
	colD
	colE
	colF
	colFront
	columns
)

var columnNames = [columns]struct{ name, unit string }{
	{"a", "ms per step"}, {"b", "ms per prompt token"}, {"c", "ms per decoding sequence"}, {"d", "ms per context token"},
	{"e", "ms per token²"}, {"f", "ms for all experts"}, {"front", "ms per request before its first step"},
}

// stepModel is the step model under estimation.
type stepModel struct {
	a, b, c, d, e, f, front float64
	cold                    float64 // share of the experts that one token leaves unread; 0 = no experts
}

// touched is the share of the experts that n tokens read.
func (m *stepModel) touched(n float64) float64 {
	if m.cold == 0 {
		return 0
	}
	return 1 - math.Pow(m.cold, n)
}

func (m *stepModel) set(v []float64) {
	m.a, m.b, m.c, m.d, m.e, m.f, m.front = v[colA], v[colB], v[colC], v[colD], v[colE], v[colF], v[colFront]
}

// FitSteps estimates the coefficients of the step model from the requests of a run by weighted least squares. The
// equations are spans between ends of steps that requests show; how many steps lie in each is found in turn with
// the coefficients. The intervals are sandwich intervals for errors of any size that neighbouring spans share
// (Newey and West, 1987, lag 1). See docs/sim.md.
func FitSteps(obs []Observation, o FitOptions) (*Fit, error) {
	if o.MaxBatchedTokens == 0 {
		o.MaxBatchedTokens = o.Base.MaxBatchedTokens
	}
	if o.Confidence == 0 {
		o.Confidence = .95
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &Fit{Confidence: o.Confidence, Requests: len(obs)}
	clocks := f.clocks(obs, &o)
	m := stepModel{}
	if o.Experts > 0 {
		m.cold = 1 - float64(o.ActiveExperts)/float64(o.Experts)
	}
	s, err := f.solve(clocks, &m)
	if err != nil {
		return nil, err
	}
	f.report(s, &o)
	return f, nil
}

func (o *FitOptions) check() error {
	var errs []error
	if o.MaxBatchedTokens < 1 {
		errs = append(errs, fmt.Errorf("the token budget of a step must be at least 1, not %d", o.MaxBatchedTokens))
	}
	if o.Experts != 0 && (o.ActiveExperts < 1 || o.ActiveExperts >= o.Experts) {
		errs = append(errs, fmt.Errorf("experts must be k/E with 0 < k < E, not %d/%d", o.ActiveExperts, o.Experts))
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		errs = append(errs, fmt.Errorf("confidence must be between 0 and 1, not %v", o.Confidence))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// clocks makes a clock for each target, with a first count of its steps.
func (f *Fit) clocks(obs []Observation, o *FitOptions) []*fitClock {
	byTarget := map[string][]Observation{}
	untold, uncounted := 0, 0
	for i := range obs {
		x := &obs[i]
		if !x.OK {
			f.Unusable++
			continue
		}
		if x.Queue < 0 {
			untold++
		}
		if x.Cached < 0 {
			uncounted++
		}
		byTarget[x.Target] = append(byTarget[x.Target], *x)
	}
	f.note(f.Unusable > 0, "%d of %d requests failed or have no token times: what they cost is in nobody's equation", f.Unusable, f.Requests)
	f.note(untold > 0, "%d requests do not tell their queue time: prompts show by the steps that they lengthen, and by requests to an idle server", untold)
	f.note(uncounted > 0, "%d requests do not tell their cached tokens, and count as computed whole", uncounted)
	f.Targets = len(byTarget)
	names := make([]string, 0, len(byTarget))
	for name := range byTarget {
		names = append(names, name)
	}
	slices.Sort(names)
	var clocks []*fitClock
	for _, name := range names {
		c := newFitClock(byTarget[name], o)
		c.guessSteps()
		c.spreadPrompts()
		c.countContexts()
		clocks = append(clocks, c)
	}
	return clocks
}

func (f *Fit) note(is bool, format string, a ...any) {
	if is {
		f.Notes = append(f.Notes, fmt.Sprintf(format, a...))
	}
}

// solve finds steps and coefficients in turn until the steps stay.
func (f *Fit) solve(clocks []*fitClock, m *stepModel) (*solution, error) {
	const rounds = 30
	s, err := requestEquations(clocks, m).solve()
	settled := false
	for range rounds {
		if err != nil {
			return nil, err
		}
		m.set(s.value[:])
		if m.a <= 0 {
			return nil, fault.Mark(errors.New("fitting the step model: no fixed time per step comes out of this run"), fault.Data,
				"a run with decoding requests at several levels of load is needed")
		}
		changed := false
		for _, c := range clocks {
			changed = c.recount(m, c.groups()) || changed
			c.fillUnknown()
			c.spreadPrompts()
			c.countContexts()
			c.agreeing()
		}
		if s, err = equationsOf(clocks, m).solve(); !changed {
			settled = true
			break
		}
	}
	if err != nil {
		return nil, err
	}
	f.note(!settled, "the count of steps did not settle in %d rounds", rounds)
	return s, f.judge(clocks)
}

// judge says how well the clocks agree with the requests, and refuses a run of which they make nothing.
func (f *Fit) judge(clocks []*fitClock) error {
	agree, near, of := 0, 0, 0
	for _, c := range clocks {
		n, close, all := c.agreeing()
		agree, near, of = agree+n, near+close, of+all
		for i := range c.cells {
			f.Steps += c.cells[i].steps
		}
	}
	if of == 0 {
		return nil
	}
	f.Agreeing = float64(agree) / float64(of)
	if 2*near < of {
		return fault.Mark(fmt.Errorf("fitting the step model: the steps counted are those that tokens tell, within 2 %%, for only %.0f %% of the requests",
			100*float64(near)/float64(of)), fault.Data,
			"replay below saturation and without preemptions, one token a step; name the engine's budget with --max-num-batched-tokens")
	}
	f.note(f.Agreeing < .9, "for %.0f %% of the requests the steps counted are not quite those of their tokens: preempted requests, several tokens a step, or another engine than the model", 100*(1-f.Agreeing))
	return nil
}

// report turns the solution into estimates.
func (f *Fit) report(s *solution, o *FitOptions) {
	f.Equations, f.Dropped = s.n, s.dropped
	f.ResidualP50, f.ResidualP95 = s.residualP50, s.residualP95
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(max(1, s.n-len(s.used)))}.Quantile(1 - (1-o.Confidence)/2)
	c := o.Base
	c.Preset = ""
	c.Service, c.A, c.B, c.C, c.D, c.E, c.F, c.ActiveExperts, c.Experts = 0, 0, 0, 0, 0, 0, 0, o.ActiveExperts, o.Experts
	at := [columns]*float64{&c.A, &c.B, &c.C, &c.D, &c.E, &c.F, nil}
	for i, name := range columnNames {
		if i == colF && o.Experts == 0 || i == colFront && !slices.Contains(s.used, i) {
			continue
		}
		x := Coefficient{Name: name.name, Unit: name.unit, Value: s.value[i], Low: math.NaN(), High: math.NaN(), Note: s.why[i]}
		if s.why[i] == "" {
			half := t*s.se[i] + s.bias[i]
			x.Low, x.High = s.value[i]-half, s.value[i]+half
			if x.Value < 0 && i != colFront {
				x.Note = "below 0 in this run, set to 0 in the spec"
			}
		}
		f.Coefficients = append(f.Coefficients, x)
		if at[i] != nil {
			*at[i] = max(0, x.Value)
		}
	}
	f.Config = c
}

// Spec returns the fitted engine as --target takes it.
func (f *Fit) Spec() string {
	c := f.Config
	round := func(v *float64) { *v, _ = roundTo(*v, 5) }
	for _, v := range []*float64{&c.A, &c.B, &c.C, &c.D, &c.E, &c.F} {
		round(v)
	}
	return c.String()
}

// roundTo rounds to n significant digits.
func roundTo(v float64, n int) (float64, bool) {
	var r float64
	_, err := fmt.Sscan(fmt.Sprintf("%.*g", n, v), &r)
	return r, err == nil
}

// MarshalJSON writes an interval that is not known as null.
func (c Coefficient) MarshalJSON() ([]byte, error) {
	known := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	return json.Marshal(struct {
		Name  string   `json:"name"`
		Unit  string   `json:"unit"`
		Value *float64 `json:"value"`
		Low   *float64 `json:"low"`
		High  *float64 `json:"high"`
		Note  string   `json:"note,omitempty"`
	}{c.Name, c.Unit, known(c.Value), known(c.Low), known(c.High), c.Note})
}
