package synth

import (
	"cmp"
	"slices"
	"time"

	"tailgate/profile"
	"tailgate/schemas"
)

// lengthModel gives the lengths of a group over time: one table per hour where the profile tells how inputs and
// outputs depend on each other, one per window where it tells lengths of windows, and the drift inside the hour.
type lengthModel struct {
	clock   clock
	hours   map[int32]*lengthTable
	windows []lengthWindow // in order; for profiles without joint lengths
	all     *lengthTable
	drift   *drift // nil = none
	maxIn   int32
	flat    bool // lengths do not depend on the time
	pickers pickerCache
}

type lengthWindow struct {
	from, to float64 // schedule seconds
	t        *lengthTable
}

// clock places the profile's windows on the schedule's clock.
type clock struct {
	start  time.Time // window_start
	origin float64   // window_start on the schedule's clock, s
	from   float64   // the moment of the profile's schedule at which the trace begins, s
	length float64   // of the profile's schedule, s
	dated  bool      // the wall time is known
}

func newClock(m *schemas.ProfileMeta, firstBinUs int64) clock {
	c := clock{start: m.WindowStart, dated: m.WindowStart.Year() > 1980}
	if m.OriginUs != nil {
		c.origin = float64(*m.OriginUs) / 1e6
	} else {
		c.origin = -float64(firstBinUs) / 1e6
	}
	c.length = m.WindowEnd.Sub(m.WindowStart).Seconds() + c.origin
	return c
}

// hour is the hour that the joint lengths name for a moment of the schedule.
func (c clock) hour(t float64) int32 {
	at := c.start.Add(time.Duration((t - c.origin) * 1e9))
	if c.dated {
		return int32(at.UTC().Hour())
	}
	return int32(at.Unix() / 3600)
}

func (c clock) seconds(at time.Time) float64 { return at.Sub(c.start).Seconds() + c.origin }

// fold maps a moment of the trace into the profile's window, which repeats.
func (c clock) fold(t float64) float64 {
	t += c.from
	if t >= 0 && t < c.length || c.length <= 0 {
		return t
	}
	k := t / c.length
	return t - c.length*float64(int64(k)-b2i(k < 0))
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// newLengthModel reads the tables of a group; nil when it tells no lengths.
func newLengthModel(c clock, g *groupTables) *lengthModel {
	m := &lengthModel{clock: c}
	switch {
	case len(g.joint) > 0:
		m.fromJoint(g)
	case len(g.lengths) > 0:
		m.fromWindows(g)
	}
	if m.all == nil {
		return nil
	}
	for _, p := range m.all.in {
		m.maxIn = max(m.maxIn, p.hi-1)
	}
	return m
}

func byDim(rows []schemas.ProfileLength, dim string) (out []schemas.ProfileLength) {
	for _, l := range rows {
		if l.Dim == dim && l.N > 0 {
			out = append(out, l)
		}
	}
	return out
}

func (m *lengthModel) fromJoint(g *groupTables) {
	atoms := [2]map[int32]bool{{}, {}}
	for _, c := range g.joint {
		if c.InHi-c.InLo == 1 {
			atoms[0][c.InLo] = true
		}
		if c.OutHi-c.OutLo == 1 {
			atoms[1][c.OutLo] = true
		}
	}
	in, out := newParts(byDim(g.lengths, profile.DimInput), atoms[0]), newParts(byDim(g.lengths, profile.DimOutput), atoms[1])
	byHour := map[int32][]cell{}
	var all []cell
	sum := map[[2]int32]int{}
	for _, j := range g.joint {
		c := cell{in: in.of(span{j.InLo, j.InHi}), out: out.of(span{j.OutLo, j.OutHi}), w: float64(j.N)}
		byHour[j.Hour] = append(byHour[j.Hour], c)
		k := [2]int32{c.in, c.out}
		if i, ok := sum[k]; ok {
			all[i].w += c.w
		} else {
			sum[k] = len(all)
			all = append(all, c)
		}
	}
	ins, movedIn := in.sorted()
	outs, movedOut := out.sorted()
	table := func(cells []cell) *lengthTable {
		for i := range cells {
			cells[i].in, cells[i].out = movedIn[cells[i].in], movedOut[cells[i].out]
		}
		t := &lengthTable{in: ins, out: outs, cells: mergeCells(cells)}
		t.index()
		return t
	}
	m.hours = map[int32]*lengthTable{}
	for h, cells := range byHour {
		m.hours[h] = table(cells)
	}
	m.all = table(all)
}

// mergeCells adds up equal cells: a profile of several days has an hour several times.
func mergeCells(cells []cell) []cell {
	slices.SortFunc(cells, func(a, b cell) int { return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.out, b.out)) })
	out := cells[:0]
	for _, c := range cells {
		if n := len(out); n > 0 && out[n-1].in == c.in && out[n-1].out == c.out {
			out[n-1].w += c.w
			continue
		}
		out = append(out, c)
	}
	return out
}

