// Package barrier lets the shards of a replay begin at one instant, with no service beside them: shard 0 listens, the
// others connect to it. Each joins once it has made its plan, says that it is ready once its target answers, and waits.
// When all are ready, shard 0 names the instant. A shard that leaves or falls silent before it fails all of them.
//
// Clocks need not agree: each shard measures by exchanges in the manner of NTP (RFC 5905 §8) how far its clock is ahead of
// shard 0's, and moves the start by that. What stays is half the time of the fastest exchange, whatever the way there and
// the way back took of it.
package barrier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// DefaultTimeout is how long shards wait for one another.
const DefaultTimeout = 10 * time.Minute

// Times of the protocol.
const (
	silence  = 15 * time.Second       // from here on a peer that says nothing is gone
	beat     = time.Second            // how often a shard says something
	redial   = 250 * time.Millisecond // between two tries to reach shard 0
	minLead  = 2 * time.Second        // from the last shard's word to the start, at least
	letGo    = 200 * time.Millisecond // before the start, from which on nobody looks at the others
	samples  = 16                     // exchanges that measure a clock
	driftPPM = 100                    // how much two crystals may drift apart while the start is awaited
)

// Options of [Join].
type Options struct {
	// Address is host:port of shard 0. It listens at that address where host is one of IP, else on all of its own.
	Address string
	// Index and Count name the shard, from 0.
	Index, Count int
	// Trace is the digest of what is replayed, Settings are the effective ones: a shard in which they differ is refused.
	Trace    string
	Settings map[string]string
	// RunID is the name that shard 0 has for the run; the others take its name.
	RunID string
	// Timeout is how long to wait for the others, from Join to the start; 0 = DefaultTimeout.
	Timeout time.Duration
	// Logger, nil = discard.
	Logger *slog.Logger

	ahead time.Duration // of the clock; in tests
}

// Validate reports every fault. The error is fault.Usage.
func (o *Options) Validate() error {
	var errs []error
	if host, port, err := net.SplitHostPort(o.Address); err != nil || host == "" || port == "" || port == "0" {
		errs = append(errs, fmt.Errorf("barrier: %q is not host:port of shard 0", o.Address))
	}
	if o.Count < 1 || o.Index < 0 || o.Index >= o.Count {
		errs = append(errs, fmt.Errorf("barrier: %d/%d is not a shard", o.Index, o.Count))
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("barrier: timeout %v must be >= 0", o.Timeout))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// Start is the instant that all shards agreed on.
type Start struct {
	At    time.Time // by shard 0's wall clock, UTC: the same in all shards
	Local time.Time // the same instant by this process's own monotonic clock
	// Clock is how far this shard's wall clock is ahead of shard 0's. Local has been corrected by it.
	Clock schemas.ClockOffset
}

// Barrier is a shard's place among the others. Close gives it up.
type Barrier struct {
	runID    string
	deadline time.Time
	side     side
}

// side is what shard 0 and the others do each in their own way.
type side interface {
	start(ctx context.Context) (*Start, error)
	close()
}

// Join reaches shard 0, or becomes it, and returns once this shard was taken in. The error is fault.Usage where it was
// refused, since another trace, another setting or the same index was there before.
func Join(ctx context.Context, o Options) (*Barrier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	b := &Barrier{runID: o.RunID, deadline: time.Now().Add(o.Timeout)}
	var err error
	if o.Index == 0 {
		b.side, err = lead(o)
	} else {
		b.side, b.runID, err = follow(ctx, o, b.deadline)
		b.deadline = time.Now().Add(o.Timeout + silence) // shard 0 ends the wait, and says for whom
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// RunID is shard 0's name of the run.
func (b *Barrier) RunID() string { return b.runID }

// Start says that this shard is ready, waits for the others and returns shortly before the instant that is to begin.
// An error means that no shard is to begin: one left, or the time is up.
func (b *Barrier) Start(ctx context.Context) (*Start, error) {
	timeout := fault.Mark(errors.New("the time is up"), fault.Failure, "")
	ctx, cancel := context.WithDeadlineCause(ctx, b.deadline, timeout)
	defer cancel()
	s, err := b.side.start(ctx)
	if err != nil {
		b.side.close()
		return nil, fmt.Errorf("waiting at the barrier: %w", err)
	}
	return s, nil
}

// Close leaves: before the start the other shards fail, after it nothing happens to them.
func (b *Barrier) Close() { b.side.close() }

// clock is a wall clock that nobody sets: the time of day at its beginning, and monotonic from there on.
type clock struct {
	base  time.Time
	ahead time.Duration
}

func newClock(ahead time.Duration) clock { return clock{time.Now(), ahead} }

// now is in ns since 1970.
func (c clock) now() int64 { return c.base.UnixNano() + int64(time.Since(c.base)+c.ahead) }

// at is the monotonic instant of a reading.
func (c clock) at(ns int64) time.Time {
	return c.base.Add(time.Duration(ns-c.base.UnixNano()) - c.ahead)
}

// sleepUntil waits for an instant; it ends sooner with the cause of ctx or when gone is closed.
func sleepUntil(ctx context.Context, at time.Time, gone <-chan struct{}) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-gone:
		return errGone
	}
}

// errGone is replaced by the reason.
var errGone = errors.New("gone")
