package synth

import (
	"math"
	"slices"

	"tailgate/schemas"
)

// drift is how the mix of lengths moves inside the hour, minute by minute, as the rate curve tells it: the weights of
// an hour's cells are tilted by exp(a·in + b·out), the distribution of least information (Csiszár 1975) with the mean
// input and output of that minute, and raked so that the minutes of an hour still add up to the hour.
type drift struct {
	minutes map[int64]tilt
	hours   map[*lengthTable]*driftHour
	// outputsOnly tells that inputs keep their weights.
	outputsOnly bool
}

type tilt struct{ a, b float64 } // of standardised lengths

// driftHour is what the minutes of an hour share.
type driftHour struct {
	t          *lengthTable
	x, y       []float64 // standardised input and output of each cell
	orig, base []float64 // weights before and after raking, sum 1
	mean, sd   [2]float64
	minutes    []driftMinute
	means      [2]float64 // of the minutes
	population float64
}

type driftMinute struct {
	k    int64
	n    float64
	mean [2]float64
}

const (
	driftRounds = 3
	newtonSteps = 12
	maxTilt     = 8
)

// newDrift fits the drift; nil when the means of the minutes move no more than chance moves them. outputsOnly leaves
// the inputs as they are: where sessions have later turns, inputs follow from the turns before.
func newDrift(m *lengthModel, rate []schemas.ProfileRate, outputsOnly bool) *drift {
	if m.hours == nil {
		return nil
	}
	hours := map[*lengthTable]*driftHour{}
	var order []*driftHour
	for i := range rate {
		r := &rate[i]
		if r.BinUs != minuteS*1_000_000 || r.MeanIn == nil || r.MeanOut == nil {
			continue
		}
		t := m.table(m.clock.origin + float64(r.BinStartUs)/1e6 + minuteS/2)
		h, ok := hours[t]
		if !ok {
			h = newDriftHour(t)
			hours[t] = h
			order = append(order, h)
		}
		h.minutes = append(h.minutes, driftMinute{k: r.BinStartUs / (minuteS * 1_000_000), n: float64(r.Requests - r.Errors), mean: [2]float64{*r.MeanIn, *r.MeanOut}})
	}
	keep := keptShare(order)
	if outputsOnly {
		keep[0] = 0
	}
	if keep == [2]float64{} {
		return nil
	}
	d := &drift{minutes: map[int64]tilt{}, hours: hours, outputsOnly: outputsOnly}
	for _, h := range order {
		h.fit(keep, d.minutes)
	}
	return d
}

func newDriftHour(t *lengthTable) *driftHour {
	h := &driftHour{t: t, x: make([]float64, len(t.cells)), y: make([]float64, len(t.cells)), base: make([]float64, len(t.cells))}
	total := 0.0
	for i, c := range t.cells {
		h.x[i], h.y[i], h.base[i] = t.in[c.in].mean, t.out[c.out].mean, c.w
		total += c.w
	}
	for i := range h.base {
		h.base[i] /= total
		h.mean[0] += h.base[i] * h.x[i]
		h.mean[1] += h.base[i] * h.y[i]
	}
	for i := range h.base {
		h.sd[0] += h.base[i] * (h.x[i] - h.mean[0]) * (h.x[i] - h.mean[0])
		h.sd[1] += h.base[i] * (h.y[i] - h.mean[1]) * (h.y[i] - h.mean[1])
	}
	for k := range h.sd {
		h.sd[k] = math.Sqrt(h.sd[k])
		if h.sd[k] == 0 {
			h.sd[k] = 1
		}
	}
	h.orig = slices.Clone(h.base)
	for i := range h.x {
		h.x[i], h.y[i] = (h.x[i]-h.mean[0])/h.sd[0], (h.y[i]-h.mean[1])/h.sd[1]
	}
	return h
}

// keptShare is how much of the minutes' deviation from their hour is kept, so that with the chance of the draws on top
// the minutes vary as they did: √(1 − expected by chance / seen), per dimension.
func keptShare(hours []*driftHour) (keep [2]float64) {
	var seen, chance [2]float64
	for _, h := range hours {
		for _, m := range h.minutes {
			h.population += m.n
			for k := range h.means {
				h.means[k] += m.n * m.mean[k]
			}
		}
		for k := range h.means {
			h.means[k] /= h.population
			for _, m := range h.minutes {
				z := (m.mean[k] - h.means[k]) / h.sd[k]
				seen[k] += m.n * z * z
			}
			chance[k] += float64(len(h.minutes) - 1)
		}
	}
	for k := range keep {
		// What is left must be more than the spread of chance itself.
		if seen[k] > chance[k]+2*math.Sqrt(2*chance[k]) {
			keep[k] = math.Sqrt(1 - chance[k]/seen[k])
		}
	}
	return keep
}

// fit finds the tilts of the hour's minutes.
func (h *driftHour) fit(keep [2]float64, into map[int64]tilt) {
	tilts := make([]tilt, len(h.minutes))
	for round := range driftRounds {
		pred := make([]float64, len(h.base))
		p := make([]float64, len(h.base))
		for i, m := range h.minutes {
			want := [2]float64{keep[0] * (m.mean[0] - h.means[0]) / h.sd[0], keep[1] * (m.mean[1] - h.means[1]) / h.sd[1]}
			tilts[i] = h.solve(tilts[i], want, p)
			for k := range p {
				pred[k] += m.n / h.population * p[k]
			}
		}
		if round == driftRounds-1 {
			break
		}
		for k := range pred {
			if pred[k] > 0 {
				h.base[k] *= h.orig[k] / pred[k]
			}
		}
	}
	for i, m := range h.minutes {
		into[m.k] = tilts[i]
	}
}

// solve finds the tilt whose mean is want by Newton's method on the convex dual, and leaves its distribution in p.
func (h *driftHour) solve(t tilt, want [2]float64, p []float64) tilt {
	for range newtonSteps {
		var z, mx, my, xx, yy, xy float64
		for i, b := range h.base {
			e := b * math.Exp(t.a*h.x[i]+t.b*h.y[i])
			p[i] = e
			z += e
			mx, my = mx+e*h.x[i], my+e*h.y[i]
			xx, yy, xy = xx+e*h.x[i]*h.x[i], yy+e*h.y[i]*h.y[i], xy+e*h.x[i]*h.y[i]
		}
		for i := range p {
			p[i] /= z
		}
		mx, my = mx/z, my/z
		xx, yy, xy = xx/z-mx*mx+1e-6, yy/z-my*my+1e-6, xy/z-mx*my
		gx, gy := want[0]-mx, want[1]-my
		if math.Abs(gx)+math.Abs(gy) < 1e-4 {
			break
		}
		det := xx*yy - xy*xy
		da, db := (yy*gx-xy*gy)/det, (xx*gy-xy*gx)/det
		if step := max(math.Abs(da), math.Abs(db)); step > 1 {
			da, db = da/step, db/step
		}
		t.a, t.b = clamp(t.a+da, maxTilt), clamp(t.b+db, maxTilt)
	}
	return t
}

func clamp(x, limit float64) float64 { return max(-limit, min(limit, x)) }

// weights gives the factor of each cell of t in a minute; nil = 1.
func (d *drift) weights(minute int64, t *lengthTable) func(c cell) float64 {
	if d == nil {
		return nil
	}
	h, ok := d.hours[t]
	if !ok {
		return nil
	}
	a := d.minutes[minute]
	i := -1 // cells are asked for in their order
	return func(cell) float64 {
		i++
		return h.base[i] / h.orig[i] * math.Exp(a.a*h.x[i]+a.b*h.y[i])
	}
}
