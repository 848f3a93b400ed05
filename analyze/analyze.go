package analyze

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// Options of an analysis. The zero value describes the whole run and judges nothing.
type Options struct {
	By   []By  // ways to cut the rows in buckets; each gives its own
	Gate *Gate // null = no verdict
	// Warmup, when set, replaces the warm-up that the runs marked and the one of the gate: rows scheduled
	// earlier than this after the start are left out. 0 judges every row. Null keeps both.
	Warmup *time.Duration
	// Histograms makes Tables hold a histogram for each bucket and metric, which can be merged over runs.
	Histograms bool
}

// Validate reports every fault of the options.
func (o Options) Validate() error {
	var errs []error
	if o.Warmup != nil && *o.Warmup < 0 {
		errs = append(errs, fmt.Errorf("warmup must be >= 0, not %v", *o.Warmup))
	}
	seen := map[string]bool{}
	for _, by := range o.By {
		if _, err := ParseBy(by.String()); err != nil {
			errs = append(errs, err)
		}
		if seen[by.String()] {
			errs = append(errs, fmt.Errorf("by %s stands twice", by))
		}
		seen[by.String()] = true
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Analyze describes d and, with a gate, judges it. d is not changed, and the report keeps it for WriteHTML.
func Analyze(ctx context.Context, d *Data, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	v := o.view(d)
	r := newReport(v)
	cells := []cell{{rows: v.rows}}
	for _, by := range o.By {
		by, err := v.sliced(by)
		if err != nil {
			return nil, err
		}
		cells = append(cells, d.cut(by, v.rows)...)
	}
	var good func(int32) bool
	if o.Gate != nil {
		good = v.good(o.Gate)
	}
	if err := r.describe(ctx, cells, good); err != nil {
		return nil, err
	}
	if o.Histograms {
		if err := r.histograms(ctx, cells); err != nil {
			return nil, err
		}
	}
	whole := r.Buckets[0]
	r.Scheduled, r.OK, r.SuccessRate = whole.Scheduled, whole.OK, whole.SuccessRate
	r.ExcludedNonStream, r.EarlyStopShare = whole.ExcludedNonStream, whole.EarlyStopShare
	r.Attainment, r.Throughput = whole.Attainment, whole.Throughput
	r.Workload = d.workload(v.rows)
	r.Unchecked = append(r.Unchecked, d.unknownLengths(v.rows, r.OK)...)
	r.Rates, r.Servers = v.rates(o.Gate), v.servers()
	reasons, judged := v.validity(o.Gate.TTFTLimit())
	r.Invalid = append(r.Invalid, reasons...)
	if judged {
		valid := len(reasons) == 0
		r.Valid = &valid
	}
	if o.Gate != nil {
		return r, r.judge(ctx, o.Gate)
	}
	return r, nil
}

func (o Options) view(d *Data) *view {
	switch {
	case o.Warmup != nil:
		return newView(d, *o.Warmup, true)
	case o.Gate != nil:
		return newView(d, o.Gate.Warmup, false)
	}
	return newView(d, 0, false)
}

func newReport(v *view) *Report {
	r := &Report{
		Definition: schemas.Definition, Invalid: []string{}, Unchecked: append([]string{}, v.d.Unchecked...),
		Errors: map[string]int{}, WarmupRows: v.warm, MeasuredMinutes: Figure(v.minutes()), view: v,
		Warmup: v.warmup(), Recoveries: v.recoveries(),
	}
	for _, in := range v.d.Inputs {
		ref := RunRef{Rows: in.Rows}
		if in.runID != "" {
			ref.RunID = &in.runID
		}
		if m := in.Manifest; m != nil {
			ref.RunID, ref.StartedAt, ref.Clock, ref.Labels = &m.RunID, &m.StartedAt, &m.Clock, m.Labels
		}
		r.Runs = append(r.Runs, ref)
	}
	r.DrainRows = len(v.rows) - len(v.d.tails(v.rows))
	for _, i := range v.rows {
		switch code := v.d.status.at(i); code {
		case statusOK:
		case statusNotSent:
			r.NotSent++
		default:
			r.Errors[v.d.status.dict.Words[code]]++
		}
	}
	return r
}

// describe fills in the buckets, metrics side by side; good is null without a gate.
func (r *Report) describe(ctx context.Context, cells []cell, good func(int32) bool) error {
	v := r.view
	r.Buckets = make([]Bucket, len(cells))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range cells {
		filled := make(Metrics, len(metrics))
		for j, m := range metrics {
			g.Go(func() error {
				filled[j] = v.d.metric(c, m.metric, m.json)
				filled[j].OverRuns = v.overRuns(c.rows, m)
				return ctx.Err()
			})
		}
		g.Go(func() error {
			r.Buckets[i] = v.tally(c, good)
			r.Buckets[i].Metrics = filled
			return ctx.Err()
		})
	}
	return g.Wait()
}

// histograms fills in the histogram of every metric of every bucket.
func (r *Report) histograms(ctx context.Context, cells []cell) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range cells {
		for j, m := range metrics {
			g.Go(func() error {
				var err error
				if r.Buckets[i].Metrics[j].hist, err = r.view.d.histogram(c.rows, m.metric); err != nil {
					return err
				}
				return ctx.Err()
			})
		}
	}
	return g.Wait()
}

// judge judges every rule, and the gate by the worst of them: invalid > fail > inconclusive > pass.
func (r *Report) judge(ctx context.Context, g *Gate) error {
	r.Gate = &GateReport{Verdict: schemas.VerdictPass, Confidence: fmt.Sprint(g.Confidence), Origin: g.Origin()}
	if g.Point {
		r.Gate.Confidence = "point"
	}
	r.gate = g
	samples := map[sampleKey]evidence{}
	for _, rule := range g.Rules {
		if err := ctx.Err(); err != nil {
			return err
		}
		rr := RuleReport{Rule: rule.Name, By: rule.By, Limit: rule.Limit.Text, Observed: unknown, Lower: unknown,
			Upper: unknown, NEff: unknown, ViolationShare: unknown, ViolationUpper: unknown, AllowedShare: unknown,
			NeedsMinutes: unknown}
		r.judgeRule(g, rule, samples, &rr)
		if len(r.Invalid) > 0 {
			rr.Verdict, rr.Provisional = schemas.VerdictInvalid, false
			rr.Reason, rr.NeedsMinutes = "the run is invalid: "+r.Invalid[0], unknown
		}
		r.Gate.Rules = append(r.Gate.Rules, rr)
		r.Gate.Provisional = r.Gate.Provisional || rr.Provisional
	}
	r.Gate.Verdict = worstOf(r.Gate.Rules)
	return r.settleWarmup(ctx, g)
}

var severity = map[string]int{schemas.VerdictPass: 0, schemas.VerdictInconclusive: 1, schemas.VerdictFail: 2, schemas.VerdictInvalid: 3}

// sampleKey finds the sample that rules on one metric of one bucket share.
type sampleKey struct {
	by string
	m  metric
}

func (r *Report) judgeRule(g *Gate, rule Rule, samples map[sampleKey]evidence, rr *RuleReport) {
	v := r.view
	m := g.of(rule)
	j := judge{gate: g, rule: rule, minutes: v.minutes(), scale: m.scale()}
	switch rule.kind {
	case growthRule:
		v.judgeGrowth(rr)
		return
	case depthRule:
		v.judgeDepth(rr, rule.Limit)
		return
	}
	rows := v.d.matching(rule.By, v.rows)
	switch rule.kind {
	case successRule:
		var failed stats.Bits
		for _, i := range rows {
			failed.Append(!v.d.ok(i))
		}
		j.success(rr, failed)
	case outputRateRule:
		v.judgeOutputRate(rr, rule.Limit, rows)
	default:
		k := sampleKey{rule.By.json(), m}
		e, ok := samples[k]
		if !ok {
			e = v.d.evidence(rows, m)
			samples[k] = e
		}
		j.s = e.sample
		rr.AllowedShare = Figure(round9(1 - rule.p))
		if rr.N = e.size(); e.lacks != "" {
			inconclusive(rr, e.lacks)
			return
		}
		j.percentile(rr)
		if rows, ok := e.sample.(*rowSample); ok && !g.Point {
			rr.CrossChecks = rows.crossCheck(rule.Limit, j.minutes, g.Confidence)
		}
	}
}

// judgeOutputRate compares output tokens per second of the window with the limit; it has no bound.
func (v *view) judgeOutputRate(r *RuleReport, l Limit, rows []int32) {
	out, told := v.d.outputSum(rows)
	window := v.window()
	r.N = told
	if told == 0 || window == 0 {
		inconclusive(r, "insufficient: no output tokens are told")
		return
	}
	r.Observed = Figure(float64(out) / window)
	r.Verdict, r.Reason = schemas.VerdictPass, "the mean of the run, without its uncertainty"
	if l.breaks(float64(r.Observed)) {
		r.Verdict = schemas.VerdictFail
	}
}
