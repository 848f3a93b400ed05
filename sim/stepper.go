package sim

import (
	"math"
	"slices"
	"time"

	"tailgate/schemas"
)

// stepper is one replica under the step model: continuous batching with chunked prefill (Yu et al., "Orca",
// OSDI 2022; Agrawal et al., "Sarathi-Serve", OSDI 2024) in the order of vLLM's V1 scheduler. Each step serves
// the running requests in the order of their admission, then admits from the queue, first come, first served,
// while the token budget, the sequence limit and the KV memory last. A request that needs a page when none is
// left takes it from the last admitted one, which goes back to the head of the queue and is computed anew.
//
// A step is formed as late as possible, see begin, so that all requests of one instant share it.
type stepper struct {
	cfg   Config
	pace  pace
	later *later
	kv    *kvCache

	waiting deque
	running []*request
	inStep  bool
	endAt   int64
	pending bool // the next step starts at startAt
	startAt int64
	// stuck: the head of the queue did not fit and nothing has been given back since.
	stuck bool

	found []int32 // scratch of admit
	n     counts
}

// load is what one step computes: the symbols of Config's formula, with Q doubled to stay whole.
type load struct {
	p, s, k, q2 int64
}

func newStepper(c Config, p pace, l *later) *stepper {
	return &stepper{cfg: c, pace: p, later: l, kv: newKVCache(c.KVTokens, c.EngineBlock)}
}

func (e *stepper) submit(now int64, r *request) {
	e.waiting.pushBack(r)
	e.wake(now)
}

// wake plans a step at now where there is work and none is planned or under way.
func (e *stepper) wake(now int64) {
	if e.inStep || e.pending || len(e.running)+e.waiting.len() == 0 {
		return
	}
	e.pending, e.startAt = true, now
}

// begin forms the planned step if it starts before the given time.
func (e *stepper) begin(before int64) {
	if !e.pending || e.startAt >= before {
		return
	}
	e.pending = false
	d := e.cfg.stepTime(e.schedule(), e.pace.at(e.startAt))
	e.inStep, e.endAt = true, e.startAt+d
	e.n.steps++
	e.n.busy += d
}

func (e *stepper) next() (int64, bool) { return e.endAt, e.inStep }

// schedule sets the chunk of every request that the step computes.
func (e *stepper) schedule() load {
	var l load
	budget := int32(e.cfg.MaxBatchedTokens)
	preempted := false
	for i := 0; i < len(e.running) && budget > 0; i++ {
		r := e.running[i]
		n := min(r.left(), budget)
		for r.place == running && !e.kv.grow(r, r.computed+n) {
			e.preemptLast()
			preempted = true
		}
		if r.place != running {
			break
		}
		r.chunk = n
		budget -= n
		l.add(r)
	}
	for !preempted && !e.stuck && budget > 0 && e.waiting.len() > 0 && len(e.running) < e.cfg.MaxNumSeqs {
		r := e.waiting.front()
		if !e.admit(r) {
			e.stuck = true
			break
		}
		e.waiting.popFront()
		r.chunk = min(r.left(), budget)
		budget -= r.chunk
		// admit has seen that the whole prompt fits.
		e.kv.grow(r, r.computed+r.chunk)
		l.add(r)
	}
	return l
}

func (l *load) add(r *request) {
	if r.decoding {
		l.s++
		l.k += int64(r.computed)
		return
	}
	x := int64(r.chunk)
	l.p += x
	l.q2 += x * (2*int64(r.computed) + x)
}

// admit moves r to running, with the cached part of its prompt, if all of its prompt fits beside what the
// running requests hold now. At least one token is left to compute: a full repeat is never a full hit.
func (e *stepper) admit(r *request) bool {
	total := r.prompt + r.generated
	var idle int64
	e.found, idle = e.kv.match(r.keys[:r.wholeBlocks(total-1)], e.found[:0])
	hit := int32(len(e.found))
	need := e.kv.pagesFor(r, total) - int64(hit)*int64(e.kv.pagesOf(r.block))
	if need > e.kv.available()-idle {
		return false
	}
	for _, i := range e.found {
		e.kv.hold(i)
	}
	r.nodes = append(r.nodes[:0], e.found...)
	r.computed = hit * r.block
	r.place = running
	e.running = append(e.running, r)
	if r.scheduled < 0 {
		r.scheduled = e.startAt
		r.cached = r.computed
		e.n.prefixQueries += int64(r.prompt)
		e.n.prefixHits += int64(r.cached)
	}
	return true
}

