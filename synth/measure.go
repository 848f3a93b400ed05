package synth

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// measure compares a rescaled trace with its source. It looks at the rows alone, not at how they were chosen.
type measure struct {
	before, after *trace.Trace
	sessions      [][]int32 // of before
	o             Options
}

// all returns the invariants in a fixed order. What a trace does not tell (blocks, tenants, too short a time)
// has none.
func (m *measure) all() []schemas.Invariant {
	v := []schemas.Invariant{
		m.rows(),
		m.tokens("tokens_in", func(r *schemas.TraceRow) *int32 { return &r.InputTokens }),
		m.tokens("tokens_out", func(r *schemas.TraceRow) *int32 { return r.OutputTokens }),
		m.partialSessions(),
	}
	v = append(v, m.ks("ks_input", func(r *schemas.TraceRow) *int32 { return &r.InputTokens })...)
	v = append(v, m.ks("ks_output", func(r *schemas.TraceRow) *int32 { return r.OutputTokens })...)
	v = append(v, m.shape60()...)
	v = append(v, m.idc60()...)
	v = append(v, m.hits()...)
	return append(v, m.tenantShare()...)
}

func (m *measure) warped() bool { return m.o.Mode == ModeWarp }

// growth is by how much the number of requests grows: a warp keeps it.
func (m *measure) growth() float64 {
	if m.warped() {
		return 1
	}
	return m.o.Scale
}

func (m *measure) rows() schemas.Invariant {
	n, got := float64(len(m.before.Rows)), float64(len(m.after.Rows))
	want := math.Round(m.growth() * n)
	smallest := len(m.before.Rows)
	for _, rows := range m.sessions {
		smallest = min(smallest, len(rows))
	}
	// Whole sessions cannot come nearer than the smallest one.
	slack := max(.001*want, float64(smallest-1))
	return within("rows", n, got, want, slack)
}

func (m *measure) tokens(name string, length func(*schemas.TraceRow) *int32) schemas.Invariant {
	before, after := sum(m.before, length), sum(m.after, length)
	want := m.growth() * before
	v := within(name, before, after, want, m.tokenSlack()*want)
	return m.unlessSmall(v)
}

func sum(t *trace.Trace, length func(*schemas.TraceRow) *int32) (total float64) {
	for i := range t.Rows {
		if l := length(&t.Rows[i]); l != nil {
			total += float64(*l)
		}
	}
	return total
}

// partialSessions counts copies of sessions that lack a row, or have one twice.
func (m *measure) partialSessions() schemas.Invariant {
	if m.o.Scale == 1 {
		return atMost("partial_sessions", 0, 0, 0)
	}
	of := m.sessionOf()
	counts := map[copyOf]int{}
	for i := range m.after.Rows {
		r := &m.after.Rows[i]
		counts[copyOf{of[r.SourceRow], r.Copy}]++
	}
	partial := 0
	for c, n := range counts {
		if n != len(m.sessions[c.session]) {
			partial++
		}
	}
	return atMost("partial_sessions", 0, float64(partial), 0)
}

// copyOf names one copy of a session of the source.
type copyOf struct{ session, q int32 }

// sessionOf maps the rows of the source to their sessions.
func (m *measure) sessionOf() []int32 {
	of := make([]int32, len(m.before.Rows))
	for j, rows := range m.sessions {
		for _, i := range rows {
			of[i] = int32(j)
		}
	}
	return of
}

// ks is the two-sample Kolmogorov–Smirnov distance of lengths.
func (m *measure) ks(name string, length func(*schemas.TraceRow) *int32) []schemas.Invariant {
	a, b := lengthsOf(m.before, length), lengthsOf(m.after, length)
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	d := stat.KolmogorovSmirnov(a, nil, b, nil)
	return []schemas.Invariant{atMost(name, 0, d, m.ksLimit(len(a), len(b)))}
}

