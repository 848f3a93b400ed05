package synth

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
)

// source gives the starts of sessions.
type source struct {
	next func() (t float64, ok bool)
	// group is whose session starts; many sources have one only.
	group  *groupModel
	choose *weighted // of the model's groups, where group is nil
	stream *rngStream
	shapes []shapeID // of each start; nil = in order
	starts int64
	single bool // sessions of one turn: a burst
}

// schedule is the sources of a model and the window that is wanted.
type schedule struct {
	length  float64 // s; +Inf = until the number of requests is reached
	sources []*source
	dated   bool // the schedule's zero is the profile's
}

// schedule settles the duration and rates, and makes the sources.
func (m *model) schedule() (*schedule, error) {
	s := &schedule{length: m.o.Duration.Seconds()}
	if s.length == 0 && m.o.RateSeries != nil {
		s.length = m.o.RateSeries[len(m.o.RateSeries)-1].At.Seconds()
	}
	if s.length == 0 && m.p != nil && m.o.Requests == 0 {
		s.length = m.clock.length
	}
	if s.length == 0 && m.o.RateSeries != nil {
		return nil, fault.Mark(errors.New("a rate series of one point needs a duration"), fault.Usage, "")
	}
	if s.length == 0 {
		s.length = math.Inf(1)
	}
	total := 0.0
	for _, g := range m.groups {
		total += g.rate
	}
	rate := m.o.RequestRate
	if rate == 0 && m.p != nil {
		rate = total * orOne(m.o.Scale)
	}
	for _, b := range m.o.Bursts {
		if b.At.Seconds() >= s.length {
			return nil, fault.Mark(fmt.Errorf("a burst at %v begins after the end at %v", b.At, seconds(s.length)), fault.Usage, "")
		}
	}
	m.clock.from = m.o.From.Seconds()
	if expected := rate * s.length; m.o.Requests == 0 && expected > maxArrivals || rate > maxRate {
		return nil, fault.Mark(fmt.Errorf("%.3g requests at %.6g/s are more than %d", expected, rate, maxArrivals), fault.Usage, "")
	}
	if m.o.From > 0 && (m.p == nil || m.shaped() || m.o.From.Seconds() >= m.clock.length) {
		return nil, fault.Mark(fmt.Errorf("a begin at %v needs %s arrivals of a profile that is longer than that", m.o.From, ArrivalsProfile), fault.Usage, "")
	}
	if kind := m.kind(); kind != ArrivalsProfile {
		m.plainSources(s, kind, rate, total)
		return s, nil
	}
	m.profileSources(s, rate, total)
	return s, nil
}

