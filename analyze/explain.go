package analyze

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tailgate/internal/fault"
)

// ExplainOptions say what is explained, beside the buckets, gate and warm-up of the analysis.
type ExplainOptions struct {
	// Limits stand in for a gate: latency rules of the whole run. Without either, the violations of a bucket are its
	// requests beyond its own p99 of ttft and e2e.
	Limits []Rule
	// Expected tells how many leading tokens of a row's prompt an endless cache would hold when it comes, from the
	// trace; false = not known. Null: the turn before stands in, where a session has one.
	Expected   func(row int64) (tokens int32, ok bool)
	Confidence float64 // of each interval, two-sided; 0 = 0.95
	Resamples  int     // of the bootstrap; 0 = 1000
	Seed       uint64
}

// Explanation says what the violating requests of each bucket have in common that others lack. Its fields are its JSON.
type Explanation struct {
	Confidence float64     `json:"confidence"`
	Inferred   []string    `json:"inferred"`  // parts of latencies that nothing told, and how they were worked out
	Unchecked  []string    `json:"unchecked"` // causes that were not looked for, and why
	Buckets    []Explained `json:"buckets"`   // the whole run first
}

// Verdicts of an Explained.
const (
	ExplainNamed   = "named"
	ExplainNothing = "nothing_stands_out"
	ExplainTooFew  = "too_few" // violations to tell
)

// Explained is what was found in one bucket.
type Explained struct {
	By         Tuple        `json:"by"`
	Limits     []string     `json:"limits"`     // that its violations break, such as "ttft_p99 <= 800ms"
	Requests   int          `json:"requests"`   // that count in tails and were sent
	Violations int          `json:"violations"` // requests over a limit, failed ones included
	Failed     int          `json:"failed"`     // of the violations
	Verdict    string       `json:"verdict"`
	Phases     []PhaseShare `json:"phases"`
	Causes     []Cause      `json:"causes"` // named ones first, in order of rank
	Sentences  []string     `json:"sentences"`
}

// PhaseShare is the share of violations whose latency exceeds the usual by most in this phase.
type PhaseShare struct {
	Phase string `json:"phase"` // client_lag, server_queue, prefill, transport, decode, reasoning, failed, none
	Share Figure `json:"share"`
	Lower Figure `json:"lower"`
	Upper Figure `json:"upper"`
}

// Cause is a condition that was looked for, and how much of the violations it accounts for.
type Cause struct {
	Cause  string `json:"cause"`  // a Cause… constant
	Target string `json:"target"` // that it is about; "" = all
	// Share is the share of violations that would not be there if requests with the condition violated as rarely as
	// those without it.
	Share  Figure `json:"share"`
	Lower  Figure `json:"lower"`
	Upper  Figure `json:"upper"`
	With   Figure `json:"with_condition"`  // share of violations with the condition
	Others Figure `json:"others_with"`     // share of the other requests with it
	Lift   Figure `json:"lift"`            // how many times as often requests with it violate
	Phase  string `json:"phase,omitempty"` // where most violations with it exceed the usual
	Named  bool   `json:"named"`
	Text   string `json:"text"` // the condition in words
}

// Causes, from the outside in: of several that account for nearly the same violations, the first is named first.
const (
	CauseClientLag     = "client_lag"
	CauseBurst         = "arrival_burst"
	CauseLongPrompts   = "long_prompts"
	CauseOutage        = "outage"
	CauseFailingTarget = "failing_target"
	CauseSlowTarget    = "slow_target"
	CauseSlowServer    = "slow_server"
	CauseErrors        = "errors"
	CauseReasoning     = "reasoning"
	CauseChunks        = "chunked_answers"
	CauseOwnWork       = "own_work"
	CauseCacheMisses   = "cache_misses"
	CausePreemptions   = "preemptions"
	CauseKVFull        = "kv_full"
	CauseServerQueue   = "server_queue"
)

// LoadExplained is Load with the columns that an explanation needs beside the others.
func LoadExplained(ctx context.Context, paths []string) (*Data, error) {
	return newDataOf(true).loadAll(ctx, paths)
}

// leastViolations is how many a bucket needs for anything to be said of them.
const leastViolations = 10

// Explain splits the latency of each violating request into client lag, server queue, prefill and decoding, joins it with
// what ran beside it in time, and ranks the conditions by the share of violations that they account for against the
// requests that violate nothing (the attributable fraction in the population, Levin 1953), with intervals by a bootstrap
// of blocks of time (Künsch 1989). Faulty options are a fault of kind Usage.
func Explain(ctx context.Context, d *Data, o Options, e ExplainOptions) (*Explanation, error) {
	if err := errors.Join(o.Validate(), e.validate()); err != nil {
		return nil, err
	}
	if e.Confidence == 0 {
		e.Confidence = .95
	}
	if e.Resamples == 0 {
		e.Resamples = 1000
	}
	v := o.view(d)
	out := &Explanation{Confidence: e.Confidence, Inferred: []string{}, Unchecked: []string{}}
	x := &explainer{v: v, gate: o.Gate, o: e}
	x.limits()
	x.firstLimit = x.tightest(firstFamily)
	if err := x.stage(ctx, out); err != nil {
		return nil, err
	}
	cells := []cell{{rows: v.rows}}
	for _, by := range o.By {
		by, err := v.sliced(by)
		if err != nil {
			return nil, err
		}
		cells = append(cells, d.cut(by, v.rows)...)
	}
	cells = append(cells, x.gateCells(cells)...)
	for _, c := range cells {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out.Buckets = append(out.Buckets, x.explain(c))
	}
	return out, nil
}

