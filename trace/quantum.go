package trace

import (
	"math/rand/v2"
	"slices"
	"time"

	"tailgate/internal/rng"
)

// The rule by which a coarse clock is detected.
const (
	quantumRows      = 500  // fewer rows tell nothing
	quantumUnits     = 10   // a grid is coarse from this many times the step in which the format writes
	quantumShare     = 0.99 // of the stamps lie on the grid
	quantumTied      = 0.5  // of the rows share their slot, or
	quantumMultiples = 20   // gaps take this many distinct multiples of the grid
)

// grid is a clock's grid: stamps at phase + k·step, give or take tol.
type grid struct {
	step, phase, tol int64
}

// slot is the place of a stamp on the grid. A stamp that is a little early belongs to the tick it announces.
func (g grid) slot(us int64) int64 {
	d := us - g.phase + max(g.tol, g.step/100)
	s := d / g.step
	if d%g.step < 0 {
		s--
	}
	return s
}

// offset is the distance of a stamp to the nearest tick.
func (g grid) offset(us int64) int64 {
	d := (us - g.phase) % g.step
	switch {
	case d > g.step/2:
		d -= g.step
	case d < -(g.step / 2):
		d += g.step
	}
	return d
}

// dequantise finds a coarse clock and spreads its rows inside their slots, or keeps them where that is wanted.
func (r *raw) dequantise(t *Trace, s source) {
	if t.Meta.Spread {
		return
	}
	stamps := make([]int64, len(r.rows))
	for i := range r.rows {
		stamps[i] = r.rows[i].ScheduledUs
	}
	if r.facts.dequantise(&t.Meta, stamps, s) {
		for i := range r.rows {
			r.rows[i].ScheduledUs = stamps[i]
		}
	}
}

// dequantise finds a coarse clock of sorted stamps and spreads them inside their slots. It returns whether it did;
// m and the notes say what there is.
func (f *facts) dequantise(m *Meta, stamps []int64, s source) bool {
	g, how := f.clock(stamps, s)
	if g.step <= 0 {
		return false
	}
	m.QuantumUs = g.step
	if s.KeepQuantum {
		f.note("the clock ticks every %v (%s): timestamps kept", micros(g.step), how)
		return false
	}
	zero := int64(0) // a file that counts from its own zero keeps it
	if s.side == nil || !s.side.ZeroBased {
		zero = g.start(g.slot(stamps[0]))
	}
	length := spread(stamps, g, zero, rng.New(s.Seed, "spread"))
	m.Spread, m.Seed, m.LengthUs = true, s.Seed, max(m.LengthUs, length)
	if !m.StartedAt.IsZero() {
		m.StartedAt = m.StartedAt.Add(time.Duration(zero) * time.Microsecond)
	}
	f.note("the clock ticks every %v (%s): rows spread inside their tick with seed %d", micros(g.step), how, s.Seed)
	return true
}

// clock is the grid of a coarse clock, declared or detected; step 0 = the clock is fine. The first row of a
// declared clock lies on a tick.
func (f *facts) clock(stamps []int64, s source) (g grid, how string) {
	switch {
	case s.side != nil && s.side.QuantumUs != nil:
		g.step, how = *s.side.QuantumUs, "declared by the file"
	case f.quantumUs > 0 && !f.finer:
		g.step, how = f.quantumUs, "declared by the format"
	default:
		g, _ = detectGrid(stamps, f.unitUs)
		return g, "detected"
	}
	if g.step > 0 {
		g.phase = stamps[0] % g.step
	}
	return g, how
}

// detectGrid finds the coarsest grid that sorted stamps lie on. A trace that is merely regular
// (constant arrivals) has no grid in this sense: its rows are not tied and its gaps do not vary.
func detectGrid(stamps []int64, unitUs int64) (grid, bool) {
	if len(stamps) < quantumRows {
		return grid{}, false
	}
	for _, step := range gridSteps(stamps, unitUs) {
		g, ok := fitPhase(stamps, grid{step: step, tol: unitUs})
		if ok && coarse(stamps, g) {
			return g, true
		}
	}
	return grid{}, false
}

