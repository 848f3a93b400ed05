package synth

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"

	"tailgate/profile"
	"tailgate/schemas"
)

// measure compares a rescaled trace with its source. It looks at the rows alone, not at how they were chosen.
type measure struct {
	mode          string
	scale         float64
	f             *facts // of the source
	before, after *observer
	seen          []uint64 // which copy of which row was seen, a bit each
	most          int      // copies of a row that there may be
	twice         int      // rows seen again
}

// newMeasure is for a source that is still to be seen: before.
func newMeasure(mode string) *measure {
	return &measure{mode: mode, before: newObserver(minuteUs, minuteUs)}
}

// begin makes ready for a result, also for another try. The warp's law of dispersion reads the source at other widths.
func (m *measure) begin(f *facts, scale float64) {
	m.f, m.scale = f, scale
	m.before.sample.thin()
	after := int64(minuteUs)
	if m.warped() {
		width := func(f float64) int64 { return int64(math.Round(minuteUs * f)) }
		m.before.shape = windows{width: width(max(scale, 1)), keep: true}
		m.before.dispersion = windows{width: width(scale)}
		after = width(max(1/scale, 1))
		for _, at := range f.at {
			m.before.shape.add(at)
			m.before.dispersion.add(at)
		}
	}
	m.after = newObserver(after, minuteUs)
	m.after.sample.shift, m.after.sample.fixed = m.before.sample.shift, true
	m.most, m.twice = int(math.Ceil(max(scale, 1)))+1, 0
	m.seen = make([]uint64, (len(f.at)*m.most+63)/64)
}

// see takes the next row of the result.
func (m *measure) see(r *schemas.TraceRow, source int64, q int32) {
	m.after.add(r, source, q)
	if q < 0 || int(q) >= m.most || source < 0 || source >= int64(len(m.f.at)) {
		m.twice++
		return
	}
	bit := int(source)*m.most + int(q)
	if m.has(bit) {
		m.twice++
	}
	m.seen[bit/64] |= 1 << (bit % 64)
}

func (m *measure) has(bit int) bool { return m.seen[bit/64]&(1<<(bit%64)) != 0 }

// all returns the invariants in a fixed order. What a trace does not tell (blocks, tenants, too short a time)
// has none.
func (m *measure) all() []schemas.Invariant {
	b, a := m.before, m.after
	v := []schemas.Invariant{m.rows(), m.tokens("tokens_in", b.tokensIn, a.tokensIn), m.tokens("tokens_out", b.tokensOut, a.tokensOut)}
	if m.mode != ModeModel {
		v = append(v, m.partialSessions())
	}
	v = append(v, m.ks("ks_input", &b.ins, &a.ins)...)
	v = append(v, m.ks("ks_output", &b.outs, &a.outs)...)
	v = append(v, m.shape60()...)
	v = append(v, m.idc60()...)
	v = append(v, m.hits()...)
	v = append(v, m.tenantShare()...)
	if m.warped() {
		v = append(v, m.overlaps()...)
	}
	return m.judged(v)
}

func (m *measure) warped() bool { return m.mode == ModeWarp }

// growth is by how much the number of requests grows: a warp keeps it.
func (m *measure) growth() float64 {
	if m.warped() {
		return 1
	}
	return m.scale
}

func (m *measure) rows() schemas.Invariant {
	n, got := float64(m.before.rows), float64(m.after.rows)
	want := math.Round(m.growth() * n)
	smallest := m.before.rows
	for j := range int32(m.f.sessions()) {
		smallest = min(smallest, m.f.size(j))
	}
	// Whole sessions cannot come nearer than the smallest one.
	slack := max(.001*want, float64(smallest-1))
	return within("rows", n, got, want, slack)
}

func (m *measure) tokens(name string, before, after float64) schemas.Invariant {
	want := m.growth() * before
	return m.unlessSmall(within(name, before, after, want, m.tokenSlack()*want))
}

// partialSessions counts copies of sessions that lack a row, or have one twice.
func (m *measure) partialSessions() schemas.Invariant {
	partial := m.twice
	for j := range int32(m.f.sessions()) {
		for q := range m.most {
			n := 0
			for _, i := range m.f.rows(j) {
				if m.has(int(i)*m.most + q) {
					n++
				}
			}
			if n != 0 && n != m.f.size(j) {
				partial++
			}
		}
	}
	return atMost("partial_sessions", 0, float64(partial), 0)
}

// copyOf names one copy of a session of the source.
type copyOf struct{ session, q int32 }

// ks is the two-sample Kolmogorov–Smirnov distance of lengths.
func (m *measure) ks(name string, before, after *lengths) []schemas.Invariant {
	if before.n == 0 || after.n == 0 {
		return nil
	}
	return []schemas.Invariant{atMost(name, 0, before.distance(after), m.ksLimit(before.n, after.n))}
}

// shape60 is the correlation of the counts per 60 s of the source, before and after.
func (m *measure) shape60() []schemas.Invariant {
	before, after := m.before.shape.counts, m.after.shape.counts
	n := max(len(before), len(after))
	before, after = padded(before, n), padded(after, n)
	if n < 2 || slices.Min(before) == slices.Max(before) || slices.Min(after) == slices.Max(after) {
		return nil
	}
	v := atLeast("shape60", 1, stat.Correlation(before, after, nil), shapeLimit(m.scale))
	if mean, variance := stat.MeanVariance(before, nil); variance < mean {
		return []schemas.Invariant{reported(v, "not judged: steadier than a Poisson process")}
	}
	return []schemas.Invariant{m.unlessSmall(v)}
}

