// Package synth makes traffic: it rescales a trace to another rate in a way that behaves like more or fewer
// users, and draws arrivals by a law.
//
// It is not a replayer and measures no server. Methods and laws are those of the reference on rescaling: the
// payload of a request is never parted from its time of day, and sessions are copied or dropped whole.
//
// In: a trace, which is never modified, and options with one seed. Out: a new trace with what was measured
// before and after, or the offsets of arrivals.
//
// Invariants. Equal input, options and seed give equal output, whatever the number of threads. The original of
// every request (copy 0) keeps its stamp and its block ids. A copy shares with the original only blocks that at
// least two sessions of the source share. f = 1 gives the rows of the source.
package synth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

// Modes of rescaling.
const (
	// ModeSession copies or drops whole sessions at constant duration: what more or fewer users would do.
	ModeSession = "session"
	// ModeWarp divides all stamps by the scale: the same requests in less or more time. It keeps the law of the
	// gaps, the order and the pressure on a cache per request; it shortens think times, the day and every
	// overload by the scale, and so makes long overloads look harmless.
	ModeWarp = "warp"
)

// DefaultJitter is the coherence time of added users: how far a copy is moved from its original at most.
const DefaultJitter = 5 * time.Second

// Scales that session resampling takes.
const (
	MinScale = 0.05
	MaxScale = 20
)

// Options say how to rescale.
type Options struct {
	Scale          float64       // wanted rate / rate of the trace
	Mode           string        // ModeSession or ModeWarp; "" = session
	Jitter         time.Duration // session mode only; 0 = DefaultJitter, below 1 µs = none
	Seed           uint64        // of every draw
	AllowDistorted bool          // go on when a judged invariant is broken
	Threads        int           // 0 = GOMAXPROCS; the output never depends on it
}

// Validate reports every fault of the options.
func (o Options) Validate() error {
	var errs []error
	switch {
	case !(o.Scale > 0) || math.IsInf(o.Scale, 0):
		errs = append(errs, fmt.Errorf("scale must be a finite number > 0, not %v", o.Scale))
	case o.Mode != ModeWarp && (o.Scale < MinScale || o.Scale > MaxScale):
		errs = append(errs, fmt.Errorf("scale must be in %v…%v for mode %s, not %v", MinScale, MaxScale, ModeSession, o.Scale))
	}
	if o.Mode != "" && o.Mode != ModeSession && o.Mode != ModeWarp {
		errs = append(errs, fmt.Errorf("mode must be %s or %s, not %q", ModeSession, ModeWarp, o.Mode))
	}
	if o.Jitter < 0 {
		errs = append(errs, fmt.Errorf("jitter must be >= 0, not %v", o.Jitter))
	}
	if o.Jitter > 0 && o.Mode == ModeWarp {
		errs = append(errs, fmt.Errorf("jitter has no meaning in mode %s", ModeWarp))
	}
	if o.Threads < 0 {
		errs = append(errs, fmt.Errorf("threads must be >= 0, not %d", o.Threads))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Result is a rescaled trace and what was measured on the way.
type Result struct {
	Trace      *trace.Trace
	Invariants []schemas.Invariant
	Notes      []string
}

// Rescale returns t at another rate. Rows and lists that did not change are shared with t, which is not
// modified. SourceRow is the row of t, Copy 0 the original; at scale 1 the rows are those of t.
//
// A broken invariant is an error (fault.Failure) that names it, unless AllowDistorted; the result is returned
// beside that error, so that the measurements can be shown. A trace without rows, or out of order, is
// fault.Data.
func Rescale(ctx context.Context, t *trace.Trace, o Options) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := checkRows(t); err != nil {
		return nil, fault.Mark(fmt.Errorf("rescaling %s: %w", t.Meta.Name, err), fault.Data, "")
	}
	sessions := t.Sessions().Rows
	var res *Result
	var err error
	switch {
	case o.Scale == 1:
		res = &Result{Trace: &trace.Trace{Rows: slices.Clone(t.Rows), Meta: t.Meta, Notes: slices.Clone(t.Notes)}}
	case o.Mode == ModeWarp:
		res = warp(t, o.Scale)
	default:
		res, err = resample(ctx, t, sessions, o)
	}
	if err != nil {
		return nil, fmt.Errorf("rescaling %s: %w", t.Meta.Name, err)
	}
	m := measure{before: t, after: res.Trace, sessions: sessions, o: o}
	res.Invariants = m.all()
	if broken := brokenOf(res.Invariants); len(broken) > 0 && !o.AllowDistorted {
		err := fmt.Errorf("rescaling %s by %v broke %s", t.Meta.Name, o.Scale, strings.Join(broken, "; "))
		return res, fault.Mark(err, fault.Failure, "another seed may draw a better sample; --allow-distorted goes on all the same")
	}
	return res, nil
}

func checkRows(t *trace.Trace) error {
	if len(t.Rows) == 0 {
		return errors.New("the trace has no rows")
	}
	for i := range t.Rows {
		if t.Rows[i].ScheduledUs < 0 {
			return fmt.Errorf("row %d is scheduled before the zero of the schedule", i)
		}
		if i > 0 && t.Rows[i].ScheduledUs < t.Rows[i-1].ScheduledUs {
			return fmt.Errorf("row %d is scheduled before row %d", i, i-1)
		}
	}
	return nil
}

func brokenOf(all []schemas.Invariant) (names []string) {
	for _, v := range all {
		if v.Judged && !v.Held {
			names = append(names, fmt.Sprintf("%s (%.6g → %.6g, limit %s)", v.Name, v.Before, v.After, v.Limit))
		}
	}
	return names
}

func (o Options) threads() int {
	if o.Threads == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return o.Threads
}

func (o Options) jitterUs() int64 {
	if o.Jitter == 0 {
		return DefaultJitter.Microseconds()
	}
	return o.Jitter.Microseconds()
}