// gridSteps lists the steps worth a try, largest first: the gaps between neighbours that are usual in the
// trace, give or take their jitter, and their first fractions.
func gridSteps(stamps []int64, unitUs int64) []int64 {
	const sample, fractions, jitter = 1 << 14, 8, 2
	var gaps []int64
	for i := 1; i < len(stamps); i += 1 + len(stamps)/sample {
		if d := stamps[i] - stamps[i-1]; d > 2*unitUs {
			gaps = append(gaps, d)
		}
	}
	if len(gaps) == 0 {
		return nil
	}
	slices.Sort(gaps)
	var steps []int64
	for _, q := range []float64{0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75} {
		gap := gaps[int(q*float64(len(gaps)))]
		for d := int64(1); d <= fractions; d++ {
			units := (gap + d*unitUs/2) / (d * unitUs)
			for u := units - jitter; u <= units+jitter; u++ {
				if u >= quantumUnits {
					steps = append(steps, u*unitUs)
				}
			}
		}
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	slices.Reverse(steps)
	return steps
}

// fitPhase finds the phase at which enough stamps lie on g's grid. A sample refuses most steps at once.
func fitPhase(stamps []int64, g grid) (grid, bool) {
	const sample, enough, centres = 64, 58, 3
	for c := range centres {
		g.phase = stamps[c*(len(stamps)-1)/centres]
		near := 0
		for i := range sample {
			if d := g.offset(stamps[i*(len(stamps)-1)/(sample-1)]); -2*g.tol <= d && d <= 2*g.tol {
				near++
			}
		}
		if near < enough {
			continue
		}
		offsets := make([]int64, len(stamps))
		for i := range stamps {
			offsets[i] = g.offset(stamps[i])
		}
		slices.Sort(offsets)
		mid := offsets[len(offsets)/2]
		lo, _ := slices.BinarySearch(offsets, mid-g.tol)
		hi, _ := slices.BinarySearch(offsets, mid+g.tol+1)
		if float64(hi-lo) >= quantumShare*float64(len(stamps)) {
			g.phase += mid
			return g, true
		}
	}
	return g, false
}

// coarse tells a coarse clock from regular traffic.
func coarse(stamps []int64, g grid) bool {
	tied := 0
	multiples := map[int64]bool{}
	eachSlot(stamps, g, func(slot, before int64, members []int64) {
		if len(members) > 1 {
			tied += len(members)
		}
		if slot != before && len(multiples) < quantumMultiples {
			multiples[slot-before] = true
		}
	})
	return float64(tied) >= quantumTied*float64(len(stamps)) || len(multiples) >= quantumMultiples
}

// eachSlot visits the runs of rows that share a slot; before is the slot visited last, the same one at first.
// visit may move the rows it is given.
func eachSlot(stamps []int64, g grid, visit func(slot, before int64, members []int64)) {
	before := g.slot(stamps[0])
	for i := 0; i < len(stamps); {
		slot := g.slot(stamps[i])
		j := i + 1
		for j < len(stamps) && g.slot(stamps[j]) == slot {
			j++
		}
		visit(slot, before, stamps[i:j])
		before, i = slot, j
	}
}

// start is the stamp at which a slot begins.
func (g grid) start(slot int64) int64 { return g.phase + slot*g.step }

// spread moves every row to a uniform place inside its slot, order kept, and counts time from zeroUs. It returns
// the length up to the end of the last slot.
func spread(stamps []int64, g grid, zeroUs int64, rnd *rand.Rand) (lengthUs int64) {
	eachSlot(stamps, g, func(slot, _ int64, members []int64) {
		begin := g.start(slot) - zeroUs
		copy(members, drawIn(len(members), begin, g.step, rnd))
		lengthUs = begin + g.step
	})
	return lengthUs
}

// drawIn draws n sorted uniform stamps in [startUs, startUs+stepUs).
func drawIn(n int, startUs, stepUs int64, rnd *rand.Rand) []int64 {
	at := make([]int64, n)
	for i := range at {
		at[i] = startUs + rnd.Int64N(stepUs)
	}
	slices.Sort(at)
	return at
}
