package replay

import (
	"container/heap"
	"time"
)

// event is what the machine is told. Times never run backwards.
type event struct {
	kind   eventKind
	row    int           // evEnded: index of the row
	at     time.Duration // evEnded: when it ended, at most the now of the step
	failed bool          // evEnded: without success
	reason string        // evStop: why
}

type eventKind uint8

const (
	evTick  eventKind = iota // time has passed
	evEnded                  // a request has ended
	evStop                   // send nothing more
)

// send is one request that must leave now.
type send struct {
	row       int
	scheduled time.Duration
}

// Why a machine stopped (schemas.RunFacts.Stopped).
const (
	stopDuration = "duration"
	stopCount    = "count"
	stopSignal   = "signal"
	stopFailFast = "fail_fast"
	stopAbort    = "abort"
	stopRecorder = "recorder"
	stopAbortIf  = "abort_if"
)

// machine decides what is sent when. It is pure: no clock, no goroutine, no I/O.
type machine struct {
	plan        *Plan
	maxInflight int
	slots       *slots        // closed loop; nil = open loop
	deadline    time.Duration // 0 = none
	count       int64         // 0 = no limit

	cursor  int       // next row in plan order that waits for its stamp, or for a slot
	later   dueHeap   // turns=think: turns whose parent has ended
	waiting []send    // due, held back by the cap; a queue from head
	head    int       // of waiting
	parent  []int32   // turns=think: index of the parent, -1 = none; nil = every row goes by its stamp
	turns   [][]int32 // indices of the turns that follow each row; nil where nobody asks
	ends    bool      // a failed turn ends its session
	isSent  []bool
	dropped []bool // turns of ended sessions; nil where none ends
	drops   int64

	inflight   int
	sent       int64
	maxBacklog int
	stopped    string // "" = sending
	capReached bool
	out        []send // reused
}

func newMachine(p *Plan, o *Options) *machine {
	m := &machine{
		plan: p, maxInflight: o.MaxInflight, slots: newSlots(o.steps(), p.Len()),
		deadline: o.deadline(), count: o.Count, isSent: make([]bool, p.Len()),
		ends: o.FailedTurn == FailedTurnEnd,
	}
	if o.Turns != TurnsThink && !m.ends {
		return m
	}
	parent := p.parents()
	m.turns = make([][]int32, p.Len())
	for i, j := range parent {
		if j >= 0 {
			m.turns[j] = append(m.turns[j], int32(i))
		}
	}
	if o.Turns == TurnsThink {
		m.parent = parent
	}
	if m.ends {
		m.dropped = make([]bool, p.Len())
	}
	return m
}

// step tells the machine an event at the instant now and returns what must leave at once, in order. The result
// is valid until the next step.
func (m *machine) step(now time.Duration, ev event) []send {
	m.out = m.out[:0]
	switch ev.kind {
	case evEnded:
		m.inflight--
		if m.ends && ev.failed {
			m.drop(ev.row)
		}
		m.follow(ev.row, ev.at)
		if m.slots != nil {
			m.slots.release(ev.at)
		}
	case evStop:
		m.stop(ev.reason)
	}
	if m.deadline > 0 && now >= m.deadline {
		m.stop(stopDuration)
	}
	if m.slots != nil {
		m.slots.advance(now)
		m.fillSlots()
	} else {
		m.collectDue(now)
		m.release()
	}
	return m.out
}

// stop ends sending; the first reason stands. It is no stop when every row has been sent, but for an abort of
// what is still in flight.
func (m *machine) stop(reason string) {
	if !m.over() || m.stopped == "" && m.inflight > 0 && reason == stopAbort {
		m.stopped = reason
	}
}

// over tells that nothing will be sent any more.
func (m *machine) over() bool { return m.stopped != "" || m.sent+m.drops == int64(m.plan.Len()) }

// wake is the next instant at which a tick matters; false = none before a request ends.
func (m *machine) wake() (time.Duration, bool) {
	at, ok := time.Duration(0), false
	if m.over() {
		return 0, false
	}
	if m.slots == nil {
		at, _, ok = m.next()
	} else {
		at, ok = m.slots.next()
	}
	if m.deadline > 0 && (!ok || m.deadline < at) {
		at, ok = m.deadline, true
	}
	return at, ok
}

