package replay

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"tailgate/schemas"
)

// RunVirtual sends the plan to eng by an event queue: no wall clock, no goroutine, the same rows every time.
//
// When ctx ends it stops sending and drains; Options.Abort ends the requests in flight as well. Errors are
// faults of the options (fault.Usage) and the plan (fault.Data), a disk that does not take the results, and an
// engine that goes idle without answering; what was answered is recorded all the same. The caller finishes rec.
func RunVirtual(ctx context.Context, p *Plan, o Options, eng Engine, rec *Recorder) (*Summary, error) {
	base, err := newRun(p, &o, rec)
	if err != nil {
		return nil, err
	}
	r := &virtualRun{run: base, eng: eng, calls: make([]*Call, p.Len())}
	r.loop(ctx)
	lost := r.m.inflight
	if lost > 0 {
		r.endRest(schemas.ResultTruncated, KindOther)
	}
	r.close()
	s := r.summary()
	switch {
	case rec.Err() != nil:
		return s, fmt.Errorf("replaying: %w", rec.Err())
	case lost > 0:
		return s, fmt.Errorf("replaying: the engine went idle with %d requests unanswered", lost)
	}
	return s, nil
}

// virtualRun is a run in virtual time.
type virtualRun struct {
	*run
	eng   Engine
	now   time.Duration
	calls []*Call // in flight, by ID
	ended []event // of this instant
	names []string

	lookAt time.Duration // the next second for Options.OnLook
	overAt time.Duration // when sending was over; valid when over
	over   bool
}

// loop goes from instant to instant: first what the engine did, then what is due.
func (r *virtualRun) loop(ctx context.Context) {
	const checkEvery = 1 << 10 // rounds between looks at the world outside
	for round := 0; ; round++ {
		if round%checkEvery == 0 && r.interrupted(ctx) {
			r.endRest(schemas.ResultCancelled, KindAborted)
			return
		}
		r.step(event{kind: evTick})
		if r.m.over() && r.m.inflight == 0 {
			return
		}
		at, ok := r.nextInstant()
		if !ok {
			return
		}
		if r.drained(at) {
			r.now = r.overAt + r.opts.Drain
			r.endRest(schemas.ResultTimeout, KindDrain)
			return
		}
		for ; r.opts.OnLook != nil && r.lookAt <= at; r.lookAt += time.Second {
			r.opts.OnLook(r.lookAt)
		}
		r.now = max(r.now, at)
		r.eng.Advance(r.now, r.take)
		for _, ev := range r.ended {
			r.step(ev)
		}
		r.ended = r.ended[:0]
	}
}

// interrupted looks at ctx, the recorder and Options.Abort, and tells whether to end at once.
func (r *virtualRun) interrupted(ctx context.Context) bool {
	if ctx.Err() != nil {
		r.m.stop(stopSignal)
	}
	if r.rec.relieve() != nil {
		r.m.stop(stopRecorder)
	}
	select {
	case <-r.opts.Abort:
		r.m.stop(stopAbort)
		return true
	default:
		return false
	}
}

// nextInstant is the earlier of the machine's and the engine's next instant.
func (r *virtualRun) nextInstant() (time.Duration, bool) {
	at, ok := r.m.wake()
	if next, busy := r.eng.Next(); busy && (!ok || next < at) {
		return next, true
	}
	return at, ok
}

// drained tells that the drain ends before the instant at.
func (r *virtualRun) drained(at time.Duration) bool {
	if r.m.over() && !r.over {
		r.over, r.overAt = true, r.now
	}
	return r.over && r.opts.Drain > 0 && at > r.overAt+r.opts.Drain
}

func (r *virtualRun) step(ev event) {
	for _, s := range r.m.step(r.now, ev) {
		c := r.call(s)
		c.Outcome.Sent = r.now
		c.Outcome.Streamed = c.WantsStream()
		if c.Outcome.Streamed && c.Row.OutputTokens != nil {
			c.Outcome.ExpectTokens(*c.Row.OutputTokens)
		}
		r.calls[s.row] = c
		r.eng.Submit(r.now, c.ID, c.Row)
	}
}

// take notes one event of the engine.
func (r *virtualRun) take(ev schemas.EngineEvent) {
	c := r.calls[ev.ID]
	if c == nil {
		return // the rest of a request that has ended already
	}
	o := &c.Outcome
	at := time.Duration(ev.AtNs)
	if ev.Tokens > 0 && o.Streamed {
		o.Token(at, ev.Tokens, !ev.Reasoning)
	}
	if !ev.Done {
		return
	}
	o.Closed = at
	o.Status, o.HTTPStatus, o.Target = ev.Status, int(ev.HTTP), r.target(ev.Target)
	if o.Status == schemas.ResultOK {
		o.Usage = Usage{Input: ev.InputTokens, Output: ev.OutputTokens, Cached: ev.CachedTokens, Reasoning: -1}
		if ev.ReasoningTokens > 0 {
			o.Usage.Reasoning = ev.ReasoningTokens
		}
		o.ServerQueue, o.ServerPrefill = time.Duration(ev.QueueNs), time.Duration(ev.PrefillNs)
		if !o.Streamed {
			o.LastToken = at
		}
	} else {
		o.ErrorKind = failureKind(o.Status, o.HTTPStatus)
	}
	r.end(c)
}

// end records the result and keeps the end for the machine.
func (r *virtualRun) end(c *Call) {
	result := newResult(r.plan.RunID, c)
	if r.finish(c, &result) {
		r.m.stop(stopFailFast)
	}
	r.calls[c.Index] = nil
	r.ended = append(r.ended, event{kind: evEnded, row: c.Index, at: c.Outcome.Closed, failed: c.Outcome.Status != schemas.ResultOK})
}

// endRest ends every request in flight, and sending.
func (r *virtualRun) endRest(status, kind string) {
	if !r.m.over() {
		r.m.stop(stopAbort)
	}
	for _, c := range r.calls {
		if c == nil {
			continue
		}
		c.Outcome.Status, c.Outcome.ErrorKind, c.Outcome.Closed = status, kind, r.now
		r.end(c)
	}
	for _, ev := range r.ended {
		r.m.step(r.now, ev)
	}
	r.ended = r.ended[:0]
}

// target names a replica.
func (r *virtualRun) target(replica int32) string {
	i := int(max(replica, 0))
	for i >= len(r.names) {
		r.names = append(r.names, "replica-"+strconv.Itoa(len(r.names)))
	}
	return r.names[i]
}

// failureKind is the error kind that a server's answer of this status would have.
func failureKind(status string, http int) string {
	switch status {
	case schemas.ResultHTTPError, schemas.ResultRateLimited:
		return HTTPKind(http)
	case schemas.ResultErrorEvent:
		return KindEngineError
	case schemas.ResultReset:
		return KindReset
	case schemas.ResultTruncated:
		return KindNoFinish
	case schemas.ResultTimeout:
		return KindTimeout
	case schemas.ResultEmpty:
		return KindNoToken
	case schemas.ResultCancelled:
		return KindAborted
	}
	return KindOther
}
