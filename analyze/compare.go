package analyze

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tailgate/internal/fault"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// CompareOptions say what is compared.
type CompareOptions struct {
	By         []By    // buckets beside the whole; empty = the whole alone
	Gate       *Gate   // its latency limits are compared by violations; null = none
	Confidence float64 // of each interval, two-sided; 0 = 0.95
	Resamples  int     // of the bootstrap; 0 = 2000, fewer on very large runs
	Seed       uint64
	// Again is a second run of the first arm: what it differs by is the floor below which no change is called. null =
	// the floor is not known.
	Again *Data

	metrics []metricName // by fromSent
	sent    bool         // latencies count from the time of sending
}

// Arm is one run, or several merged, of a comparison.
type Arm struct {
	Name string
	Data *Data
}

// Comparison is several runs of one trace side by side. Its fields are its JSON.
type Comparison struct {
	Definition string     `json:"definition"`
	Valid      bool       `json:"valid"`
	Invalid    []string   `json:"invalid"`
	Unchecked  []string   `json:"unchecked"`
	Confidence float64    `json:"confidence"`
	Baseline   string     `json:"baseline"`
	Arms       []ArmFacts `json:"arms"` // the baseline first
	Changes    []Change   `json:"changes"`
	Rules      []Crossing `json:"rules"` // violations of the gate's limits
	Sentences  []string   `json:"sentences"`

	metrics []metricName // that were compared
}

// ArmFacts compare an arm's workload with the baseline's, over rows that are ok in both.
type ArmFacts struct {
	Name         string `json:"name"`
	Paired       int    `json:"paired"`
	SuccessRate  Figure `json:"success_rate"`
	InputTokens  Figure `json:"input_tokens_ratio"`  // as usage told them, of the baseline's
	OutputTokens Figure `json:"output_tokens_ratio"` // as usage told them, of the baseline's
}

// Change is how one percentile of one bucket differs between an arm and the baseline.
type Change struct {
	Arm        string  `json:"arm"`
	By         Tuple   `json:"by"`
	Metric     string  `json:"metric"` // ttft_ms …
	Percentile float64 `json:"percentile"`
	N          int     `json:"n"`    // rows of both
	Base       Figure  `json:"base"` // ms; infinite where the rank falls on a failure
	Value      Figure  `json:"value"`
	Change     Figure  `json:"change"` // value / base − 1
	Lower      Figure  `json:"lower"`
	Upper      Figure  `json:"upper"`
	Floor      Figure  `json:"floor"`   // largest |change| that two runs of the baseline may show; null = not known
	P          Figure  `json:"p"`       // two-sided, after Holm over the arms
	Verdict    string  `json:"verdict"` // rose, fell, same, insufficient
}

// Verdicts of a Change and a Crossing.
const (
	ChangeRose         = "rose"
	ChangeFell         = "fell"
	ChangeSame         = "same" // the interval covers 0, or the change is within the floor
	ChangeInsufficient = "insufficient"
)

// workloadLimit is the difference of realised tokens over which two runs did not do the same work.
const workloadLimit = .02

// comparedMetrics are those that a comparison shows, with their percentiles.
var (
	comparedMetrics     = []metricName{{ttft, "ttft_ms", "ttft"}, {tpot, "tpot_ms", "tpot"}, {e2e, "e2e_ms", "e2e"}}
	comparedPercentiles = []float64{.5, .95, .99}
)