func lengthsOf(t *trace.Trace, length func(*schemas.TraceRow) *int32) []float64 {
	out := make([]float64, 0, len(t.Rows))
	for i := range t.Rows {
		if l := length(&t.Rows[i]); l != nil {
			out = append(out, float64(*l))
		}
	}
	slices.Sort(out)
	return out
}

// shape60 is the correlation of the counts per 60 s of the source, before and after.
func (m *measure) shape60() []schemas.Invariant {
	width := func(f float64) int64 { return int64(math.Round(minuteUs * f)) }
	before, after := counts(m.before, minuteUs), counts(m.after, minuteUs)
	if m.warped() {
		before = counts(m.before, width(max(m.o.Scale, 1)))
		after = counts(m.after, width(max(1/m.o.Scale, 1)))
	}
	n := max(len(before), len(after))
	before, after = padded(before, n), padded(after, n)
	if n < 2 || slices.Min(before) == slices.Max(before) || slices.Min(after) == slices.Max(after) {
		return nil
	}
	v := atLeast("shape60", 1, stat.Correlation(before, after, nil), shapeLimit(m.o.Scale))
	return []schemas.Invariant{m.unlessSmall(v)}
}

func counts(t *trace.Trace, width int64) []float64 {
	out := make([]float64, t.Rows[len(t.Rows)-1].ScheduledUs/width+1)
	for i := range t.Rows {
		out[t.Rows[i].ScheduledUs/width]++
	}
	return out
}

func padded(x []float64, n int) []float64 { return append(x, make([]float64, n-len(x))...) }

// idc60 holds the dispersion of counts in 60 s against its law: f·IDC(60 s) for coherent copies, IDC(f·60 s) of
// the source for a warp.
func (m *measure) idc60() []schemas.Invariant {
	width, factor := int64(minuteUs), m.o.Scale
	if m.warped() {
		width, factor = int64(math.Round(minuteUs*m.o.Scale)), 1
	}
	plain := profile.Counts(stampsOf(m.before), minuteUs)
	before, after := profile.Counts(stampsOf(m.before), width), profile.Counts(stampsOf(m.after), minuteUs)
	if min(plain.Windows, before.Windows, after.Windows) < profile.MinWindows {
		return nil
	}
	want := factor * before.IDC()
	// Below 1 (steadier than Poisson) the jitter of copies weighs more than the law; there 15 % of Poisson hold.
	v := within("idc60", plain.IDC(), after.IDC(), want, .15*max(want, 1))
	if m.warped() || m.o.Scale < 1 || len(m.sessions) < len(m.before.Rows) {
		return []schemas.Invariant{reported(v, "reported only")}
	}
	return []schemas.Invariant{m.unlessSmall(v)}
}

func stampsOf(t *trace.Trace) []int64 {
	out := make([]int64, len(t.Rows))
	for i := range t.Rows {
		out[i] = t.Rows[i].ScheduledUs
	}
	return out
}

// probeParts are the capacities at which caches are compared, as parts of the source's different blocks.
var probeParts = [...]int64{64, 16, 4}

// probes returns those capacities in blocks, ascending; nil when no row tells its blocks.
func probes(t *trace.Trace) []int64 {
	distinct := map[int64]struct{}{}
	for i := range t.Rows {
		for _, id := range t.Rows[i].HashIDs {
			distinct[id] = struct{}{}
		}
	}
	if len(distinct) == 0 {
		return nil
	}
	out := make([]int64, len(probeParts))
	for k, part := range probeParts {
		out[k] = max(int64(len(distinct))/part, 1)
	}
	return out
}

