package synth

import (
	"fmt"
	"math"
	"slices"

	"tailgate/trace"
)

// warp divides every stamp by f. One stamp gives one stamp, so equal instants stay equal and the order stays.
func warp(t *trace.Trace, f float64) *Result {
	out := &trace.Trace{Rows: slices.Clone(t.Rows), Meta: t.Meta, Notes: slices.Clone(t.Notes)}
	scale := func(us int64) int64 { return int64(math.Round(float64(us) / f)) }
	for i := range out.Rows {
		r := &out.Rows[i]
		r.ScheduledUs = scale(r.ScheduledUs)
		r.SourceRow, r.Copy = int64(i), 0
	}
	out.Meta.LengthUs = scale(t.LengthUs())
	out.Meta.LeadInUs = scale(t.Meta.LeadInUs)
	if t.Meta.QuantumUs > 0 {
		out.Meta.QuantumUs = max(scale(t.Meta.QuantumUs), 1)
	}
	note := fmt.Sprintf("time compressed by %v: think times, the day and every overload last 1/%v as long", f, f)
	return &Result{Trace: out, Notes: []string{note}}
}
