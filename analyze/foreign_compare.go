package analyze

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/fault"
)

// sentMetrics stand for comparedMetrics where a run tells when it sent its requests and not when they were due.
var sentMetrics = []metricName{{ttftSent, "ttft_sent_ms", "ttft_sent"}, {tpot, "tpot_ms", "tpot"}, {e2eSent, "e2e_sent_ms", "e2e_sent"}}

// How far rows of one number may be apart in runs of other tools, which tell when they sent a request rather than when it
// was due, and the length of the prompt as their own tokenizer counts it.
const (
	apartUs      = 1_000_000
	apartLengths = .02
)

// planless tells whether rows of d tell no schedule.
func (d *Data) planless() bool {
	return slices.ContainsFunc(d.Inputs, func(in Input) bool { return in.unscheduled > 0 })
}

// foreign tells whether d holds results of another tool.
func (d *Data) foreign() bool {
	return slices.ContainsFunc(d.Inputs, func(in Input) bool { return in.tool != "" })
}

// fromSent takes latencies from the time of sending, in every run alike, when one of them tells no schedule.
func (o *CompareOptions) fromSent(c *Comparison, arms []Arm) {
	o.metrics = comparedMetrics
	if o.Again != nil {
		arms = append(slices.Clone(arms), Arm{"the second run of " + c.Baseline, o.Again})
	}
	for _, a := range arms {
		if a.Data.planless() {
			o.metrics, o.sent = sentMetrics, true
			c.Unchecked = append(c.Unchecked, fmt.Sprintf(
				"lateness of the client: %s tells no schedule, so the latencies of all runs count from the time of sending", a.Name))
		}
	}
	c.metrics = o.metrics
}

// movedRows counts the pairs that are not the same request: other stamps, or other lengths.
func (p *paired) movedRows() int {
	if !p.base.foreign() && !p.other.foreign() {
		return p.count(func(i, j int32) bool {
			return p.base.scheduled.at(i) != p.other.scheduled.at(j) || p.base.inputLength.at(i) != p.other.inputLength.at(j)
		})
	}
	shift := p.shift()
	return p.count(func(i, j int32) bool {
		by := p.other.scheduled.at(j) - p.base.scheduled.at(i) - shift
		a, b := p.base.inputLength.at(i), p.other.inputLength.at(j)
		other := a != noCount && b != noCount && math.Abs(float64(a-b)) > apartLengths*float64(max(a, b))
		return by > apartUs || by < -apartUs || other
	})
}

func (p *paired) count(is func(i, j int32) bool) (n int) {
	for _, r := range p.rows {
		if is(r[0], r[1]) {
			n++
		}
	}
	return n
}

// shift is the median of what the clock of other is ahead: each tool counts from a zero of its own.
func (p *paired) shift() int64 {
	if len(p.rows) == 0 {
		return 0
	}
	ahead := make([]int64, len(p.rows))
	for k, r := range p.rows {
		ahead[k] = p.other.scheduled.at(r[1]) - p.base.scheduled.at(r[0])
	}
	slices.Sort(ahead)
	return ahead[len(ahead)/2]
}

// notOneTrace is the fault of runs whose rows do not match.
func notOneTrace(err error, base, other *Data) error {
	hint := "a comparison needs runs of one trace at one scale, with one seed and open loop"
	if base.foreign() || other.foreign() {
		hint = "the tools must play one trace, whole, in its order and at its stamps: see docs/compare-tools.md"
	}
	return fault.Mark(err, fault.Usage, hint)
}
