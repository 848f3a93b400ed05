package barrier

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// follower is every shard but shard 0.
type follower struct {
	o     Options
	clock clock
	link  *link
	all   sync.WaitGroup

	starts chan int64    // the instant, by shard 0's clock
	pongs  chan sample   // one at a time is asked for
	gone   chan struct{} // closed once err is set
	quit   chan struct{} // closed by close
	once   sync.Once
	err    error
}

// sample is one exchange: how far our clock is ahead, and half of the time that it took.
type sample struct {
	at             time.Time
	offset, errorT time.Duration
}

// follow dials shard 0 again and again until the deadline: it may be started later, or have no name yet.
func follow(ctx context.Context, o Options, deadline time.Time) (*follower, string, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	var last error
	for {
		f, id, err := join(ctx, o)
		var refused *refusedError
		if err == nil {
			return f, id, nil
		}
		if errors.As(err, &refused) {
			return nil, "", fault.Mark(fmt.Errorf("joining the other shards: shard 0 refuses: %w", err), fault.Usage,
				"all shards of a run are started with the same trace and flags, but for --shard")
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, "", context.Cause(ctx)
			}
			return nil, "", fault.Mark(fmt.Errorf("joining the other shards: the time is up: %w", last), fault.Failure,
				"--barrier is the address of shard 0, which must be running")
		case <-time.After(redial):
		}
	}
}

// refusedError is shard 0's word that this shard is none of the run.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

// join tries once.
func join(ctx context.Context, o Options) (*follower, string, error) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", o.Address)
	if err != nil {
		return nil, "", err
	}
	l := newLink(c)
	unwatch := context.AfterFunc(ctx, l.close) // whoever listens there may be no shard, and say nothing
	err = l.write(message{Kind: kindHello, Version: version, Index: o.Index, Count: o.Count, Trace: o.Trace, Settings: o.Settings})
	var m message
	if err == nil {
		m, err = l.read(time.Now().Add(silence))
	}
	switch ended := !unwatch(); {
	case ended:
		err = errors.New("what listens there does not answer as shard 0 does")
	case err != nil:
	case m.Kind == kindFail:
		err = &refusedError{m.Reason}
	case m.Kind != kindWelcome:
		err = errors.New("what listens there is not shard 0")
	}
	if err != nil {
		l.close()
		return nil, "", err
	}
	f := &follower{o: o, clock: newClock(o.ahead), link: l, starts: make(chan int64, 1), pongs: make(chan sample, 1),
		gone: make(chan struct{}), quit: make(chan struct{})}
	f.all.Go(f.listen)
	f.all.Go(f.beat)
	return f, m.RunID, nil
}

// listen reads what shard 0 says until the connection ends.
func (f *follower) listen() {
	for {
		m, err := f.link.read(time.Now().Add(silence))
		now := f.clock.now()
		if err != nil {
			f.end(errors.New("shard 0 is gone"))
			return
		}
		switch m.Kind {
		case kindPong:
			half := time.Duration(now-m.Sent) / 2
			s := sample{time.Now(), time.Duration(m.Sent + int64(half) - m.Clock), half}
			select {
			case f.pongs <- s:
			default: // nobody asked
			}
		case kindStart:
			select {
			case f.starts <- m.Clock:
			default:
			}
		case kindFail:
			f.end(errors.New(m.Reason))
			return
		}
	}
}

func (f *follower) end(err error) { f.once.Do(func() { f.err = err; close(f.gone) }) }

// beat shows that this shard lives while it is busy elsewhere.
func (f *follower) beat() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-f.quit:
			return
		case <-f.gone:
			return
		case <-tick.C:
			_ = f.link.write(message{Kind: kindPing, Sent: f.clock.now()})
		}
	}
}

func (f *follower) start(ctx context.Context) (*Start, error) {
	best, err := f.measure(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.link.write(message{Kind: kindReady, ErrorUs: best.errorT.Microseconds()}); err != nil {
		return nil, f.reason(err)
	}
	var at int64
	select {
	case at = <-f.starts:
	case <-f.gone:
		return nil, f.reason(nil)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	// Others may have come much later than this one was ready: measure again.
	if again, err := f.measure(ctx); err != nil {
		return nil, err
	} else if age := time.Since(best.at); again.errorT < best.errorT+drift(age) {
		best = again
	}
	local := f.clock.at(at + int64(best.offset))
	if err := f.link.write(message{Kind: kindArmed}); err != nil {
		return nil, f.reason(err)
	}
	if err := sleepUntil(ctx, local.Add(-letGo), f.gone); err != nil {
		if errors.Is(err, errGone) {
			err = f.reason(nil)
		}
		return nil, err
	}
	errorUs := (best.errorT + drift(time.Since(best.at)+letGo)).Microseconds() + 1
	return &Start{At: time.Unix(0, at).UTC(), Local: local, Clock: schemas.ClockOffset{
		OffsetUs: best.offset.Microseconds(), ErrorUs: errorUs, Source: schemas.ClockBarrier, Corrected: true}}, nil
}

// drift is how far two clocks may go apart in a time.
func drift(d time.Duration) time.Duration { return d * driftPPM / 1_000_000 }

// measure asks shard 0 for its clock a few times; the fastest exchange tells most.
func (f *follower) measure(ctx context.Context) (best sample, err error) {
	for i := range samples {
		select { // of the beat
		case <-f.pongs:
		default:
		}
		if err := f.link.write(message{Kind: kindPing, Sent: f.clock.now()}); err != nil {
			return best, f.reason(err)
		}
		select {
		case s := <-f.pongs:
			if i == 0 || s.errorT < best.errorT {
				best = s
			}
		case <-f.gone:
			return best, f.reason(nil)
		case <-ctx.Done():
			return best, context.Cause(ctx)
		}
	}
	return best, nil
}

// reason is why there is no start: what shard 0 said, where it said something.
func (f *follower) reason(err error) error {
	select {
	case <-f.gone:
		return f.err
	default:
		f.end(fmt.Errorf("shard 0 is gone: %w", err))
		return f.err
	}
}

func (f *follower) close() {
	select {
	case <-f.quit:
	default:
		close(f.quit)
	}
	f.link.close()
	f.all.Wait()
}