// Validate reports every fault of the options.
func (o CompareOptions) Validate() error {
	errs := []error{Options{By: o.By}.Validate()}
	errs = append(errs, checkResampling(o.Confidence, o.Resamples))
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Compare holds arms against the first of them, row by row of one trace: differences of percentiles with their
// intervals by a paired bootstrap of blocks of time, and of violations by McNemar's test. Runs of different traces and
// faulty options are faults of kind Usage. A run that is itself invalid, or that did other work, makes the comparison
// invalid.
func Compare(ctx context.Context, arms []Arm, o CompareOptions) (*Comparison, error) {
	if len(arms) < 2 {
		return nil, fault.Mark(errors.New("comparing runs: two are needed"), fault.Usage, "")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Confidence == 0 {
		o.Confidence = .95
	}
	if err := sameTraces(arms, o.Again); err != nil {
		return nil, err
	}
	c := &Comparison{Definition: schemas.Definition, Invalid: []string{}, Unchecked: []string{}, Confidence: o.Confidence, Baseline: arms[0].Name}
	views := make([]*view, len(arms))
	for k, a := range arms {
		views[k] = o.view(a.Data)
		c.validity(a.Name, views[k], o.Gate)
	}
	base := views[0]
	o.By = slices.Clone(o.By)
	for i, by := range o.By {
		var err error
		if o.By[i], err = base.sliced(by); err != nil {
			return nil, err
		}
	}
	o.fromSent(c, arms)
	floors, err := c.floors(ctx, base, o)
	if err != nil {
		return nil, err
	}
	c.Arms = append(c.Arms, ArmFacts{Name: arms[0].Name, SuccessRate: successOf(base), InputTokens: 1, OutputTokens: 1})
	for k, a := range arms[1:] {
		p, err := pairRows(base, views[k+1])
		if err != nil {
			return nil, err
		}
		facts := p.facts(a.Name)
		c.Arms = append(c.Arms, facts)
		c.Invalid = append(c.Invalid, facts.otherWork()...)
		c.Changes = append(c.Changes, p.changes(ctx, a.Name, o)...)
		if o.Gate != nil {
			c.Rules = append(c.Rules, p.crossings(a.Name, o)...)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	c.Valid = len(c.Invalid) == 0
	c.settle(floors, len(arms)-1)
	c.Sentences = c.say()
	return c, nil
}

func (o CompareOptions) view(d *Data) *view { return Options{Gate: o.Gate}.view(d) }

// validity notes why an arm cannot be judged, or that it was not looked at.
func (c *Comparison) validity(name string, v *view, g *Gate) {
	reasons, judged := v.validity(g.TTFTLimit())
	for _, r := range reasons {
		c.Invalid = append(c.Invalid, name+": "+r)
	}
	if !judged {
		c.Unchecked = append(c.Unchecked, "validity of "+name)
	}
}

type floorKey struct {
	by, metric string
	percentile float64
}

// floors are the largest changes that two runs of the baseline show; empty without a second one.
func (c *Comparison) floors(ctx context.Context, base *view, o CompareOptions) (map[floorKey]float64, error) {
	out := map[floorKey]float64{}
	if o.Again == nil {
		c.Unchecked = append(c.Unchecked, "the noise between two runs of "+c.Baseline+": no second run of it was given")
		return out, nil
	}
	p, err := pairRows(base, o.view(o.Again))
	if err != nil {
		return nil, err
	}
	for _, ch := range p.changes(ctx, "again", o) {
		if ch.Lower.Known() && ch.Upper.Known() {
			out[floorKey{ch.By.json(), ch.Metric, ch.Percentile}] = max(math.Abs(float64(ch.Lower)), math.Abs(float64(ch.Upper)))
		}
	}
	return out, nil
}

func successOf(v *view) Figure {
	if len(v.rows) == 0 {
		return unknown
	}
	return Figure(float64(v.d.count(v.rows, v.d.ok)) / float64(len(v.rows)))
}

// otherWork says that the arm did not do the work of the baseline.
func (f ArmFacts) otherWork() []string {
	var out []string
	for _, r := range []struct {
		what  string
		ratio Figure
	}{{"input", f.InputTokens}, {"output", f.OutputTokens}} {
		if r.ratio.Known() && math.Abs(float64(r.ratio)-1) > workloadLimit {
			out = append(out, fmt.Sprintf("%s: the workload changed: %s tokens are %.3g times the baseline's", f.Name, r.what, float64(r.ratio)))
		}
	}
	return out
}

// settle corrects the p values for the number of arms (Holm 1979) and gives each change its verdict.
func (c *Comparison) settle(floors map[floorKey]float64, arms int) {
	byKey := map[floorKey][]*Figure{}
	for i, ch := range c.Changes {
		k := floorKey{ch.By.json(), ch.Metric, ch.Percentile}
		if ch.P.Known() {
			byKey[k] = append(byKey[k], &c.Changes[i].P)
		}
		c.Changes[i].Floor = unknown
		if f, ok := floors[k]; ok {
			c.Changes[i].Floor = Figure(f)
		}
	}
	for _, list := range byKey {
		holm(list, arms)
	}
	for i := range c.Changes {
		c.Changes[i].Verdict = c.Changes[i].verdict(1 - c.Confidence)
	}
}

func (ch Change) verdict(alpha float64) string {
	switch {
	case !ch.Change.Known() || !ch.P.Known():
		return ChangeInsufficient
	case float64(ch.P) > alpha || ch.Lower <= 0 && ch.Upper >= 0:
		return ChangeSame
	case ch.Floor.Known() && math.Abs(float64(ch.Change)) <= float64(ch.Floor):
		return ChangeSame
	case ch.Change > 0:
		return ChangeRose
	}
	return ChangeFell
}

// Crossing is how the requests that break one limit of the gate differ between an arm and the baseline.
type Crossing struct {
	Arm     string `json:"arm"`
	Rule    string `json:"rule"`
	By      Tuple  `json:"by"`
	Limit   string `json:"limit"`
	N       int    `json:"n"`
	Base    int    `json:"base"`  // break it in the baseline
	Value   int    `json:"value"` // break it in the arm
	Only    [2]int `json:"only"`  // break it in the baseline alone, in the arm alone
	P       Figure `json:"p"`     // McNemar's exact test on the effective number of these, two-sided
	Verdict string `json:"verdict"`
}

// crossings tests the violations of each latency limit on the same requests (McNemar 1947, exact form). Requests near each
// other break limits together, so the numbers are divided by their autocorrelation time.
func (p *paired) crossings(arm string, o CompareOptions) []Crossing {
	g := o.Gate
	var out []Crossing
	for _, rule := range g.Rules {
		if rule.kind != percentileRule || rule.metric == outputTokens || rule.metric == lag {
			continue
		}
		m := g.of(rule)
		if o.sent {
			m = m.fromSent()
		}
		in := p.base.matcher(rule.By)
		c := Crossing{Arm: arm, Rule: rule.Name, By: rule.By, Limit: rule.Limit.Text, P: unknown, Verdict: ChangeInsufficient}
		var apart stats.Bits
		for k := range p.rows {
			i, j := p.rows[k][0], p.rows[k][1]
			if !in(i) {
				continue
			}
			before := !p.base.ok(i) || p.base.breaks(rule, m, i)
			after := !p.other.ok(j) || p.other.breaks(rule, m, j)
			c.N++
			if before {
				c.Base++
			}
			if after {
				c.Value++
			}
			switch {
			case before && !after:
				c.Only[0]++
			case after && !before:
				c.Only[1]++
			}
			apart.Append(before != after)
		}
		if c.N > 0 {
			tau := apart.Tau()
			c.P = Figure(stats.McNemar(float64(c.Only[0])/tau, float64(c.Only[1])/tau))
			c.Verdict = ChangeSame
			if float64(c.P) < 1-o.Confidence {
				c.Verdict = ChangeRose
				if c.Only[1] < c.Only[0] {
					c.Verdict = ChangeFell
				}
			}
		}
		out = append(out, c)
	}
	return out
}
