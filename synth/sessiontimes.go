package synth

import (
	"math/rand/v2"
	"sort"

	"tailgate/internal/rng"
)

// shapeID names the shape of a session: turns come from the number, the times between them also from the attempt.
type shapeID struct {
	number  int64
	attempt int64
}

// turnTimes are the times of a session's turns, drawn from a stream of their own: they can be drawn again.
type turnTimes struct {
	m     *sessionModel
	r     *rand.Rand
	pcg   rand.PCG
	turns int // that are to come
	at    int // place of the last one
}

func (m *sessionModel) times(seed uint64, id shapeID) *turnTimes {
	s := &turnTimes{m: m}
	s.pcg.Seed(rng.Hash(seed, 1), uint64(id.number))
	s.r = rand.New(&s.pcg)
	s.turns = int(m.turns.draw(s.r)) - 1
	if id.attempt > 0 {
		s.pcg.Seed(rng.Hash(seed, 2, uint64(id.attempt)), uint64(id.number))
	}
	return s
}

// next gives the time to the next turn, in µs; ok is false after the last.
func (s *turnTimes) next() (gap int64, ok bool) {
	if s.turns <= 0 {
		return 0, false
	}
	s.turns--
	s.at++
	return s.m.gap(s.at, s.r), true
}

// span is the time from the first to the last turn, in µs.
func (m *sessionModel) span(seed uint64, id shapeID) int64 {
	s, sum := m.times(seed, id), int64(0)
	for gap, ok := s.next(); ok; gap, ok = s.next() {
		sum = min(sum+gap, maxSeconds*1_000_000)
	}
	return sum
}

// Placing sessions in a window.
const (
	placeAttempts = 100 // to draw times that fit into the window
	placeTrials   = 24  // starts that are looked at for a session
	placeBinUs    = 60_000_000
)

// minutes are the later turns that each minute of a window is to have.
type minutes struct {
	want []float64
	room []float64 // of want, what is not yet placed
}

func newMinutes(end int64) *minutes { return &minutes{want: make([]float64, end/placeBinUs+1)} }

// add wants the requests of a curve (of the whole window, in requests per second), less the starts (µs).
func (m *minutes) add(requests *curve, starts []int64) {
	for _, s := range requests.segs {
		for t := s.from; t < s.to; {
			bin := int(t * 1e6 / placeBinUs)
			to := min(s.to, float64(bin+1)*placeBinUs/1e6)
			if bin < len(m.want) {
				m.want[bin] += (to - t) * (s.at(t) + s.at(to)) / 2
			}
			t = to
		}
	}
	for _, us := range starts {
		m.want[us/placeBinUs]--
	}
}

// settle ends the adding. few tells that it is mostly chance in which of the minutes the turns were.
func (m *minutes) settle() (few bool) {
	sum := 0.0
	for i, want := range m.want {
		sum += want
		m.want[i] = max(want, 0.5)
	}
	m.room = append([]float64(nil), m.want...)
	return sum < fewTurns*float64(len(m.want))
}

// fewTurns is how many later turns a minute has on average from which on a group shows in which minutes they are.
const fewTurns = 2

// placer gives session starts their shapes, so that what the profile saw of sessions in its window is what the trace
// has in its own: as many turns, and these at the minutes when requests came.
type placer struct {
	m    *sessionModel
	seed uint64
	end  int64    // µs
	by   *minutes // where turns are wanted; nil = not known
	also *minutes // where they count too; nil = nowhere
	r    *rand.Rand

	offsets []int64 // of the later turns of the session that is placed
}

// newPlacer wants the requests of a curve, less the starts, as minutes.add takes them. A group that has too few goes by
// the minutes of all groups, where there are others.
func newPlacer(m *sessionModel, seed uint64, end int64, starts []int64, requests *curve, all *minutes) *placer {
	p := &placer{m: m, seed: seed, end: end, r: rng.New(seed, "synth", "places")}
	if requests == nil {
		return p
	}
	p.by, p.also = newMinutes(end), all
	p.by.add(requests, starts)
	if few := p.by.settle(); few && all != nil {
		p.by, p.also = all, nil
	}
	return p
}

// place returns the shape of each start (µs, ascending): the longest first, each at one of the starts that are early
// enough for it. A shape for which none is left loses its last turns.
func (p *placer) place(starts []int64) []shapeID {
	type long struct {
		span int64
		id   shapeID
	}
	shapes := make([]long, len(starts))
	for i := range shapes {
		l := &shapes[i]
		l.id.number = int64(i)
		for l.span = p.m.span(p.seed, l.id); l.span >= p.end && l.id.attempt < placeAttempts; l.span = p.m.span(p.seed, l.id) {
			l.id.attempt++
		}
	}
	sort.SliceStable(shapes, func(a, b int) bool { return shapes[a].span > shapes[b].span })
	out := make([]shapeID, len(starts))
	free := make([]int32, 0, len(starts))
	reached := 0
	for _, s := range shapes {
		for reached < len(starts) && (starts[reached]+s.span < p.end || len(free) == 0) {
			free = append(free, int32(reached))
			reached++
		}
		k := p.r.IntN(len(free))
		if s.span > 0 && p.by != nil {
			k = p.best(starts, free, s.id)
		}
		out[free[k]] = s.id
		free[k] = free[len(free)-1]
		free = free[:len(free)-1]
	}
	return out
}

// best is the place in free of the start whose later turns fall where most are still wanted.
func (p *placer) best(starts []int64, free []int32, id shapeID) int {
	p.offsets = p.offsets[:0]
	times, at := p.m.times(p.seed, id), int64(0)
	for gap, ok := times.next(); ok; gap, ok = times.next() {
		at += gap
		p.offsets = append(p.offsets, at)
	}
	best, least := 0, 0.0
	for trial := range placeTrials {
		k := p.r.IntN(len(free))
		if cost := p.cost(starts[free[k]]); trial == 0 || cost < least {
			best, least = k, cost
		}
	}
	for _, offset := range p.offsets {
		if us := starts[free[best]] + offset; us < p.end {
			p.by.room[us/placeBinUs]--
			if p.also != nil {
				p.also.room[us/placeBinUs]--
			}
		}
	}
	return best
}

// cost says how full the minutes of the later turns are after a start.
func (p *placer) cost(start int64) (cost float64) {
	for _, offset := range p.offsets {
		us := start + offset
		if us >= p.end {
			cost++ // the turn is lost
			continue
		}
		bin := us / placeBinUs
		cost -= p.by.room[bin] / p.by.want[bin]
	}
	return cost
}
