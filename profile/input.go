package profile

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"tailgate/trace"
)

// input is a trace with what every table needs of it.
type input struct {
	*columns
	meta       trace.Meta
	sessions   sessions
	resolution int64 // µs; nothing is claimed below it
	failures   int64
	originUs   int64 // window_start on the schedule's clock

	groupBinUs int64 // narrowest bin of the groups' rate
	groupHours bool  // the groups' joint lengths are told by hour
}

func newInput(c *columns, meta trace.Meta) *input {
	in := &input{columns: c, meta: meta, resolution: resolution(c.at, meta)}
	for _, f := range c.flags {
		if f&rowFailed != 0 {
			in.failures++
		}
	}
	return in
}

// resolution is the finest step of time that the stamps can tell, in µs: the quantum of a coarse clock that was
// not spread; else the finest of 1 s, 1 ms and 1 µs that the trace's unit and its stamps have in common.
func resolution(stamps []int64, m trace.Meta) int64 {
	if m.QuantumUs > 0 && !m.Spread {
		return m.QuantumUs
	}
	step := map[string]int64{trace.UnitSeconds: 1_000_000, trace.UnitMillis: 1_000}[m.Unit]
	if step == 0 || m.Spread {
		return 1
	}
	for _, at := range stamps {
		for step > 1 && at%step != 0 {
			step /= 1_000
		}
		if step == 1 {
			break
		}
	}
	return step
}

// clockUs is the resolution that the source's clock had, also where the stamps were spread inside it.
func (in *input) clockUs() int64 { return max(in.resolution, in.meta.QuantumUs) }

func (in *input) firstUs() int64 {
	if in.len() == 0 {
		return 0
	}
	return in.at[0]
}

// lengthUs is the length of the schedule, see trace.Trace.LengthUs.
func (in *input) lengthUs() int64 {
	if in.len() == 0 {
		return in.meta.LengthUs
	}
	return max(in.meta.LengthUs, in.at[in.len()-1])
}

// group is the rows of one tenant × class, or all of them.
type group struct {
	tenant, class string
	rows          []int32 // in arrival order; nil for all of the input
	label         uint32  // place in labels.groups
	total         bool
}

// groups gives the total and, where they are wanted, the groups in the order of tenant and class.
func (in *input) groups(perGroup bool) []group {
	if in.len() == 0 {
		return nil
	}
	out := []group{{tenant: All, class: All, total: true}}
	if !perGroup {
		return out
	}
	n := len(in.labels.groups)
	rows := bucketed(n, in.len(), func(i int) uint32 { return in.group[i] })
	for g, p := range in.labels.groups {
		out = append(out, group{tenant: in.labels.tenants.words[p.tenant], class: in.labels.classes.words[p.class], rows: rows[g], label: uint32(g)})
	}
	slices.SortFunc(out[1:], func(a, b group) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.class, b.class))
	})
	return out
}

// maxFineRows is the number of rows up to which a table that grows with the time as well tells the groups in full:
// the rate by narrower bins than 600 s, the joint lengths by hour.
const maxFineRows = 1 << 20

// bound chooses how fine the groups are told. It is the same for all of them.
func (in *input) bound(groups []group) {
	rows := func(width int64) (n int64) {
		for _, g := range groups {
			if !g.total {
				n += min(int64(len(g.rows)), (in.lengthUs()-in.firstUs())/width+1)
			}
		}
		return n
	}
	in.groupHours = rows(1) <= maxFineRows
	sum := int64(0)
	for _, width := range slices.Backward(binsUs) {
		if sum += rows(width); sum > maxFineRows && in.groupBinUs > 0 {
			break
		}
		in.groupBinUs = width
	}
}

// bucketed puts 0 … n−1 into buckets, in order.
func bucketed(buckets, n int, of func(int) uint32) [][]int32 {
	size := make([]int, buckets+1)
	for i := range n {
		size[of(i)+1]++
	}
	for b := range buckets {
		size[b+1] += size[b]
	}
	all, out := make([]int32, n), make([][]int32, buckets)
	for b := range out {
		out[b] = all[size[b]:size[b]:size[b+1]]
	}
	for i := range n {
		b := of(i)
		out[b] = append(out[b], int32(i))
	}
	return out
}

// size is the number of rows of g.
func (in *input) size(g group) int {
	if g.rows == nil {
		return in.len()
	}
	return len(g.rows)
}

// local makes the rows of g an input of their own, whose columns lie close together in scratch: a group has many passes
// over them, and in the trace they lie far apart. It has no sessions but their first rows.
func (in *input) local(g group, scratch *scratch) (*input, group) {
	c, from := &scratch.columns, in.columns
	rows := g.rows
	c.at, c.in, c.out, c.flags = gather(c.at, from.at, rows), gather(c.in, from.in, rows), gather(c.out, from.out, rows), gather(c.flags, from.flags, rows)
	c.leaf, c.depth, c.root = gather(c.leaf, from.leaf, rows), gather(c.depth, from.depth, rows), gather(c.root, from.root, rows)
	c.shared, c.private, c.session = gather(c.shared, from.shared, rows), gather(c.private, from.private, rows), gather(c.session, from.session, rows)
	c.tree, c.skip, c.roots, c.labels = from.tree, from.skip, from.roots, from.labels
	if from.whole != nil {
		c.whole = from.whole.of(rows)
	}
	out := *in
	out.columns, out.sessions = c, sessions{}
	g.rows = nil
	return &out, g
}

// gather takes the values of some rows, into the memory of to.
func gather[T any](to, column []T, rows []int32) []T {
	if column == nil {
		return nil
	}
	to = to[:0]
	for _, i := range rows {
		to = append(to, column[i])
	}
	return to
}

// each yields the rows of g in arrival order.
func (in *input) each(g group) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if g.rows == nil {
			for i := range int32(in.len()) {
				if !yield(i) {
					return
				}
			}
			return
		}
		for _, i := range g.rows {
			if !yield(i) {
				return
			}
		}
	}
}

// stamps returns the arrivals of g in µs, the first one at 0. They are not to be changed.
func (in *input) stamps(g group) []int64 {
	if g.rows == nil && in.at[0] == 0 {
		return in.at
	}
	out := make([]int64, 0, in.size(g))
	for i := range in.each(g) {
		out = append(out, in.at[i])
	}
	first := out[0]
	for i := range out {
		out[i] -= first
	}
	return out
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
