package synth

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// rngStream is a named sub-stream.
type rngStream struct{ *rand.Rand }

func newStream(seed uint64, name ...string) *rngStream {
	return &rngStream{rng.New(seed, append([]string{"synth"}, name...)...)}
}

// dialog is a session under way.
type dialog struct {
	g       *groupModel
	times   *turnTimes // nil = one turn
	name    *string
	begun   bool // a turn was drawn, sent or not
	in, out int32
	ids     []int64 // of the last prompt
	common  int     // leading ids that other sessions have too
	turn    int32   // rows sent
	parent  int64   // row of the last turn
}

// event is what comes at a moment: a turn of a session, or the next start of a source.
type event struct {
	us      int64
	seq     int64 // order of events at one instant
	session *dialog
	source  *source
}

// events is a binary heap by time.
type events []event

func (e events) less(a, b int) bool {
	return e[a].us < e[b].us || e[a].us == e[b].us && e[a].seq < e[b].seq
}

func (e *events) push(x event) {
	*e = append(*e, x)
	h := *e
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// replaceTop puts x in the place of the first event; pop removes it.
func (e *events) replaceTop(x event) {
	(*e)[0] = x
	e.sink()
}

func (e *events) pop() {
	h := *e
	h[0] = h[len(h)-1]
	h[len(h)-1] = event{}
	*e = h[:len(h)-1]
	e.sink()
}

func (e *events) sink() {
	h := *e
	for i := 0; ; {
		low := i
		for _, k := range [2]int{2*i + 1, 2*i + 2} {
			if k < len(h) && h.less(k, low) {
				low = k
			}
		}
		if low == i {
			return
		}
		h[i], h[low] = h[low], h[i]
		i = low
	}
}

// Generate makes the trace of FromProfile row by row, in schedule order, and hands each row to emit, which may keep
// the row's lists but not the row. Memory is that of the sessions under way.
func Generate(ctx context.Context, p *profile.Profile, o ModelOptions, emit func(*schemas.TraceRow) error) (trace.Meta, []string, error) {
	m, err := prepare(ctx, p, o)
	if err != nil {
		return trace.Meta{}, nil, err
	}
	meta, err := m.run(ctx, emit)
	return meta, m.notes, err
}

// prepare settles everything that does not depend on time.
func prepare(ctx context.Context, p *profile.Profile, o ModelOptions) (*model, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	m, err := newModel(ctx, p, &o)
	if err != nil {
		return nil, fmt.Errorf("synthesizing: %w", err)
	}
	return m, nil
}

// run draws the traffic once; a model can be run several times, also at once.
func (m *model) run(ctx context.Context, emit func(*schemas.TraceRow) error) (trace.Meta, error) {
	m = m.fresh()
	s, err := m.schedule()
	if err != nil {
		return trace.Meta{}, fmt.Errorf("synthesizing: %w", err)
	}
	g := &generator{m: m, s: s, emit: emit, draws: map[*groupModel]*rand.Rand{}, named: m.block > 0}
	for _, x := range m.groups {
		g.named = g.named || x.sessions.turns.tail(1) > 0
	}
	if err := g.run(ctx); err != nil {
		return trace.Meta{}, fmt.Errorf("synthesizing: %w", err)
	}
	return g.meta(), nil
}

// generator runs the schedule.
type generator struct {
	m      *model
	s      *schedule
	emit   func(*schemas.TraceRow) error
	events events
	seq    int64
	draws  map[*groupModel]*rand.Rand // lengths and blocks of each group
	named  bool                       // rows have session names
	rows   int64
	opened int64 // sessions with a row
}

const checkEvery = 1 << 12 // rows between two looks at the context

func (g *generator) run(ctx context.Context) error {
	for _, x := range g.m.groups {
		g.draws[x] = rng.New(x.seed, "synth", "lengths")
	}
	for _, src := range g.s.sources {
		g.startNext(src, false)
	}
	end := int64(math.MaxInt64)
	if !math.IsInf(g.s.length, 1) {
		end = micros(g.s.length)
	}
	for n := 0; len(g.events) > 0; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e := g.events[0]
		if e.us >= end {
			return nil
		}
		session := e.session
		if e.source != nil {
			session = g.open(e.source)
			g.startNext(e.source, true)
		}
		if err := g.turn(session, e.us, e.session != nil); err != nil {
			return err
		}
		if g.m.o.Requests > 0 && g.rows == g.m.o.Requests {
			return nil
		}
	}
	return nil
}

