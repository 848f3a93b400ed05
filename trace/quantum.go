package trace

import (
	"math/rand/v2"
	"slices"
	"time"

	"tailgate/internal/rng"
	"tailgate/schemas"
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
	g, how := r.clock(s)
	if g.step <= 0 {
		return
	}
	t.Meta.QuantumUs = g.step
	if s.KeepQuantum {
		r.note("the clock ticks every %v (%s): timestamps kept", micros(g.step), how)
		return
	}
	zero := int64(0) // a file that counts from its own zero keeps it
	if s.side == nil || !s.side.ZeroBased {
		zero = g.start(g.slot(r.rows[0].ScheduledUs))
	}
	length := spread(r.rows, g, zero, rng.New(s.Seed, "spread"))
	t.Meta.Spread, t.Meta.Seed, t.Meta.LengthUs = true, s.Seed, max(t.Meta.LengthUs, length)
	if !t.Meta.StartedAt.IsZero() {
		t.Meta.StartedAt = t.Meta.StartedAt.Add(time.Duration(zero) * time.Microsecond)
	}
	r.note("the clock ticks every %v (%s): rows spread inside their tick with seed %d", micros(g.step), how, s.Seed)
}

// clock is the grid of a coarse clock, declared or detected; step 0 = the clock is fine. The first row of a
// declared clock lies on a tick.
func (r *raw) clock(s source) (g grid, how string) {
	switch {
	case s.side != nil && s.side.QuantumUs != nil:
		g.step, how = *s.side.QuantumUs, "declared by the file"
	case r.quantumUs > 0:
		g.step, how = r.quantumUs, "declared by the format"
	default:
		g, _ = detectGrid(r.rows, r.unitUs)
		return g, "detected"
	}
	if g.step > 0 {
		g.phase = r.rows[0].ScheduledUs % g.step
	}
	return g, how
}

// detectGrid finds the coarsest grid that the sorted stamps of rows lie on. A trace that is merely regular
// (constant arrivals) has no grid in this sense: its rows are not tied and its gaps do not vary.
func detectGrid(rows []schemas.TraceRow, unitUs int64) (grid, bool) {
	if len(rows) < quantumRows {
		return grid{}, false
	}
	for _, step := range gridSteps(rows, unitUs) {
		g, ok := fitPhase(rows, grid{step: step, tol: unitUs})
		if ok && coarse(rows, g) {
			return g, true
		}
	}
	return grid{}, false
}

// gridSteps lists the steps worth a try, largest first: the gaps between neighbours that are usual in the
// trace, give or take their jitter, and their first fractions.
func gridSteps(rows []schemas.TraceRow, unitUs int64) []int64 {
	const sample, fractions, jitter = 1 << 14, 8, 2
	var gaps []int64
	for i := 1; i < len(rows); i += 1 + len(rows)/sample {
		if d := rows[i].ScheduledUs - rows[i-1].ScheduledUs; d > 2*unitUs {
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
func fitPhase(rows []schemas.TraceRow, g grid) (grid, bool) {
	const sample, enough, centres = 64, 58, 3
	for c := range centres {
		g.phase = rows[c*(len(rows)-1)/centres].ScheduledUs
		near := 0
		for i := range sample {
			if d := g.offset(rows[i*(len(rows)-1)/(sample-1)].ScheduledUs); -2*g.tol <= d && d <= 2*g.tol {
				near++
			}
		}
		if near < enough {
			continue
		}
		offsets := make([]int64, len(rows))
		for i := range rows {
			offsets[i] = g.offset(rows[i].ScheduledUs)
		}
		slices.Sort(offsets)
		mid := offsets[len(offsets)/2]
		lo, _ := slices.BinarySearch(offsets, mid-g.tol)
		hi, _ := slices.BinarySearch(offsets, mid+g.tol+1)
		if float64(hi-lo) >= quantumShare*float64(len(rows)) {
			g.phase += mid
			return g, true
		}
	}
	return g, false
}

// coarse tells a coarse clock from regular traffic.
func coarse(rows []schemas.TraceRow, g grid) bool {
	tied := 0
	multiples := map[int64]bool{}
	eachSlot(rows, g, func(slot, before int64, members []schemas.TraceRow) {
		if len(members) > 1 {
			tied += len(members)
		}
		if slot != before && len(multiples) < quantumMultiples {
			multiples[slot-before] = true
		}
	})
	return float64(tied) >= quantumTied*float64(len(rows)) || len(multiples) >= quantumMultiples
}

// eachSlot visits the runs of rows that share a slot; before is the slot visited last, the same one at first.
// visit may move the rows it is given.
func eachSlot(rows []schemas.TraceRow, g grid, visit func(slot, before int64, members []schemas.TraceRow)) {
	before := g.slot(rows[0].ScheduledUs)
	for i := 0; i < len(rows); {
		slot := g.slot(rows[i].ScheduledUs)
		j := i + 1
		for j < len(rows) && g.slot(rows[j].ScheduledUs) == slot {
			j++
		}
		visit(slot, before, rows[i:j])
		before, i = slot, j
	}
}

// start is the stamp at which a slot begins.
func (g grid) start(slot int64) int64 { return g.phase + slot*g.step }

// spread moves every row to a uniform place inside its slot, order kept, and counts time from zeroUs. It returns
// the length up to the end of the last slot.
func spread(rows []schemas.TraceRow, g grid, zeroUs int64, rnd *rand.Rand) (lengthUs int64) {
	eachSlot(rows, g, func(slot, _ int64, members []schemas.TraceRow) {
		begin := g.start(slot) - zeroUs
		for i, at := range drawIn(len(members), begin, g.step, rnd) {
			members[i].ScheduledUs = at
		}
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
