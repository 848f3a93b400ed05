package analyze

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// ShareRule is a rule of a gate that allows a share of requests to break its limit: 1 % for a p99 rule, 0.1 % for a
// success rate of 99.9 %.
type ShareRule struct {
	Name    string // as written, with its bucket behind it where it has one
	Allowed float64
	// Minutes is the measured length that a final verdict on a percentile asks for; 0 for other rules.
	Minutes float64

	rule Rule
}

// ShareRules are the rules of the gate that a search for a rate can count violations of. The others (queue growth,
// depth, output rate, a success rate of 100 %) judge whole runs only.
func (g *Gate) ShareRules() []ShareRule {
	var out []ShareRule
	for _, r := range g.Rules {
		s := ShareRule{Name: r.Name, rule: r}
		if len(r.By) > 0 {
			s.Name += " " + r.By.String()
		}
		switch r.kind {
		case percentileRule:
			s.Allowed, s.Minutes = round9(1-r.p), lengthsFor(r.p).final
		case successRule:
			s.Allowed = round9(1 - r.Limit.Value)
		}
		if s.Allowed > 0 {
			out = append(out, s)
		}
	}
	return out
}

// BlockCount is what one block of a run says about one rule: the requests that were due in it, and how many of them
// broke the limit, failed ones included. For gaps between tokens Violations is the share of gaps over the limit
// times N. Requests that do not tell the metric are in neither.
type BlockCount struct {
	N          int
	Violations float64
}

// CountBlocks counts, for each rule, in equal parts of the measured schedule of one run. class restricts rules that
// hold for the whole run to one workload class; "" = all rows. A rule that the rows cannot be judged by is a fault.
func CountBlocks(ctx context.Context, d *Data, g *Gate, rules []ShareRule, class string, blocks int) ([][]BlockCount, error) {
	v := newView(d, g.Warmup, false)
	if len(v.periods) != 1 {
		return nil, fault.Mark(fmt.Errorf("counting violations: the rows are of %d runs, one is needed", len(v.periods)), fault.Data, "")
	}
	p := v.periods[0]
	parts := make([][]int32, blocks)
	for _, i := range d.tails(v.rows) {
		at := d.scheduled.at(i)
		if at >= p.start && at < p.until || at == p.start {
			j := min(int((at-p.start)*int64(blocks)/max(1, p.until-p.start)), blocks-1)
			parts[j] = append(parts[j], i)
		}
	}
	out := make([][]BlockCount, len(rules))
	var lacks []string
	for k, r := range rules {
		by := r.rule.By
		if class != "" && len(by) == 0 {
			by = Tuple{{Key: "class", Text: &class}}
		}
		told := false
		lack := ""
		for _, rows := range parts {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			c, why := d.countRule(g, r.rule, d.matching(by, rows))
			out[k] = append(out[k], c)
			told = told || c.N > 0
			if why != "" {
				lack = why
			}
		}
		if !told {
			lacks = append(lacks, fmt.Sprintf("%s: %s", r.Name, lack))
		}
	}
	if len(lacks) > 0 {
		return nil, fault.Mark(fmt.Errorf("counting violations: %s", strings.Join(lacks, "; ")), fault.Data, "")
	}
	return out, nil
}

// countRule counts one rule over rows; where they do not tell the metric it says why.
func (d *Data) countRule(g *Gate, r Rule, rows []int32) (c BlockCount, why string) {
	if r.kind == successRule {
		c.N = len(rows)
		for _, i := range rows {
			if !d.ok(i) {
				c.Violations++
			}
		}
		return c, "no requests"
	}
	e := d.evidence(rows, g.of(r))
	if e.lacks != "" {
		return c, e.lacks
	}
	count, _ := e.over(r.Limit)
	if s, pooled := e.sample.(*gapSample); pooled {
		c.N = len(s.rows)
		c.Violations = float64(count) / float64(e.size()) * float64(c.N)
		return c, ""
	}
	return BlockCount{N: e.size(), Violations: float64(count)}, ""
}

// Steady is what a run kept up between its warm-up and the last send: what a closed loop can be read from, without
// the time in which its last requests run out.
type Steady struct {
	Seconds          float64
	Completed        int     // ok
	RequestsPerS     float64 // completed
	OutputTokensPerS float64 // of the completed
	Inflight         float64 // mean
	MeanE2EMs        float64 // of the completed, from the schedule
}

// SteadyOf measures one run.
func SteadyOf(d *Data) (Steady, error) {
	v := newView(d, 0, false)
	if len(v.periods) != 1 {
		return Steady{}, fault.Mark(fmt.Errorf("measuring the steady part: the rows are of %d runs, one is needed", len(v.periods)), fault.Data, "")
	}
	p := v.periods[0]
	from, to := p.start, p.last
	s := Steady{Seconds: float64(to-from) / 1e6}
	if to <= from {
		return s, nil
	}
	tokens, sum := int64(0), 0.0
	for i := range int32(d.n) {
		if done := d.done(i); d.ok(i) && done != noTime && done >= from && done <= to {
			s.Completed++
			tokens += int64(max(0, d.outputTokens.at(i)))
			sum += float64(done - d.scheduled.at(i))
		}
	}
	for _, x := range v.inflight(p) {
		s.Inflight += float64(max(0, min(x.to, to)-max(x.from, from))) / float64(to-from)
	}
	s.RequestsPerS = float64(s.Completed) / s.Seconds
	s.OutputTokensPerS = float64(tokens) / s.Seconds
	if s.Completed > 0 {
		s.MeanE2EMs = sum / float64(s.Completed) / 1e3
	}
	return s, nil
}

// OneInputLength tells that all prompts of d are of one length, which no traffic is.
func (d *Data) OneInputLength() bool {
	if d.n == 0 {
		return false
	}
	first := d.length(0)
	for i := range int32(d.n) {
		if d.length(i) != first {
			return false
		}
	}
	return first != noCount
}

// How a target that has died looks: nothing but failures among the last requests, so many of them, over such a time
// or of such a share of the run. A closed loop burns its rows at once on a dead target.
const (
	deadRows  = 20
	deadUs    = 20_000_000
	deadShare = .05
)

// EndsDead tells that the target answered nothing at the end of a run: it died, or was taken away, and its failures say
// nothing about the rate. Timeouts and refusals for overload are no such failures.
func (d *Data) EndsDead() bool {
	v := newView(d, 0, true)
	failed, since := 0, int64(0)
	for _, i := range slices.Backward(v.rows) {
		code := d.status.at(i)
		if code == statusNotSent {
			continue
		}
		word := d.status.dict.Words[code]
		if word != schemas.ResultReset && word != schemas.ResultHTTPError || d.first.at(i) != noTime {
			break
		}
		failed++
		since = d.scheduled.at(i)
	}
	if failed < deadRows {
		return false
	}
	last := d.scheduled.at(v.rows[len(v.rows)-1])
	return last-since >= deadUs || float64(failed) >= deadShare*float64(len(v.rows))
}

// InputLengths are the input lengths of the measured rows of a class ("" = all), in tokens; rows without one are left
// out.
func (d *Data) InputLengths(class string) []float64 {
	v := newView(d, 0, false)
	rows := v.rows
	if class != "" {
		rows = d.matching(Tuple{{Key: "class", Text: &class}}, rows)
	}
	out := make([]float64, 0, len(rows))
	for _, i := range rows {
		if n := d.length(i); n != noCount {
			out = append(out, float64(n))
		}
	}
	return out
}
