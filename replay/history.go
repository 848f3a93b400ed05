package replay

import (
	"sync"

	"tailgate/schemas"
)

// Values of Options.History: what the prompt of a later turn holds of the turns before it.
const (
	// HistoryTrace sends the prompt of the trace whole, which stands for the answers that were given then.
	HistoryTrace = "trace"
	// HistoryLive joins what this run's target answered to the next turn's prompt. It needs TurnsThink: a turn
	// cannot be built before the one in front of it has ended.
	HistoryLive = "live"
)

// Answer is what a target answered, kept in memory for the next turn of its session and never written.
type Answer struct {
	Text     string
	TokenIDs []int32 // where the target returns them; else nil
}

// Exchange is a turn that has ended well, with what was asked before it in its session.
type Exchange struct {
	Row    *schemas.TraceRow
	Answer Answer
	Before *Exchange // nil = a first turn, or one whose parent failed
}

// history holds the exchanges that turns to come build on. It is safe for concurrent use.
type history struct {
	parent []int32 // of each row of the plan; -1 = none

	mu   sync.Mutex
	left []int32 // turns that have yet to take the exchange of each row
	kept map[int32]*Exchange
}

func newHistory(p *Plan) *history {
	h := &history{parent: p.parents(), left: make([]int32, p.Len()), kept: map[int32]*Exchange{}}
	for _, parent := range h.parent {
		if parent >= 0 {
			h.left[parent]++
		}
	}
	return h
}

// prepare hands c what went before it, and tells whether its answer will be needed.
func (h *history) prepare(c *Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := int32(c.Index)
	c.KeepAnswer = h.left[i] > 0
	parent := h.parent[i]
	if parent < 0 {
		return
	}
	c.Before = h.kept[parent]
	if h.left[parent]--; h.left[parent] == 0 {
		delete(h.kept, parent)
	}
}

// keep takes the answer of a call that has ended. A failed one breaks the chain: the next turn sends the prompt
// of the trace.
func (h *history) keep(c *Call) {
	if c.KeepAnswer && c.Outcome.Status == schemas.ResultOK {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.kept[int32(c.Index)] = &Exchange{Row: c.Row, Answer: c.Outcome.Answer, Before: c.Before}
	}
	c.Outcome.Answer = Answer{}
}