func orOne(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

// wanted is the rate of requests over [from, to): flat, a ramp or a series, before zero as at zero.
func (m *model) wanted(s *schedule, rate, from float64) *curve {
	c := &curve{}
	end := s.length
	if math.IsInf(end, 1) {
		n := float64(m.o.Requests)
		cv2 := 1 / orOne(m.o.Burstiness)
		end = (n + 40*math.Sqrt(n*(1+cv2)) + 40*cv2 + 40) / rate // far more than the requests need
	}
	if m.o.RateSeries != nil {
		whole := m.o.RateSeries.curve(s.length)
		begin := cursor{c: whole}
		r0 := begin.rate(0)
		c.add(from, 0, r0, r0)
		for _, g := range whole.segs {
			c.add(g.from, g.to, g.r0, g.r1)
		}
		return c
	}
	to := rate
	if m.o.RateEnd > 0 {
		to = m.o.RateEnd
	}
	c.add(from, 0, rate, rate)
	c.add(0, end, rate, to)
	return c
}

// plainSources is one process for all groups, which are chosen by their share of the requests.
func (m *model) plainSources(s *schedule, kind string, rate, total float64) {
	law := exponentialGaps
	switch kind {
	case Constant:
		law = gapLaw{dist: constantGaps}
	case Gamma:
		law = gammaGaps(m.o.Burstiness)
	}
	choose, byRequest := &weighted{}, &weighted{}
	sessions, lead := 0.0, 0.0
	for i, g := range m.groups {
		choose.add(int64(i), int64(i), g.rate/g.turns)
		byRequest.add(int64(i), int64(i), g.rate)
		sessions += g.rate / g.turns
		lead = max(lead, g.leadIn())
	}
	starts := m.wanted(s, rate, -lead).scaled(sessions / total)
	r := rng.New(m.o.Seed, "synth", "arrival")
	p := newProcess(starts, always(law), r)
	s.sources = append(s.sources, &source{next: p.next, choose: choose, stream: newStream(m.o.Seed, "groups")})
	for i, b := range m.o.Bursts {
		extra := m.wanted(s, rate, 0).within(b.At.Seconds(), b.At.Seconds()+b.For.Seconds()).scaled(b.X - 1)
		p := newProcess(extra, always(law), rng.New(m.o.Seed, "synth", "burst", strconv.Itoa(i)))
		s.sources = append(s.sources, &source{next: p.next, choose: byRequest, stream: newStream(m.o.Seed, "burst groups", strconv.Itoa(i)), single: true})
	}
}

// leadIn is how long before the window sessions must start so that the window sees later turns from its begin on.
func (g *groupModel) leadIn() float64 {
	if g.sessions.turns.tail(1) == 0 {
		return 0
	}
	longest := int64(0)
	for i := range int64(spanSamples) {
		longest = max(longest, g.sessions.span(rng.Hash(g.seed, 2), shapeID{number: i}))
	}
	return min(float64(longest)/1e6, maxLeadIn)
}

const (
	spanSamples = 2_000
	maxLeadIn   = 6 * 3_600 // s
)

// profileSources is one process per group, by the group's own law and rate curve.
func (m *model) profileSources(s *schedule, rate, total float64) {
	length := s.length
	if math.IsInf(length, 1) {
		length = m.clock.length * math.Ceil(float64(m.o.Requests)/(rate*m.clock.length)*2+1)
	}
	s.dated = !m.shaped() && m.clock.dated
	curves := make([]*curve, len(m.groups))
	expected := 0.0
	for i, g := range m.groups {
		// The curve is that of the profile; the drawn sessions bring its requests.
		curves[i] = g.curve.scaled(g.rate * m.clock.length / (g.curve.total() * g.turns))
		expected += m.window(curves[i], 0, length).total() * g.turns
	}
	scale := orOne(m.o.Scale)
	if m.o.RequestRate > 0 && expected > 0 {
		scale = m.o.RequestRate * length / expected
	}
	var placed []*placing
	for i, g := range m.groups {
		if m.shaped() {
			share := g.rate / total
			m.addSource(s, g, m.wanted(s, rate, -g.leadIn()).scaled(share/g.turns))
			m.addBursts(s, g, m.wanted(s, rate, 0).scaled(share))
			continue
		}
		whole := g.sessions.turns.tail(1) > 0 && g.inputs == nil && length >= m.clock.length && m.clock.from == 0
		lead := 0.0
		if !whole {
			lead = g.leadIn()
		}
		starts := m.window(curves[i], -lead, length).scaled(scale)
		src := m.addSource(s, g, starts)
		if whole {
			requests := m.requestCurve(g, scale*g.rate*m.clock.length/float64(g.tables.requests()), length/m.clock.length)
			placed = append(placed, src.drawAll(g, requests))
		}
		m.addBursts(s, g, starts.within(0, length).scaled(g.turns))
	}
	arrange(placed, micros(length))
}

// window is a curve of the profile's window in [from, to) of the trace; the window repeats.
func (m *model) window(c *curve, from, to float64) *curve {
	return c.tiled(m.clock.length, m.clock.from+from, m.clock.from+to).shifted(-m.clock.from)
}

func (m *model) addSource(s *schedule, g *groupModel, c *curve) *source {
	law := func(t float64) gapLaw { return g.plan.law(m.clock.fold(t)) }
	p := newProcess(c, law, rng.New(m.o.Seed, "synth", "arrival", g.tables.tenant, g.tables.class))
	src := &source{next: p.next, group: g}
	s.sources = append(s.sources, src)
	return src
}

func (m *model) addBursts(s *schedule, g *groupModel, requests *curve) {
	for i, b := range m.o.Bursts {
		extra := requests.within(b.At.Seconds(), b.At.Seconds()+b.For.Seconds()).scaled(b.X - 1)
		law := func(t float64) gapLaw { return g.plan.law(m.clock.fold(t)) }
		p := newProcess(extra, law, rng.New(m.o.Seed, "synth", "burst", strconv.Itoa(i), g.tables.tenant, g.tables.class))
		s.sources = append(s.sources, &source{next: p.next, group: g, single: true})
	}
}

// placing is a group whose sessions are placed in the window: what the profile saw of sessions in its window is what the
// trace has in its own.
type placing struct {
	g        *groupModel
	src      *source
	starts   []int64 // µs
	requests *curve  // nil = not known
}

// drawAll draws all starts of a source.
func (s *source) drawAll(g *groupModel, requests *curve) *placing {
	p := &placing{g: g, src: s, requests: requests}
	var at []float64
	for t, ok := s.next(); ok; t, ok = s.next() {
		at, p.starts = append(at, t), append(p.starts, micros(t))
	}
	i := 0
	s.next = func() (float64, bool) {
		if i == len(at) {
			return 0, false
		}
		i++
		return at[i-1], true
	}
	return p
}

// arrange gives all starts the shapes that fit before the end, group by group, the largest first: the smallest go by what
// those have left of the minutes of all.
func arrange(groups []*placing, end int64) {
	var all *minutes
	if len(groups) > 1 {
		all = newMinutes(end)
		for _, p := range groups {
			if p.requests != nil {
				all.add(p.requests, p.starts)
			}
		}
		all.settle()
	}
	slices.SortStableFunc(groups, func(a, b *placing) int { return cmp.Compare(b.g.rate, a.g.rate) })
	for _, p := range groups {
		p.src.shapes = newPlacer(p.g.sessions, rng.Hash(p.g.seed, 2), end, p.starts, p.requests, all).place(p.starts)
	}
}

func micros(t float64) int64 { return int64(math.Round(t * 1e6)) }