// preemptLast takes all memory from the request admitted last and puts it back at the head of the queue.
func (e *stepper) preemptLast() {
	last := len(e.running) - 1
	r := e.running[last]
	e.running[last] = nil
	e.running = e.running[:last]
	e.release(r)
	r.computed, r.chunk, r.decoding = 0, 0, false
	r.place = waiting
	e.waiting.pushFront(r)
	e.n.preemptions++
}

func (e *stepper) release(r *request) {
	e.kv.release(r)
	e.stuck = false
}

// finish ends the step under way: every request whose prompt is in KV gets its next token.
func (e *stepper) finish(emit func(schemas.EngineEvent)) {
	now := e.endAt
	e.inStep = false
	kept := e.running[:0]
	var ev schemas.EngineEvent
	for _, r := range e.running {
		r.computed += r.chunk
		if r.chunk > 0 && r.left() == 0 {
			if !r.decoding && r.generated == 0 {
				e.n.promptTokens += int64(r.prompt)
			}
			r.decoding = true
			made := r.generated
			shown := r.token(now, &ev)
			e.n.generationTokens += int64(r.generated - made)
			switch {
			case !shown:
			case ev.Done:
				r.place = gone
				e.release(r)
				e.n.ended(ev.Status)
				emit(e.later.part(r, ev))
			default:
				emit(ev)
			}
		}
		r.chunk = 0
		if r.place == running {
			kept = append(kept, r)
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
	e.wake(now)
}

// cancel frees what r has at once. The step under way keeps its length.
func (e *stepper) cancel(_ int64, r *request) {
	switch r.place {
	case waiting:
		e.waiting.remove(r)
		e.stuck = false
	case running:
		i := slices.Index(e.running, r)
		e.running = slices.Delete(e.running, i, i+1)
		e.release(r)
	case gone:
		return
	}
	r.place = gone
	e.n.aborted++
	if len(e.running)+e.waiting.len() == 0 {
		e.pending = false
	}
}

// kill leaves an empty engine; its counters go on.
func (e *stepper) kill() []*request {
	lost := e.running
	for e.waiting.len() > 0 {
		lost = append(lost, e.waiting.popFront())
	}
	n := e.n
	n.failed += int64(len(lost))
	*e = *newStepper(e.cfg, e.pace, e.later)
	e.n = n
	return lost
}

func (e *stepper) cachedBlocks(r *request) int {
	e.found, _ = e.kv.match(r.keys, e.found[:0])
	return len(e.found)
}

func (e *stepper) inFlight() int { return len(e.running) + e.waiting.len() }

func (e *stepper) stats() ReplicaStats {
	s := e.n.stats()
	s.Running, s.Waiting, s.KVUsage = len(e.running), e.waiting.len(), e.kv.usage()
	return s
}

// maxStep bounds a step, so that sums of times stay in an int64: 13 days in ns.
const maxStep = 1 << 50

// stepTime returns the length of a step in ns, from 1 to maxStep. The conversions keep products from being fused into
// sums, so that every machine computes the same.
func (c *Config) stepTime(l load, slow float64) int64 {
	ms := c.A + float64(c.B*float64(l.p)) + float64(c.C*float64(l.s)) + float64(c.D*float64(l.k)) +
		float64(c.E*float64(float64(l.q2)/2))
	if c.F > 0 {
		untouched := math.Pow(1-float64(c.ActiveExperts)/float64(c.Experts), float64(l.p+l.s))
		ms += float64(c.F * (1 - untouched))
	}
	ns := float64(ms * slow * float64(time.Millisecond))
	return int64(min(max(1, math.Round(ns)), maxStep))
}
