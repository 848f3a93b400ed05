package replay

import (
	"context"
	"math"
	"time"

	"tailgate/internal/waiter"
	"tailgate/schemas"
)

// Transport carries the requests of a real run. transporttest holds every implementation to the same rules.
type Transport interface {
	// Send starts call and returns at once. It fills call.Outcome and then calls done exactly once, from any
	// goroutine. When ctx ends first the outcome's status is cancelled. A request is tried once.
	Send(ctx context.Context, call *Call, done func(*Call))
	// Close releases idle connections. It is called when no call is in flight.
	Close() error
}

// Driven is a Transport that can read answers while the dispatcher waits for the next send: one thread does both and wakes no
// other.
type Driven interface {
	// Waiter is called on the dispatcher's goroutine. null = answers are read elsewhere, and the dispatcher waits as it likes.
	Waiter() (waiter.Waiter, error)
}

// Engine answers the requests of a virtual run. It has no clock and no goroutine of its own.
type Engine interface {
	// Submit hands over a request at the instant at. It is called in time order, never before the instant that
	// Advance has reached. row has its output length filled in where the plan knows one.
	Submit(at time.Duration, id int64, row *schemas.TraceRow)
	// Next is the next instant at which something happens inside; false = idle.
	Next() (at time.Duration, ok bool)
	// Advance runs the engine up to and including now and emits its events in time order. Every submitted
	// request ends with exactly one event that is Done.
	Advance(now time.Duration, emit func(schemas.EngineEvent))
}

// Never is the stamp of something that did not happen.
const Never time.Duration = -1

// Call is one request on its way.
type Call struct {
	ID        int64             // = Index
	Index     int               // place in Plan.Rows
	Row       *schemas.TraceRow // read only; OutputTokens is the length to ask for
	Phase     string
	Scheduled time.Duration // since the schedule's zero
	// Zero is the schedule's zero on the monotonic clock; the zero time in virtual time.
	Zero time.Time
	// KeepAnswer asks the transport for Outcome.Answer: a later turn of the session builds on it.
	KeepAnswer bool
	// Before is what was said in the session so far (HistoryLive); nil = send the prompt of the trace whole.
	Before  *Exchange
	Outcome Outcome
}

// Now is the time since the schedule's zero, for the stamps of the outcome.
func (c *Call) Now() time.Duration { return time.Since(c.Zero) }

// WantsStream tells whether the row asks for a streamed answer; null in the trace means yes.
func (c *Call) WantsStream() bool { return c.Row.Stream == nil || *c.Row.Stream }

// Outcome is what was seen of one request, raw. Times count from the schedule's zero; Never = did not happen.
// Make it with NewOutcome.
type Outcome struct {
	Sent        time.Duration // just before the request was handed to the network
	FirstByte   time.Duration // the answer's head
	FirstToken  time.Duration // first token-bearing event; Never for an answer that was not streamed
	FirstOutput time.Duration // first token-bearing event that is not reasoning
	LastToken   time.Duration // last token-bearing event, or the whole answer
	Closed      time.Duration // the answer's end, or its failure

	Streamed bool  // the answer was an event stream
	Events   int32 // token-bearing events
	// FirstEventTokens are the tokens of the first token-bearing event where the target told them; 0 = not told.
	FirstEventTokens int32

	Usage Usage
	// ServerQueue and ServerPrefill are the target's own figures; Never = not told.
	ServerQueue, ServerPrefill time.Duration

	Status     string // Result… constant
	HTTPStatus int    // 0 = no answer
	ErrorKind  string // Kind… constant; "" = none
	Target     string

	Answer Answer // where Call.KeepAnswer asks for it

	gaps    []int32 // µs between token-bearing events, shared over the tokens of the later one; at most maxGaps
	guessed bool    // an event did not tell its tokens
	cut     bool    // there were more gaps
}

// maxGaps bounds what is kept of one answer: no model's answer has so many tokens, but a broken target may tell any number,
// or never end.
const maxGaps = 1 << 20

// Usage are token counts as the target told them; -1 = not told.
type Usage struct{ Input, Output, Cached, Reasoning int32 }

// NewOutcome is an outcome of which nothing has happened yet.
func NewOutcome() Outcome {
	return Outcome{
		Sent: Never, FirstByte: Never, FirstToken: Never, FirstOutput: Never, LastToken: Never, Closed: Never,
		ServerQueue: Never, ServerPrefill: Never,
		Usage: Usage{Input: -1, Output: -1, Cached: -1, Reasoning: -1},
	}
}

// Token notes one token-bearing event. tokens is how many it added where the target tells, 0 where it does not;
// output is false for reasoning. The gap to the event before is shared over the event's tokens.
func (o *Outcome) Token(at time.Duration, tokens int32, output bool) {
	o.Events++
	if tokens == 0 {
		o.guessed = true
	}
	if o.FirstToken == Never {
		o.FirstToken, o.FirstEventTokens = at, tokens
	} else {
		k := max(tokens, 1)
		gap := micros32((at - o.LastToken) / time.Duration(k))
		room := int32(maxGaps - len(o.gaps))
		o.cut = o.cut || k > room
		for range min(k, room) {
			o.gaps = append(o.gaps, gap)
		}
	}
	if output && o.FirstOutput == Never {
		o.FirstOutput = at
	}
	o.LastToken = at
}

// ExpectTokens makes room for the gaps of n tokens.
func (o *Outcome) ExpectTokens(n int32) {
	if o.gaps == nil && n > 1 {
		o.gaps = make([]int32, 0, min(n-1, 1<<16))
	}
}

// micros32 is d in whole µs, at most what an int32 holds (36 minutes).
func micros32(d time.Duration) int32 {
	return int32(min(max(d.Microseconds(), 0), math.MaxInt32))
}
