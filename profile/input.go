package profile

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"tailgate/schemas"
	"tailgate/trace"
)

// input is a trace with what every table needs of it.
type input struct {
	t           *trace.Trace
	sessionRows [][]int32
	resolution  int64 // µs; nothing is claimed below it
	failures    int64
	originUs    int64 // window_start on the schedule's clock
}

func newInput(t *trace.Trace) *input {
	in := &input{t: t, resolution: resolution(t), sessionRows: t.Sessions().Rows}
	for i := range t.Rows {
		if trace.Failed(&t.Rows[i]) {
			in.failures++
		}
	}
	return in
}

// resolution is the finest step of time that the stamps can tell, in µs: the quantum of a coarse clock that was
// not spread; else the finest of 1 s, 1 ms and 1 µs that the trace's unit and its stamps have in common.
func resolution(t *trace.Trace) int64 {
	if t.Meta.QuantumUs > 0 && !t.Meta.Spread {
		return t.Meta.QuantumUs
	}
	step := map[string]int64{"s": 1_000_000, "ms": 1_000}[t.Meta.Unit]
	if step == 0 || t.Meta.Spread {
		return 1
	}
	for i := range t.Rows {
		for step > 1 && t.Rows[i].ScheduledUs%step != 0 {
			step /= 1_000
		}
	}
	return step
}

// clockUs is the resolution that the source's clock had, also where the stamps were spread inside it.
func (in *input) clockUs() int64 { return max(in.resolution, in.t.Meta.QuantumUs) }

func (in *input) firstUs() int64 {
	if len(in.t.Rows) == 0 {
		return 0
	}
	return in.t.Rows[0].ScheduledUs
}

// model is the model of all rows, "*" for several, "" for none.
func (in *input) model() string {
	name := ""
	for i := range in.t.Rows {
		m := in.t.Rows[i].Model
		switch {
		case m == nil || *m == name:
		case name == "":
			name = *m
		default:
			return All
		}
	}
	return name
}

// group is the rows of one tenant × class, or all of them.
type group struct {
	tenant, class string
	rows          []int32   // indexes in arrival order; nil for the total
	sessions      [][]int32 // sessions whose first request is in the group, as their rows in order
	total         bool
}

func (in *input) groups(perGroup bool) []group {
	if len(in.t.Rows) == 0 {
		return nil
	}
	out := []group{{tenant: All, class: All, sessions: in.sessionRows, total: true}}
	if !perGroup {
		return out
	}
	index := map[[2]string]int{}
	of := func(row int32) *group {
		k := groupOf(&in.t.Rows[row])
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k] = i
			out = append(out, group{tenant: k[0], class: k[1]})
		}
		return &out[i]
	}
	for i := range in.t.Rows {
		g := of(int32(i))
		g.rows = append(g.rows, int32(i))
	}
	for _, rows := range in.sessionRows {
		g := of(rows[0])
		g.sessions = append(g.sessions, rows)
	}
	slices.SortFunc(out[1:], func(a, b group) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.class, b.class))
	})
	return out
}

// groupOf names the tenant and the class of a row; "" where the trace does not tell.
func groupOf(r *schemas.TraceRow) (k [2]string) {
	if r.Tenant != nil {
		k[0] = *r.Tenant
	}
	if r.Class != nil {
		k[1] = *r.Class
	}
	return k
}

// each yields the rows of g in arrival order.
func (in *input) each(g group) iter.Seq[*schemas.TraceRow] {
	return func(yield func(*schemas.TraceRow) bool) {
		if g.total {
			for i := range in.t.Rows {
				if !yield(&in.t.Rows[i]) {
					return
				}
			}
			return
		}
		for _, i := range g.rows {
			if !yield(&in.t.Rows[i]) {
				return
			}
		}
	}
}

// stamps returns the arrivals of g in µs, the first one at 0.
func (in *input) stamps(g group) []int64 {
	var out []int64
	for r := range in.each(g) {
		out = append(out, r.ScheduledUs)
	}
	first := out[0]
	for i := range out {
		out[i] -= first
	}
	return out
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