func padded(x []float64, n int) []float64 {
	return append(slices.Clone(x), make([]float64, n-len(x))...)
}

// idc60 holds the dispersion of counts in 60 s against its law: f·IDC(60 s) for coherent copies, IDC(f·60 s) of
// the source for a warp, IDC(60 s) for independent copies, 1 + f·(IDC(60 s) − 1) for independent thinning.
func (m *measure) idc60() []schemas.Invariant {
	plain, _ := m.before.plain.idc()
	before, windowsBefore := m.before.dispersion.idc()
	after, windowsAfter := m.after.dispersion.idc()
	if min(windowsBefore, windowsAfter) < profile.MinWindows {
		return nil
	}
	want := m.scale * before
	switch {
	case m.warped():
		want = before
	case m.mode == ModeIndependent && m.scale >= 1:
		want = plain
	case m.mode == ModeIndependent:
		want = 1 + m.scale*(plain-1)
	}
	// Below 1 (steadier than Poisson) the jitter of copies weighs more than the law; there 15 % of Poisson hold.
	v := within("idc60", plain, after, want, .15*max(want, 1))
	if m.scale < 1 || !m.f.singleTurn() {
		return []schemas.Invariant{reported(v, "reported only")}
	}
	return []schemas.Invariant{m.unlessSmall(v)}
}

// hits holds the cache against its law: with f times the traffic, f times the cache hits as much. Of the probed
// capacities it keeps the worst. The infinite cache is reported beside it.
//
// The law is of traffic that reuses its own blocks. Blocks that several sessions share are kept by copies, so that
// more users share them and the ratio rises (for f < 1 it falls): where they would fill more than corePart of the
// cache, only the other direction is a fault.
func (m *measure) hits() []schemas.Invariant {
	before := m.before.sample.cache()
	if before.at == nil {
		return nil
	}
	after := before.scaled(m.growth())
	var others sync.WaitGroup
	others.Go(func() { after.simulate(m.after.sample.traceRows, nil) })
	core := m.core()
	var private []schemas.Invariant
	if m.mode != ModeModel {
		private = append(private, m.privateShared(core))
	}
	others.Wait()
	off := func(k int) float64 { return math.Abs(after.lru[k] - before.lru[k]) }
	worst := 0
	for k := range before.at {
		if off(k) > off(worst) {
			worst = k
		}
	}
	want, got := before.lru[worst], after.lru[worst]
	law := within("hit_ratio", want, got, want, m.hitSlack())
	if !m.warped() && float64(len(core)) > corePart*float64(before.at[worst]) {
		law = atLeast("hit_ratio", want, got, want-m.hitSlack())
		if m.scale < 1 {
			law = atMost("hit_ratio", want, got, want+m.hitSlack())
		}
	}
	shift := m.before.sample.shift
	law.Limit += fmt.Sprintf(" at %d blocks for %d; %d shared by sessions", after.at[worst]<<shift, before.at[worst]<<shift, len(core)<<shift)
	infinite := within("hit_infinite", before.infinite, after.infinite, before.infinite, .02)
	return append([]schemas.Invariant{m.unlessSmall(law), reported(infinite, "reported only")}, private...)
}

// corePart is the part of a cache that blocks shared by sessions may fill for the two-sided law of hits.
const corePart = .05

// core holds the blocks that more than one session of the source uses.
func (m *measure) core() map[int64]struct{} {
	core, owner := map[int64]struct{}{}, map[int64]int32{}
	m.before.sample.each(func(r sampledRow, ids []int64) {
		j := m.f.of[r.source]
		for _, id := range ids {
			if o, seen := owner[id]; !seen {
				owner[id] = j
			} else if o != j {
				core[id] = struct{}{}
			}
		}
	})
	return core
}

// privateShared counts blocks outside the core that two copies of sessions share: each would be a cache hit that
// no real user brings.
func (m *measure) privateShared(core map[int64]struct{}) schemas.Invariant {
	owner, shared := map[int64]copyOf{}, 0
	m.after.sample.each(func(r sampledRow, ids []int64) {
		mine := copyOf{m.f.of[r.source], r.q}
		for _, id := range ids {
			if _, ok := core[id]; ok {
				continue
			}
			if o, seen := owner[id]; seen && o != mine {
				shared++
			}
			owner[id] = mine
		}
	})
	return atMost("private_shared", 0, float64(shared), 0)
}

// tenantShare is the largest change of a tenant's share of the requests. Whole sessions cannot come nearer than the
// largest one of the trace.
func (m *measure) tenantShare() []schemas.Invariant {
	if len(m.before.tenants) < 2 {
		return nil
	}
	largest := 0
	for j := range int32(m.f.sessions()) {
		largest = max(largest, m.f.size(j))
	}
	worst := 0.0
	for tenant, n := range m.before.tenants {
		worst = max(worst, math.Abs(float64(m.after.tenants[tenant])/float64(m.after.rows)-float64(n)/float64(m.before.rows)))
	}
	return []schemas.Invariant{atMost("tenant_share", 0, worst, max(.01, float64(largest)/float64(m.after.rows)))}
}