// fromWindows takes the two dimensions as they stand, one table per window of the profile.
func (m *lengthModel) fromWindows(g *groupTables) {
	byWindow := map[[2]time.Time][]schemas.ProfileLength{}
	var keys [][2]time.Time
	for _, l := range g.lengths {
		k := [2]time.Time{l.WindowStart, l.WindowEnd}
		if _, ok := byWindow[k]; !ok {
			keys = append(keys, k)
		}
		byWindow[k] = append(byWindow[k], l)
	}
	for _, k := range keys {
		if t := independentTable(byWindow[k]); t != nil {
			m.windows = append(m.windows, lengthWindow{from: m.clock.seconds(k[0]), to: m.clock.seconds(k[1]), t: t})
		}
	}
	m.all = independentTable(g.lengths)
}

// independentTable is the table of two histograms; nil when one is empty.
func independentTable(rows []schemas.ProfileLength) *lengthTable {
	t := &lengthTable{independent: true}
	for i, dim := range []string{profile.DimInput, profile.DimOutput} {
		parts, weights := partsOf(byDim(rows, dim))
		if parts == nil {
			return nil
		}
		if i == 0 {
			t.in, t.inW = parts, weights
		} else {
			t.out, t.outW = parts, weights
		}
	}
	return t
}

func partsOf(rows []schemas.ProfileLength) (list []*part, weights []float64) {
	slices.SortStableFunc(rows, func(a, b schemas.ProfileLength) int {
		return cmp.Or(cmp.Compare(a.LoTok, b.LoTok), cmp.Compare(b.HiTok, a.HiTok))
	})
	for _, l := range rows {
		list = append(list, newPart(span{l.LoTok, l.HiTok}, []sub{{span: span{l.LoTok, l.HiTok}, w: allKinds(float64(l.N))}}))
		weights = append(weights, float64(l.N))
	}
	return list, weights
}

// table is the distribution at a moment of the profile's window.
func (m *lengthModel) table(t float64) *lengthTable {
	if m.hours != nil {
		if h, ok := m.hours[m.clock.hour(t)]; ok {
			return h
		}
		return m.all
	}
	for i := range m.windows {
		if w := &m.windows[i]; t >= w.from && t < w.to {
			return w.t
		}
	}
	return m.all
}

// pickerCache keeps the picker of the last minute: requests come in order of time.
type pickerCache struct {
	minute int64
	p      *picker
}

const minuteS = 60

// at is the picker of a moment of the schedule.
func (m *lengthModel) at(t float64) *picker {
	if m.flat {
		if m.pickers.p == nil {
			m.pickers.p = newPicker(m.all, nil, false)
		}
		return m.pickers.p
	}
	t = m.clock.fold(t)
	minute := int64((t - m.clock.origin) / minuteS)
	if m.pickers.p != nil && m.pickers.minute == minute {
		return m.pickers.p
	}
	table := m.table(t)
	p := newPicker(table, m.drift.weights(minute, table), m.drift != nil && m.drift.outputsOnly)
	if p.nothing {
		p = newPicker(m.all, nil, false)
	}
	m.pickers = pickerCache{minute, p}
	return p
}
