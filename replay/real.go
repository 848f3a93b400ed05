package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/waiter"
	"tailgate/schemas"
)

var (
	errDrained = errors.New("the drain has ended")
	errAborted = errors.New("the run was aborted")
)

// RunReal sends the plan over tr by the wall clock and returns when every request has ended.
//
// When ctx ends it stops sending and drains (Stopped "signal"); closing Options.Abort ends the requests in
// flight as well. Neither is an error. Errors are faults of the options (fault.Usage) and the plan (fault.Data),
// found before the first send, and a disk that does not take the results, which stops sending. The caller
// finishes rec and closes tr.
func RunReal(ctx context.Context, p *Plan, o Options, tr Transport, rec *Recorder) (*Summary, error) {
	base, err := newRun(p, &o, rec)
	if err != nil {
		return nil, err
	}
	if late := time.Since(o.StartAt); !o.StartAt.IsZero() && late > 0 {
		return nil, fault.Mark(fmt.Errorf("starting at %s: that was %v ago", o.StartAt.Format(time.RFC3339), late.Round(time.Millisecond)),
			fault.Failure, "give a later --start-at: all shards of a run must be ready by then")
	}
	r := &realRun{run: base, tr: tr, live: newLive(), self: newSelfWatch(), idle: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	defer r.cancel(nil)
	o.logger().Info("replay starts", "rows", p.Len(), "length", p.length(), "concurrency", o.Concurrency,
		"max_inflight", o.MaxInflight, "turns", o.Turns, "output", o.outputMode(), "seed", o.Seed)

	if ctx.Err() != nil {
		r.m.stop(stopSignal)
	}
	sending, err := r.startDispatcher()
	if err != nil {
		return nil, err
	}
	unwatch := context.AfterFunc(ctx, func() { r.step(event{kind: evStop, reason: stopSignal}) })
	var helpers sync.WaitGroup
	over := make(chan struct{})
	helpers.Go(func() { r.watch(over) })
	helpers.Go(func() { r.awaitAbort(over) })
	<-sending
	r.drain()
	close(over)
	helpers.Wait()
	unwatch()
	return r.finishRun()
}

// realRun is a run by the wall clock.
type realRun struct {
	tr     Transport
	live   *live
	self   *selfWatch
	ctx    context.Context // of the requests
	cancel context.CancelCauseFunc
	zero   time.Time

	*run                 // its machine is guarded by mu, its results by book
	w      waiter.Waiter // of the dispatcher
	mu     sync.Mutex
	until  time.Duration // the dispatcher sleeps until then; guarded by mu
	idle   chan struct{} // closed when nothing is in flight and nothing will be sent
	isIdle bool          // idle is closed; guarded by mu
	book   sync.Mutex    // taken alone or before mu
}

// startDispatcher sets the schedule's zero and starts to send. The channel is closed when sending is over.
func (r *realRun) startDispatcher() (<-chan struct{}, error) {
	ready, over := make(chan error), make(chan struct{})
	go func() {
		defer close(over)
		w, err := r.newWaiter()
		if err == nil {
			r.w, r.zero = w, r.start()
			defer w.Close()
			if o := r.opts.OnStart; o != nil {
				o(r.zero)
			}
		}
		ready <- err
		if err == nil {
			r.awaitZero()
			r.dispatch()
		}
	}()
	return over, <-ready
}

func (r *realRun) newWaiter() (waiter.Waiter, error) {
	if r.opts.GoTimers {
		return waiter.NewRuntime(), nil
	}
	if d, ok := r.tr.(Driven); ok {
		if w, err := d.Waiter(); w != nil || err != nil {
			return w, err
		}
	}
	return waiter.New()
}

// start is the schedule's zero on the monotonic clock.
func (r *realRun) start() time.Time {
	now := time.Now()
	if r.opts.StartAt.IsZero() {
		return now
	}
	return now.Add(r.opts.StartAt.Sub(now))
}

// awaitZero waits for the schedule's zero, or until sending is over.
func (r *realRun) awaitZero() {
	for time.Now().Before(r.zero) {
		r.mu.Lock()
		over := r.m.over()
		r.mu.Unlock()
		if over {
			return
		}
		r.w.Wait(r.zero)
	}
}

// dispatch ticks the machine at every instant that it names, until it will send no more.
func (r *realRun) dispatch() {
	for {
		r.step(event{kind: evTick})
		r.mu.Lock()
		at, ok := r.m.wake()
		r.until = at
		if !ok {
			r.until = 1<<63 - 1
		}
		over := r.m.over()
		r.mu.Unlock()
		switch {
		case over:
			return
		case !ok:
			r.w.Wait(time.Time{})
		default:
			r.w.Wait(r.zero.Add(at))
		}
	}
}

// step tells the machine an event, at this instant, and sends what it says. Any goroutine may call it.
func (r *realRun) step(ev event) {
	r.mu.Lock()
	sends := r.m.step(time.Since(r.zero), ev)
	calls := make([]*Call, len(sends))
	for i, s := range sends {
		calls[i] = r.call(s)
		calls[i].Zero = r.zero
	}
	at, ok := r.m.wake()
	if ev.kind != evTick && (r.m.over() || ok && at < r.until) {
		r.w.Wake() // the dispatcher sleeps for too long
	}
	if r.m.over() && r.m.inflight == 0 && !r.isIdle {
		r.isIdle = true
		close(r.idle)
	}
	r.mu.Unlock()
	for _, c := range calls {
		r.tr.Send(r.ctx, c, r.ended)
	}
}

// ended takes the outcome of one request.
func (r *realRun) ended(c *Call) {
	if c.Outcome.Closed == Never {
		c.Outcome.Closed = c.Now()
	}
	if c.Outcome.Status == schemas.ResultCancelled && errors.Is(context.Cause(r.ctx), errDrained) {
		c.Outcome.Status, c.Outcome.ErrorKind = schemas.ResultTimeout, KindDrain
	}
	closed := c.Outcome.Closed
	result := newResult(r.plan.RunID, c)
	r.live.add(&result)
	r.book.Lock()
	stop := r.finish(c, &result)
	r.book.Unlock()
	if stop {
		r.step(event{kind: evStop, reason: stopFailFast})
	}
	r.step(event{kind: evEnded, row: c.Index, at: closed, failed: c.Outcome.Status != schemas.ResultOK})
}

// drain waits until every request has ended, at most Options.Drain, and cancels the rest.
func (r *realRun) drain() {
	limit := r.opts.Drain
	if limit == 0 {
		limit = DefaultDrain
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.idle:
	case <-timer.C:
		r.opts.logger().Warn("drain ended with requests in flight", "after", limit)
		r.cancel(errDrained)
		<-r.idle
	}
}

// awaitAbort cancels everything once Options.Abort is closed.
func (r *realRun) awaitAbort(over <-chan struct{}) {
	select {
	case <-over:
	case <-r.opts.Abort:
		r.step(event{kind: evStop, reason: stopAbort})
		r.cancel(errAborted)
	}
}

// watch looks at the run once a second: progress, own CPU, own lag, the disk.
func (r *realRun) watch(over <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	warned, rules := false, newAbortWatch(r.opts.AbortIf)
	speed := &pace{plan: r.plan, closed: len(r.opts.steps()) > 0, until: r.opts.deadline()}
	for {
		select {
		case <-over:
			r.self.sample(time.Since(r.zero))
			return
		case <-tick.C:
		}
		r.self.sample(time.Since(r.zero))
		if r.rec.Err() != nil {
			r.step(event{kind: evStop, reason: stopRecorder})
		}
		p := r.progress()
		speed.look(&p)
		if rule := rules.look(p.Elapsed, p.OK, p.Failed, r.gauge(&p)); rule != "" {
			r.opts.logger().Warn("stopping to protect the target", "abort_if", rule)
			r.abortedBy(rule)
		}
		if limit := r.opts.lagLimit(); p.LagP99 > limit && !warned {
			warned = true
			r.opts.logger().Warn("the schedule is not kept: this run will be invalid", "lag_p99", p.LagP99, "limit", limit)
		}
		if r.opts.OnProgress != nil {
			r.opts.OnProgress(p)
		}
	}
}

// abortedBy stops sending for a rule of abort_if.
func (r *realRun) abortedBy(rule string) {
	r.book.Lock()
	r.sum.AbortedBy = rule
	r.book.Unlock()
	r.step(event{kind: evStop, reason: stopAbortIf})
}

// gauge tells the client's own gauges, and the target's where there is telemetry.
func (r *realRun) gauge(p *Progress) func(string) (float64, bool) {
	return func(metric string) (float64, bool) {
		switch metric {
		case "in_flight":
			return float64(p.InFlight), true
		case "backlog":
			return float64(p.Waiting), true
		case "sent_rate":
			return p.SentRate, true
		}
		if r.opts.Gauge == nil {
			return 0, false
		}
		return r.opts.Gauge(metric)
	}
}

func (r *realRun) progress() Progress {
	p := Progress{Rows: int64(r.plan.Len()), Elapsed: time.Since(r.zero)}
	r.live.fill(&p)
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Sent, p.Waiting, p.InFlight = r.m.sent, int64(r.m.backlog()), int64(r.m.inflight)
	return p
}

// finishRun completes the summary. Nothing is in flight any more.
func (r *realRun) finishRun() (*Summary, error) {
	r.book.Lock()
	defer r.book.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close()
	if why := r.self.report(&r.sum.RunFacts); why != "" {
		r.invalid("%s", why)
	}
	s := r.summary()
	if err := r.rec.Err(); err != nil {
		return s, fmt.Errorf("replaying: %w", err)
	}
	return s, nil
}