// follow makes the turns after row due: in think mode a turn goes when its parent has ended, plus the difference
// of their stamps.
func (m *machine) follow(row int, ended time.Duration) {
	if m.parent == nil {
		return
	}
	for _, i := range m.turns[row] {
		if m.isDropped(int(i)) {
			continue
		}
		think := m.plan.At(int(i)) - m.plan.At(row)
		heap.Push(&m.later, send{row: int(i), scheduled: ended + think})
	}
}

// drop ends the session behind a failed row: its later turns are not sent.
func (m *machine) drop(row int) {
	for _, i := range m.turns[row] {
		if !m.isSent[i] && !m.dropped[i] {
			m.dropped[i] = true
			m.drops++
		}
		m.drop(int(i))
	}
}

func (m *machine) isDropped(row int) bool { return m.dropped != nil && m.dropped[row] }

// fillSlots gives every free slot the next row.
func (m *machine) fillSlots() {
	for !m.over() {
		for m.isDropped(m.cursor) {
			m.cursor++
		}
		at, ok := m.slots.take()
		if !ok {
			return
		}
		m.cursor++
		m.emit(send{row: m.cursor - 1, scheduled: at})
	}
}

// next is the earliest instant that a row waits for, by time and then by place in the plan; turn tells that the
// row is the first of m.later, else it is the one at the cursor.
func (m *machine) next() (at time.Duration, turn, ok bool) {
	for m.cursor < m.plan.Len() && (m.parent != nil && m.parent[m.cursor] >= 0 || m.isDropped(m.cursor)) {
		m.cursor++ // becomes due through its parent, or never
	}
	byStamp := m.cursor < m.plan.Len()
	if len(m.later) == 0 {
		if !byStamp {
			return 0, false, false
		}
		return m.plan.At(m.cursor), false, true
	}
	first := m.later[0]
	if byStamp && before(send{row: m.cursor, scheduled: m.plan.At(m.cursor)}, first) {
		return m.plan.At(m.cursor), false, true
	}
	return first.scheduled, true, true
}

// collectDue moves every row whose instant has come to the queue.
func (m *machine) collectDue(now time.Duration) {
	if m.over() {
		return
	}
	for {
		at, turn, ok := m.next()
		if !ok || at > now {
			return
		}
		if turn {
			m.waiting = append(m.waiting, heap.Pop(&m.later).(send))
			continue
		}
		m.waiting = append(m.waiting, send{row: m.cursor, scheduled: at})
		m.cursor++
	}
}

// release sends what is due as far as the cap allows.
func (m *machine) release() {
	for m.head < len(m.waiting) && !m.over() {
		if m.maxInflight > 0 && m.inflight >= m.maxInflight {
			m.capReached = true
			m.maxBacklog = max(m.maxBacklog, m.backlog())
			return
		}
		if s := m.waiting[m.head]; !m.isDropped(s.row) {
			m.emit(s)
		}
		m.head++
	}
	if m.head == len(m.waiting) {
		m.waiting, m.head = m.waiting[:0], 0
	}
}

func (m *machine) emit(s send) {
	m.isSent[s.row] = true
	m.inflight++
	m.sent++
	m.out = append(m.out, s)
	if m.sent == m.count {
		m.stop(stopCount)
	}
}

// backlog counts the requests that are due and held back.
func (m *machine) backlog() int { return len(m.waiting) - m.head }

// unsent calls f for every row that was scheduled and never sent, in plan order. In a closed loop there is none:
// such a row never had a slot.
func (m *machine) unsent(f func(send)) {
	if m.slots != nil {
		return
	}
	due := make(map[int]time.Duration, len(m.later)+m.backlog())
	for _, s := range m.later {
		due[s.row] = s.scheduled
	}
	for _, s := range m.waiting[m.head:] {
		due[s.row] = s.scheduled
	}
	for i, sent := range m.isSent {
		if sent {
			continue
		}
		at, ok := due[i]
		if !ok {
			at = m.plan.At(i)
		}
		f(send{row: i, scheduled: at})
	}
}

// before orders sends by time, then by place in the plan.
func before(a, b send) bool {
	if a.scheduled != b.scheduled {
		return a.scheduled < b.scheduled
	}
	return a.row < b.row
}

// dueHeap is a min-heap by before.
type dueHeap []send

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return before(h[i], h[j]) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(send)) }
func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
