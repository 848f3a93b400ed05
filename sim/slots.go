package sim

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// slotEngine is one replica whose slots serve one request each, first come, first served, in a time that is
// fixed or drawn: with Poisson arrivals an M/D/c, M/M/c or M/G/c queue, whose waits are known.
type slotEngine struct {
	cfg     *Config
	pace    pace
	later   *later
	waiting deque
	busy    serving
	order   int64
	n       counts
}

// served is a request in a slot with the time of its next token.
type served struct {
	r     *request
	at    int64
	order int64
}

// serving is a heap by time, then by the order of admission.
type serving []served

func (h serving) Len() int { return len(h) }
func (h serving) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h serving) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *serving) Push(x any)   { *h = append(*h, x.(served)) }
func (h *serving) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

func newSlotEngine(c *Config, p pace, l *later) *slotEngine {
	return &slotEngine{cfg: c, pace: p, later: l}
}

func (e *slotEngine) submit(now int64, r *request) {
	e.waiting.pushBack(r)
	e.fill(now)
}

// fill puts waiting requests into free slots.
func (e *slotEngine) fill(now int64) {
	for len(e.busy) < e.cfg.MaxNumSeqs && e.waiting.len() > 0 {
		r := e.waiting.popFront()
		r.place, r.scheduled = running, now
		e.draw(now, r)
		heap.Push(&e.busy, served{r: r, at: e.due(r), order: e.order})
		e.order++
	}
}

// Names of the counter-based draws of a request's times.
const (
	drawService = 0x73657276 + iota
	drawPrefill
)

// draw sets r's times, from the seed and r.draw alone.
func (e *slotEngine) draw(now int64, r *request) {
	c := e.cfg
	t := float64(c.Service)
	switch c.Dist {
	case Exponential:
		t *= exponential(c.Seed, drawService, r.draw)
	case Lognormal:
		// Mean exp(µ + σ²/2) = service, CV² = exp(σ²) − 1.
		s2 := math.Log1p(c.CV * c.CV)
		z := math.Sqrt2 * math.Erfinv(2*rng.Float(c.Seed, drawService, r.draw)-1)
		t *= math.Exp(math.Sqrt(s2)*z - s2/2)
	}
	if c.MaxService > 0 {
		t = min(t, float64(c.MaxService))
	}
	f := float64(c.Prefill)
	if c.PrefillExp > 0 {
		f += float64(c.PrefillExp) * exponential(c.Seed, drawPrefill, r.draw)
	}
	slow := e.pace.at(now)
	r.service = int64(min(max(1, math.Round(t*slow)), float64(maxService)))
	r.prefill = min(int64(f*slow), r.service)
}

// maxService bounds a service time, so that sums of times stay in an int64.
const maxService = 1000 * 24 * time.Hour

// exponential returns a draw of mean 1.
func exponential(keys ...uint64) float64 { return -math.Log1p(-rng.Float(keys...)) }

// due returns the time of r's next token.
func (e *slotEngine) due(r *request) int64 {
	n, of, start := int64(r.generated)+1, int64(r.output), r.scheduled
	length := r.service
	if r.prefill > 0 && of > 1 {
		start += r.prefill
		length -= r.prefill
		n--
		of--
	}
	whole, rest := length/of, length%of
	return start + whole*n + rest*n/of
}

// begin has nothing to form: a request starts when it has a slot.
func (e *slotEngine) begin(int64) {}

func (e *slotEngine) next() (int64, bool) {
	if len(e.busy) == 0 {
		return 0, false
	}
	return e.busy[0].at, true
}

// finish emits the next token due.
func (e *slotEngine) finish(emit func(schemas.EngineEvent)) {
	top := &e.busy[0]
	r, now := top.r, top.at
	if r.generated == 0 {
		e.n.promptTokens += int64(r.prompt)
	}
	made := r.generated
	var ev schemas.EngineEvent
	shown := r.token(now, &ev)
	e.n.generationTokens += int64(r.generated - made)
	e.n.steps++
	if shown && ev.Done {
		heap.Pop(&e.busy)
		e.leave(r, now)
		e.n.ended(ev.Status)
	} else {
		top.at = e.due(r)
		heap.Fix(&e.busy, 0)
	}
	if shown {
		emit(e.later.part(r, ev))
	}
}

func (e *slotEngine) leave(r *request, now int64) {
	r.place = gone
	e.n.busy += now - r.scheduled
	e.fill(now)
}

func (e *slotEngine) cancel(now int64, r *request) {
	switch r.place {
	case waiting:
		e.waiting.remove(r)
		r.place = gone
	case running:
		heap.Remove(&e.busy, slices.IndexFunc(e.busy, func(s served) bool { return s.r == r }))
		e.leave(r, now)
	case gone:
		return
	}
	e.n.aborted++
}

func (e *slotEngine) kill() []*request {
	slices.SortFunc(e.busy, func(a, b served) int { return cmp.Compare(a.order, b.order) })
	var lost []*request
	for _, s := range e.busy {
		lost = append(lost, s.r)
	}
	for e.waiting.len() > 0 {
		lost = append(lost, e.waiting.popFront())
	}
	e.busy = nil
	e.n.failed += int64(len(lost))
	return lost
}

func (e *slotEngine) cachedBlocks(*request) int { return 0 }

func (e *slotEngine) inFlight() int { return len(e.busy) + e.waiting.len() }

func (e *slotEngine) stats() ReplicaStats {
	s := e.n.stats()
	s.Running, s.Waiting = len(e.busy), e.waiting.len()
	return s
}
