package analyze

import (
	"fmt"
	"iter"
	"math"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// FailFast tells during a run that a rule of the gate is broken for good: so many requests break its limit that
// it would be broken if all others of the schedule kept it. It looks at success_rate and percentile rules; a
// rule on gaps counts the output tokens that the plan asks for, and is left alone where some are unknown, as are rules
// of buckets by target and by session size. It is not safe for concurrent use.
type FailFast struct {
	gate  *Gate
	rules []doom
	row   *Data // of one row
}

// doom counts towards the point of no return of one rule.
type doom struct {
	rule    Rule
	metric  metric
	in      func(i int32) bool
	allowed int64 // breaches that leave the rule in reach
	seen    int64
}

// NewFailFast plans for the rows that a run will send; warm-up and cool-down are those of the results' phases.
func NewFailFast(g *Gate, rows iter.Seq[*schemas.TraceRow], phase func(*schemas.TraceRow) string) *FailFast {
	plan := newData()
	var counted []int32
	tails := map[int32]bool{}
	for r := range rows {
		i := plan.n
		plan.appendPlanned(r)
		p := phase(r)
		if p == schemas.PhaseWarmup || r.ScheduledUs < g.Warmup.Microseconds() {
			continue
		}
		counted = append(counted, int32(i))
		tails[int32(i)] = p != schemas.PhaseDrain
	}
	f := &FailFast{gate: g, row: newData()}
	for _, rule := range g.Rules {
		d := doom{rule: rule, metric: g.of(rule)}
		if rule.kind != percentileRule && rule.kind != successRule || d.metric == outputTokens || !plannable(rule.By) {
			continue
		}
		n, ok := int64(0), true
		for _, i := range plan.matching(rule.By, counted) {
			switch {
			case rule.kind == successRule:
				n++
			case !tails[i]:
			case !d.metric.pooled():
				n++
			case plan.outputLength.at(i) == noCount:
				ok = false
			default:
				n += int64(plan.outputLength.at(i))
			}
		}
		d.allowed = n - int64(stats.Rank(int(n), rule.p))
		if rule.kind == successRule {
			d.allowed = int64(math.Floor(round9(1-rule.Limit.Value) * float64(n)))
		}
		if ok && n > 0 {
			d.in = f.row.matcher(rule.By)
			f.rules = append(f.rules, d)
		}
	}
	return f
}

// plannable tells whether a plan's rows say which bucket they are in.
func plannable(by Tuple) bool {
	for _, v := range by {
		if v.Key == "target" || v.Key == "bucket" || v.Key == "session_size" {
			return false
		}
	}
	return true
}

// Add takes one result and names the rule that is broken for good; "" = none yet.
func (f *FailFast) Add(r *schemas.Result) string {
	if r.Phase == schemas.PhaseWarmup || r.ScheduledUs < f.gate.Warmup.Microseconds() || r.Status == schemas.ResultNotSent {
		return ""
	}
	f.row.setRow(r)
	for k := range f.rules {
		d := &f.rules[k]
		if !d.in(0) {
			continue
		}
		d.seen += f.breaches(d, r)
		if d.seen > d.allowed {
			return fmt.Sprintf("%s of %s %s: %d breaches, %d would leave it in reach", d.rule.Name, d.rule.By, d.rule.Limit.Text, d.seen, d.allowed)
		}
	}
	return ""
}

// breaches counts what the row adds to the wrong side of a rule.
func (f *FailFast) breaches(d *doom, r *schemas.Result) int64 {
	failed := r.Status != schemas.ResultOK
	switch {
	case d.rule.kind == successRule || r.Phase == schemas.PhaseDrain:
		if failed && d.rule.kind == successRule {
			return 1
		}
		return 0
	case failed && d.metric.pooled():
		if r.OutputLength == nil {
			return 0
		}
		return int64(*r.OutputLength)
	case failed:
		return 1
	case !d.metric.pooled():
		if x := f.row.value(d.metric, 0); !math.IsNaN(x) && d.rule.Limit.breaks(x) {
			return 1
		}
		return 0
	}
	n := int64(0)
	for _, g := range f.row.gapsOf(d.metric, 0) {
		if d.rule.Limit.breaks(float64(g)) {
			n++
		}
	}
	return n
}

// appendPlanned appends what a row of the plan tells.
func (d *Data) appendPlanned(r *schemas.TraceRow) {
	d.n++
	d.inputLength.append(r.InputTokens, 0)
	d.outputLength.append(orNoCount(r.OutputTokens), 0)
	for _, l := range [...]struct {
		to   *words
		text *string
	}{{&d.tenant, r.Tenant}, {&d.class, r.Class}, {&d.model, r.Model}} {
		l.to.append(l.to.code(l.text), 0)
	}
}

// setRow makes r the only row. The codes of labels stay; sessions, which may be many, are left out.
func (d *Data) setRow(r *schemas.Result) {
	for _, c := range d.times() {
		c.empty()
	}
	for _, c := range d.counts() {
		c.empty()
	}
	for _, w := range d.labels() {
		w.empty()
	}
	d.row.empty()
	d.gapCount.empty()
	for _, c := range []*column[bool]{&d.streamed, &d.tokenGaps, &d.warm, &d.drain} {
		c.empty()
	}
	d.gaps = d.gaps[:0]
	one := *r
	one.Session = nil
	d.appendResult(&one)
	d.n = 1
	d.ends.empty()
	d.ends.append(int64(len(r.ITLUs)), 1)
}

// empty takes all values out.
func (c *column[T]) empty() { c.v, c.n = c.v[:0], 0 }

// code is the code of a label, new ones are learned.
func (w *words) code(text *string) int32 {
	if text == nil || *text == "" {
		return noWord
	}
	return w.dict.Code([]byte(*text))
}