// LatencyRule is a limit on the p99 of a latency for the whole run, such as "ttft" and "800ms".
func LatencyRule(metric, limit string) (Rule, error) {
	r, err := parseRuleName(metric + "_p99")
	if err == nil && (r.kind != percentileRule || familyOf(r.metric) == noFamily) {
		err = fmt.Errorf("%s is no latency of a request", metric)
	}
	if err == nil {
		r.Limit, err = parseLimit(r.quantity(), limit)
	}
	return r, fault.Mark(err, fault.Usage, "")
}

func (e ExplainOptions) validate() error {
	var errs []error
	errs = append(errs, checkResampling(e.Confidence, e.Resamples))
	for _, r := range e.Limits {
		if r.kind != percentileRule || familyOf(r.metric) == noFamily {
			errs = append(errs, fmt.Errorf("%s is no limit on a latency", r.Name))
		}
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// family tells which part of a request's life a limit is about: up to its first token, or to its last.
type family int8

const (
	noFamily    family = iota // no latency of a request
	firstFamily               // ttft, ttfo
	wholeFamily               // e2e, tpot, itl, inter_chunk
	families
)

func familyOf(m metric) family {
	switch m {
	case ttft, ttftSent, ttfo, ttfoSent:
		return firstFamily
	case e2e, e2eSent, tpot, itl, interChunk:
		return wholeFamily
	}
	return noFamily
}

// explainer holds what is the same for all buckets.
type explainer struct {
	v     *view
	gate  *Gate
	o     ExplainOptions
	rules []limitRule // of the gate or of the options; empty = each bucket's own p99

	firstLimit float64 // µs, the tightest for a first token; 0 without one

	scenes   []*scene
	acts     []act   // of all scenes, each in order of the schedule
	of       []int32 // act of each row
	suspects []*suspect
}

// limitRule is a rule with the metric that it is about under the gate's origin.
type limitRule struct {
	Rule
	m  metric
	in func(i int32) bool
}

// limits collects the latency rules.
func (x *explainer) limits() {
	rules := x.o.Limits
	if len(rules) == 0 && x.gate != nil {
		rules = x.gate.Rules
	}
	for _, r := range rules {
		if r.kind != percentileRule || familyOf(r.metric) == noFamily {
			continue
		}
		m := r.metric
		if x.gate != nil {
			m = x.gate.of(r)
		}
		x.rules = append(x.rules, limitRule{r, m, x.v.d.matcher(r.By)})
	}
}

// gateCells are the buckets that the gate names and nobody asked for.
func (x *explainer) gateCells(have []cell) []cell {
	seen := map[string]bool{}
	for _, c := range have {
		seen[c.by.json()] = true
	}
	var out []cell
	for _, r := range x.rules {
		if key := r.By.json(); !seen[key] {
			seen[key] = true
			out = append(out, cell{r.By, x.v.d.matching(r.By, x.v.rows)})
		}
	}
	return out
}

// rulesOf are the limits that hold in a bucket. Without any given, they are the bucket's own p99 of ttft and e2e, those of
// successful requests where failures reach the percentile.
func (x *explainer) rulesOf(c cell) []limitRule {
	if len(x.rules) > 0 {
		return x.rules
	}
	var out []limitRule
	for _, m := range []metricName{{ttft, "", "ttft"}, {e2e, "", "e2e"}} {
		q := x.v.d.metric(c, m.metric, m.label)
		limit := q.Tail.P99
		if math.IsInf(float64(limit), 1) {
			limit = q.P99
		}
		if q.N < leastViolations || !limit.Known() {
			continue
		}
		l := Limit{Op: "<=", Value: float64(limit) * m.metric.scale(), Text: "<= " + short(limit) + "ms"}
		out = append(out, limitRule{Rule{Name: m.label + "_p99", Limit: l, kind: percentileRule, metric: m.metric, p: .99}, m.metric,
			func(int32) bool { return true }})
	}
	return out
}

// broken is the family of the first limit that a row breaks: noFamily = none. A failed request breaks every limit.
func (x *explainer) broken(rules []limitRule, i int32) family {
	out := noFamily
	for _, r := range rules {
		if f := familyOf(r.m); r.in(i) && (out == noFamily || f < out) && (!x.v.d.ok(i) || x.v.d.breaks(r.Rule, r.m, i)) {
			out = f
		}
	}
	return out
}
