package sim

import (
	"net/http"

	"tailgate/schemas"
)

// request is one request inside the engine. Times are ns since the schedule's zero.
type request struct {
	id             int64
	draw           uint64 // what faults are drawn by
	session        uint64 // hash of the session, for the router; 0 = none
	arrived        int64
	prompt, output int32    // tokens asked for, both at least 1
	keys           []uint64 // chain keys of the whole prompt blocks that may be shared
	block          int32    // tokens of a key's block
	streamed       bool
	fail           failure
	failAt         int32 // tokens that come before the failure
	shape          shape // how the answer goes over the wire
	replica        int32

	place     place
	scheduled int64 // first scheduled; -1 before
	first     int64 // first token
	cached    int32 // tokens that the first lookup found

	// Of an engine with slots: ns of service, and in it to the first token (0 = as the others).
	service, prefill int64

	// State of the step model.
	nodes     []int32 // cache nodes held, those of the first len(nodes) keys
	pages     int32   // KV pages held beside the nodes
	computed  int32   // tokens in KV
	generated int32   // tokens made; kept over a preemption
	sent      int32   // of these, emitted: the others wait for the rest of their chunk
	chunk     int32   // tokens of the step under way
	decoding  bool    // the prompt, and after a preemption the tokens so far, are in KV
}

type place uint8

const (
	waiting place = iota
	running
	gone
)

// left returns the tokens that must be computed before the next token comes out: 1 when decoding.
func (r *request) left() int32 { return r.prompt + r.generated - r.computed }

// token makes one more output token at the given time and sets ev to the event that it shows in, if it does: with
// chunks, tokens wait for the rest of theirs. The last one ends r.
func (r *request) token(at int64, ev *schemas.EngineEvent) (shown bool) {
	if r.fail != failNone && r.generated == r.failAt {
		*ev = r.end(at, r.failStatus(), r.failHTTP())
		return true
	}
	if r.generated == 0 {
		r.first = at
	}
	r.generated++
	n := r.generated - r.sent
	if r.generated < r.output {
		// Reasoning and answer never share an event.
		if n < r.shape.chunk && r.generated != r.shape.reasoning {
			return false
		}
		r.sent = r.generated
		*ev = schemas.EngineEvent{ID: r.id, AtNs: at, Tokens: n, Reasoning: r.generated <= r.shape.reasoning, Target: r.replica}
		return true
	}
	r.sent = r.generated
	*ev = r.end(at, schemas.ResultOK, http.StatusOK)
	ev.Tokens, ev.Reasoning = n, r.generated <= r.shape.reasoning
	return true
}

// end returns the event that ends r.
func (r *request) end(at int64, status string, code int32) schemas.EngineEvent {
	ev := schemas.EngineEvent{ID: r.id, AtNs: at, Done: true, Status: status, HTTP: code, Target: r.replica,
		InputTokens: r.prompt, OutputTokens: r.sent, CachedTokens: r.cached, ReasoningTokens: min(r.sent, r.shape.reasoning)}
	if r.scheduled >= 0 {
		ev.QueueNs = r.scheduled - r.arrived
		if r.generated > 0 {
			ev.PrefillNs = r.first - r.scheduled
		}
	}
	return ev
}

// deque is a queue that preempted requests re-enter at the front.
type deque struct {
	ring []*request // length a power of two
	head int
	n    int
}

func (q *deque) len() int { return q.n }

func (q *deque) front() *request { return q.ring[q.head] }

func (q *deque) pushBack(r *request) {
	q.grow()
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = r
	q.n++
}

func (q *deque) pushFront(r *request) {
	q.grow()
	q.head = (q.head - 1) & (len(q.ring) - 1)
	q.ring[q.head] = r
	q.n++
}

func (q *deque) popFront() *request {
	r := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return r
}

// remove takes r out, wherever it stands, keeping the order of the others.
func (q *deque) remove(r *request) {
	for n := q.n; n > 0; n-- {
		if x := q.popFront(); x != r {
			q.pushBack(x)
		}
	}
}

func (q *deque) grow() {
	if q.n < len(q.ring) {
		return
	}
	ring := make([]*request, max(16, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = ring, 0
}
