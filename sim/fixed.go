package sim

import (
	"container/heap"
	"slices"

	"tailgate/schemas"
)

// fixedEngine is one replica whose slots serve each request in the same time, first come, first served: with
// Poisson arrivals and one slot an M/D/1 queue, with more an M/D/c, whose waits are known.
type fixedEngine struct {
	service int64 // ns
	slots   int
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

func newFixedEngine(c Config, slow float64) *fixedEngine {
	return &fixedEngine{service: max(1, int64(float64(c.Service)*slow)), slots: c.MaxNumSeqs}
}

func (e *fixedEngine) submit(now int64, r *request) {
	e.waiting.pushBack(r)
	e.fill(now)
}

// fill puts waiting requests into free slots.
func (e *fixedEngine) fill(now int64) {
	for len(e.busy) < e.slots && e.waiting.len() > 0 {
		r := e.waiting.popFront()
		r.place, r.scheduled = running, now
		heap.Push(&e.busy, served{r: r, at: e.due(r), order: e.order})
		e.order++
	}
}

// due returns the time of r's next token.
func (e *fixedEngine) due(r *request) int64 {
	whole, rest := e.service/int64(r.output), e.service%int64(r.output)
	n := int64(r.generated) + 1
	return r.scheduled + whole*n + rest*n/int64(r.output)
}

// begin has nothing to form: a request starts when it has a slot.
func (e *fixedEngine) begin(int64) {}

func (e *fixedEngine) next() (int64, bool) {
	if len(e.busy) == 0 {
		return 0, false
	}
	return e.busy[0].at, true
}

// finish emits the next token due.
func (e *fixedEngine) finish(emit func(schemas.EngineEvent)) {
	top := &e.busy[0]
	r, now := top.r, top.at
	if r.generated == 0 {
		e.n.promptTokens += int64(r.prompt)
	}
	ev := r.token(now)
	e.n.generationTokens += int64(ev.Tokens)
	e.n.steps++
	if ev.Done {
		heap.Pop(&e.busy)
		e.leave(r, now)
		e.n.ended(ev.Status)
	} else {
		top.at = e.due(r)
		heap.Fix(&e.busy, 0)
	}
	emit(ev)
}

func (e *fixedEngine) leave(r *request, now int64) {
	r.place = gone
	e.n.busy += now - r.scheduled
	e.fill(now)
}

func (e *fixedEngine) cancel(now int64, r *request) {
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

func (e *fixedEngine) inFlight() int { return len(e.busy) + e.waiting.len() }

func (e *fixedEngine) stats() ReplicaStats {
	s := e.n.stats()
	s.Running, s.Waiting = len(e.busy), e.waiting.len()
	return s
}
