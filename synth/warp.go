package synth

import (
	"fmt"
	"math"
	"slices"

	"tailgate/schemas"
	"tailgate/trace"
)

// scaled divides a stamp by f, to the nearest microsecond.
func scaled(us int64, f float64) int64 { return int64(math.Round(float64(us) / f)) }

// warp divides every stamp by f. One stamp gives one stamp, so equal instants stay equal and the order stays.
func warp(t *trace.Trace, f float64, m *measure) *Result {
	out := &trace.Trace{Rows: slices.Clone(t.Rows), Meta: warpedMeta(t.Meta, t.LengthUs(), f), Notes: slices.Clone(t.Notes)}
	for i := range out.Rows {
		r := &out.Rows[i]
		r.ScheduledUs = scaled(r.ScheduledUs, f)
		r.SourceRow, r.Copy = int64(i), 0
		m.see(r, int64(i), 0)
	}
	return &Result{Trace: out, Notes: m.warpNotes()}
}

func warpedMeta(meta trace.Meta, lengthUs int64, f float64) trace.Meta {
	meta.LengthUs = scaled(lengthUs, f)
	meta.LeadInUs = scaled(meta.LeadInUs, f)
	if meta.QuantumUs > 0 {
		meta.QuantumUs = max(scaled(meta.QuantumUs, f), 1)
	}
	return meta
}

func (m *measure) warpNotes() []string {
	verb, f := "compressed", m.scale
	if f < 1 {
		verb, f = "stretched", 1/f
	}
	notes := []string{fmt.Sprintf("time %s by %.4g: think times, the day and every overload last %.4g of their time", verb, f, 1/m.scale)}
	if v := m.overlaps(); len(v) > 0 {
		notes = append(notes, fmt.Sprintf("%.0f of %d later turns fall due before their parent ends, %.0f did in the source (taking %s)",
			v[0].After, m.turns(), v[0].Before, nominal))
	}
	return notes
}

// A trace does not tell how long answers take. Turns that come before the end of their parent are counted at the
// pace of an engine that is neither fast nor overloaded.
const (
	nominalUsPerOutput  = 20_000 // 50 tokens a second for a reader
	nominalInputsPerSec = 8_000
	nominal             = "20 ms for each output token and 8,000 input tokens a second"
)

// endsUs is when a request sent at us would end.
func (f *facts) endsUs(i int32, us int64) int64 {
	return us + int64(f.in[i])*1_000_000/nominalInputsPerSec + int64(max(f.out[i], 0))*nominalUsPerOutput
}

// eachTurn visits every later turn and the row that it follows: the parent where the trace tells one, else the
// row of the session before it.
func (f *facts) eachTurn(visit func(i, parent int32)) {
	for j := range int32(f.sessions()) {
		rows := f.rows(j)
		for k, i := range rows {
			switch {
			case f.parent != nil && f.parent[i] >= 0:
				visit(i, f.parent[i])
			case f.parent == nil && k > 0:
				visit(i, rows[k-1])
			}
		}
	}
}

func (m *measure) turns() (n int) {
	m.f.eachTurn(func(int32, int32) { n++ })
	return n
}

// overlaps counts the turns that are due before the turn that they follow ends: no user could send them.
func (m *measure) overlaps() []schemas.Invariant {
	turns, before, after := 0, 0, 0
	m.f.eachTurn(func(i, parent int32) {
		turns++
		at, from := m.f.at[i], m.f.at[parent]
		if at < m.f.endsUs(parent, from) {
			before++
		}
		if scaled(at, m.scale) < m.f.endsUs(parent, scaled(from, m.scale)) {
			after++
		}
	})
	if turns == 0 {
		return nil
	}
	v := atMost("turns_before_parent_ends", float64(before), float64(after), float64(before))
	return []schemas.Invariant{reported(v, "reported only, at "+nominal)}
}