// hits holds the cache against its law: with f times the traffic, f times the cache hits as much. Of the probed
// capacities it keeps the worst. The infinite cache is reported beside it.
//
// The law is of traffic that reuses its own blocks. Blocks that several sessions share are kept by copies, so that
// more users share them and the ratio rises (for f < 1 it falls): where they would fill more than corePart of the
// cache, only the other direction is a fault.
func (m *measure) hits() []schemas.Invariant {
	at := probes(m.before)
	if at == nil {
		return nil
	}
	scaled := make([]int64, len(at))
	for i, c := range at {
		scaled[i] = max(int64(math.Round(m.growth()*float64(c))), 1)
	}
	before := profile.PrefixHits(each(m.before), m.before.Meta.BlockSize, at)
	after := profile.PrefixHits(each(m.after), m.after.Meta.BlockSize, scaled)
	worst := 0
	for i := range at {
		if off(before, after, i) > off(before, after, worst) {
			worst = i
		}
	}
	core := m.core()
	want := before.LRU[worst].Block
	law := within("hit_ratio", want, after.LRU[worst].Block, want, m.hitSlack())
	if !m.warped() && float64(len(core)) > corePart*float64(at[worst]) {
		law = atLeast("hit_ratio", want, after.LRU[worst].Block, want-m.hitSlack())
		if m.o.Scale < 1 {
			law = atMost("hit_ratio", want, after.LRU[worst].Block, want+m.hitSlack())
		}
	}
	law.Limit += fmt.Sprintf(" at %d blocks for %d; %d shared by sessions", scaled[worst], at[worst], len(core))
	infinite := within("hit_infinite", before.Infinite.Block, after.Infinite.Block, before.Infinite.Block, .02)
	return []schemas.Invariant{m.unlessSmall(law), reported(infinite, "reported only"), m.privateShared(core)}
}

// corePart is the part of a cache that blocks shared by sessions may fill for the two-sided law of hits.
const corePart = .05

// core holds the blocks that more than one session of the source uses.
func (m *measure) core() map[int64]struct{} {
	core, owner := map[int64]struct{}{}, map[int64]int{}
	for j, rows := range m.sessions {
		for _, i := range rows {
			for _, id := range m.before.Rows[i].HashIDs {
				if o, seen := owner[id]; !seen {
					owner[id] = j
				} else if o != j {
					core[id] = struct{}{}
				}
			}
		}
	}
	return core
}

// privateShared counts blocks outside the core that two copies of sessions share: each would be a cache hit that
// no real user brings.
func (m *measure) privateShared(core map[int64]struct{}) schemas.Invariant {
	of, owner, shared := m.sessionOf(), map[int64]copyOf{}, 0
	for i := range m.after.Rows {
		r := &m.after.Rows[i]
		mine := copyOf{of[r.SourceRow], r.Copy}
		for _, id := range r.HashIDs {
			if _, ok := core[id]; ok {
				continue
			}
			if o, seen := owner[id]; seen && o != mine {
				shared++
			}
			owner[id] = mine
		}
	}
	return atMost("private_shared", 0, float64(shared), 0)
}

func off(a, b profile.CacheHits, i int) float64 { return math.Abs(a.LRU[i].Block - b.LRU[i].Block) }

func each(t *trace.Trace) iter.Seq[*schemas.TraceRow] {
	return func(yield func(*schemas.TraceRow) bool) {
		for i := range t.Rows {
			if !yield(&t.Rows[i]) {
				return
			}
		}
	}
}

// tenantShare is the largest change of a tenant's share of the requests.
func (m *measure) tenantShare() []schemas.Invariant {
	before, after := shares(m.before), shares(m.after)
	if len(before) < 2 {
		return nil
	}
	worst := 0.0
	for tenant, share := range before {
		worst = max(worst, math.Abs(after[tenant]-share))
	}
	return []schemas.Invariant{m.unlessSmall(atMost("tenant_share", 0, worst, .01))}
}

func shares(t *trace.Trace) map[string]float64 {
	out := map[string]float64{}
	for i := range t.Rows {
		out[text(t.Rows[i].Tenant)]++
	}
	for k := range out {
		out[k] /= float64(len(t.Rows))
	}
	return out
}