// startNext queues the next start of a source; replace puts it in the place of the first event.
func (g *generator) startNext(src *source, replace bool) {
	t, ok := src.next()
	switch {
	case ok:
		e := event{us: micros(t), seq: g.seq, source: src}
		g.seq++
		if replace {
			g.events.replaceTop(e)
		} else {
			g.events.push(e)
		}
	case replace:
		g.events.pop()
	}
}

// open begins the session of a source's start.
func (g *generator) open(src *source) *dialog {
	x := src.group
	if x == nil {
		x = g.m.groups[src.choose.draw(src.stream.Rand)]
	}
	s := &dialog{g: x}
	if !src.single && x.sessions.turns.tail(1) > 0 {
		id := shapeID{number: src.starts}
		if src.shapes != nil {
			id = src.shapes[src.starts]
		}
		s.times = x.sessions.times(rng.Hash(x.seed, 2), id)
	}
	src.starts++
	return s
}

// turn draws and sends the turn of a session, and queues the one after it. queued tells that the turn's event is the
// first of the heap.
func (g *generator) turn(s *dialog, us int64, queued bool) error {
	more, gap := false, int64(0)
	if g.draw(s, us) {
		if us >= 0 {
			if err := g.send(s, us); err != nil {
				return err
			}
		}
		if s.times != nil {
			gap, more = s.times.next()
		}
	}
	switch {
	case more:
		e := event{us: us + gap, seq: g.seq, session: s}
		g.seq++
		if queued {
			g.events.replaceTop(e)
		} else {
			g.events.push(e)
		}
	case queued:
		g.events.pop()
	}
	return nil
}

// draw draws lengths and blocks of the next turn; false ends the session.
func (g *generator) draw(s *dialog, us int64) bool {
	r, x := g.draws[s.g], s.g
	p := x.lengths.at(float64(us) / 1e6)
	if !s.begun {
		s.in, s.out = p.draw(r, s.kind())
		s.ids, s.common = x.prefix.first(s.in, r)
		s.begun = true
		return true
	}
	next, ok := x.nextTurn(p, s.in, s.out, r)
	if !ok {
		return false
	}
	s.ids = x.prefix.later(s.ids, s.common, s.in, next[0], x.sessions.carry, r)
	s.in, s.out = next[0], next[1]
	return true
}

// kind is what the first turn of the session is.
func (s *dialog) kind() kind {
	switch {
	case s.times == nil:
		return anyTurn
	case s.times.turns == 0:
		return singleTurn
	}
	return firstOfMany
}

// send hands out the row of a session's drawn turn.
func (g *generator) send(s *dialog, us int64) error {
	row := schemas.TraceRow{Row: g.rows, SourceRow: g.rows, ScheduledUs: us, Tenant: s.g.tenant, Class: s.g.class, Turn: s.turn,
		InputTokens: s.in, OutputTokens: new(int32), HashIDs: s.ids, Model: g.m.named}
	*row.OutputTokens = s.out
	if s.turn > 0 {
		parent := s.parent
		row.Parent = &parent
	}
	if g.named {
		if s.name == nil {
			name := "s_" + strconv.FormatInt(g.opened, 10)
			s.name = &name
			g.opened++
		}
		row.Session = s.name
	}
	s.parent = g.rows
	s.turn++
	g.rows++
	return g.emit(&row)
}

func (g *generator) meta() trace.Meta {
	m := trace.Meta{Name: "synth", Unit: trace.UnitMicros, Convention: trace.ConventionCumulative, BlockSize: g.m.block, Seed: g.m.o.Seed}
	if !math.IsInf(g.s.length, 1) {
		m.LengthUs = micros(g.s.length)
	}
	if g.m.p != nil {
		m.Tokenizer = g.m.p.Meta[0].Tokenizer
	}
	if g.s.dated {
		m.StartedAt = g.m.clock.start.Add(seconds(g.m.clock.from - g.m.clock.origin))
	}
	return m
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
