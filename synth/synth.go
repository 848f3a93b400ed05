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
	// ModeIndependent moves copies of sessions by half an hour to an hour: more users who have nothing to do with
	// one another. It keeps the dispersion of counts; it fills the troughs of the day with its peaks, and so is
	// optimistic about load that many users bring at once.
	ModeIndependent = "independent"
	// ModeBalancer gives what one of 1/scale replicas sees behind a balancer of least work left that keeps sessions
	// where they are. It loses what a single queue would see: bursts arrive smoothed by the other replicas.
	ModeBalancer = "balancer"
	// ModeModel draws a new trace from the profile of the trace: no request of the trace comes again.
	ModeModel = "model"
)

// Modes lists the modes of rescaling.
func Modes() []string {
	return []string{ModeSession, ModeWarp, ModeIndependent, ModeBalancer, ModeModel}
}

// DefaultJitter is the coherence time of added users: how far a copy is moved from its original at most.
const DefaultJitter = 5 * time.Second

// Scales that session resampling takes, and those that a warp takes.
const (
	MinScale = 0.05
	MaxScale = 20
	MinWarp  = 0.001
	MaxWarp  = 1000
)

// Options say how to rescale.
type Options struct {
	Scale          float64       // wanted rate / rate of the trace; 0 = TargetRate says it
	TargetRate     float64       // wanted rate in requests a second; 0 = Scale says it
	Mode           string        // one of Modes; "" = session
	Jitter         time.Duration // session mode only; 0 = DefaultJitter, below 1 µs = none
	Seed           uint64        // of every draw
	AllowDistorted bool          // go on when a judged invariant is broken
	Threads        int           // 0 = GOMAXPROCS; the output never depends on it

	above int64 // new block ids lie above it, where there is room
}

// Validate reports every fault of the options that shows without a trace.
func (o Options) Validate() error {
	var errs []error
	switch {
	case o.Scale != 0 && o.TargetRate != 0:
		errs = append(errs, errors.New("scale and target rate contradict each other"))
	case o.TargetRate != 0 && !positive(o.TargetRate):
		errs = append(errs, fmt.Errorf("target rate must be a finite number > 0, not %v", o.TargetRate))
	case o.TargetRate == 0:
		errs = append(errs, o.checkScale(o.Scale))
	}
	if o.Mode != "" && !slices.Contains(Modes(), o.Mode) {
		errs = append(errs, fmt.Errorf("mode must be one of %s, not %q", strings.Join(Modes(), ", "), o.Mode))
	}
	if o.Jitter < 0 {
		errs = append(errs, fmt.Errorf("jitter must be >= 0, not %v", o.Jitter))
	}
	if o.Jitter > 0 && o.Mode != "" && o.Mode != ModeSession {
		errs = append(errs, fmt.Errorf("jitter has no meaning in mode %s", o.Mode))
	}
	if o.Threads < 0 {
		errs = append(errs, fmt.Errorf("threads must be >= 0, not %d", o.Threads))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func (o Options) checkScale(f float64) error {
	least, most := MinScale, float64(MaxScale)
	switch o.Mode {
	case ModeWarp:
		least, most = MinWarp, MaxWarp
	case ModeBalancer:
		most = 1
	}
	switch {
	case !positive(f):
		return fmt.Errorf("scale must be a finite number > 0, not %v", f)
	case f > 1 && o.Mode == ModeBalancer:
		return fmt.Errorf("scale must be <= 1 for mode %s, not %v: a replica sees a part of the traffic", o.Mode, f)
	case f < least || f > most:
		return fmt.Errorf("scale must be in %v…%v for mode %s, not %v", least, most, o.mode(), f)
	}
	return nil
}

// scaleFor is the scale for a trace of so many rows and such a length.
func (o Options) scaleFor(rows int, lengthUs int64) (float64, error) {
	if o.TargetRate == 0 {
		return o.Scale, nil
	}
	if lengthUs <= 0 {
		return 0, fault.Mark(errors.New("a trace of one instant has no rate that could become the target rate"), fault.Usage, "give --scale")
	}
	rate := float64(rows) / (float64(lengthUs) / 1e6)
	scale := o.TargetRate / rate
	if err := o.checkScale(scale); err != nil {
		return 0, fault.Mark(fmt.Errorf("target rate %.6g/s at %.6g/s in the trace: %w", o.TargetRate, rate, err), fault.Usage, "")
	}
	return scale, nil
}

// Result is a rescaled trace and what was measured on the way.
type Result struct {
	Trace      *trace.Trace
	Scale      float64 // that was applied
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
	res, err := rescale(ctx, t, o)
	if err != nil {
		return nil, fmt.Errorf("rescaling %s: %w", t.Meta.Name, err)
	}
	return res, o.verdict(t.Meta.Name, res)
}

func rescale(ctx context.Context, t *trace.Trace, o Options) (*Result, error) {
	if err := checkRows(t); err != nil {
		return nil, fault.Mark(err, fault.Data, "")
	}
	scale, err := o.scaleFor(len(t.Rows), t.LengthUs())
	if err != nil {
		return nil, err
	}
	f := factsOf(t, t.Sessions().Of)
	f.top = max(f.top, o.above)
	m := newMeasure(o.mode())
	for i := range t.Rows {
		m.before.add(&t.Rows[i], int64(i), 0)
	}
	m.begin(f, scale)
	var res *Result
	switch {
	case scale == 1 && o.Mode != ModeModel:
		res = &Result{Trace: &trace.Trace{Rows: slices.Clone(t.Rows), Meta: t.Meta, Notes: slices.Clone(t.Notes)}}
		for i := range t.Rows {
			m.see(&t.Rows[i], int64(i), 0)
		}
	case o.Mode == ModeWarp:
		res = warp(t, scale, m)
	case o.Mode == ModeModel:
		res, err = fromModel(ctx, t, o, scale, m)
	default:
		res, err = resample(ctx, t, f, o, scale, m)
	}
	if err != nil {
		return nil, err
	}
	res.Scale, res.Invariants = scale, m.all()
	return res, nil
}

// ErrBroken is wrapped where a rescale has broken an invariant.
var ErrBroken = errors.New("broke")

// verdict is the error for broken invariants.
func (o Options) verdict(name string, res *Result) error {
	broken := brokenOf(res.Invariants)
	if len(broken) == 0 || o.AllowDistorted {
		return nil
	}
	err := fmt.Errorf("rescaling %s by %v %w %s", name, res.Scale, ErrBroken, strings.Join(broken, "; "))
	return fault.Mark(err, fault.Failure, "another seed may draw a better sample; --allow-distorted goes on all the same")
}

var errNoRows = errors.New("the trace has no rows")

func checkRows(t *trace.Trace) error {
	if len(t.Rows) == 0 {
		return errNoRows
	}
	c := checker{}
	for i := range t.Rows {
		if err := c.row(&t.Rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// checker holds rows to the order of a schedule, and to a length whose minutes can be counted.
type checker struct{ n, last int64 }

func (c *checker) row(r *schemas.TraceRow) error {
	var err error
	hint := ""
	switch {
	case r.ScheduledUs > maxSeconds*1_000_000:
		err = fmt.Errorf("row %d is scheduled more than ten years after the zero of the schedule", c.n)
		hint = "see --timestamp-unit, or cut the trace with --window"
	case r.ScheduledUs < 0:
		err = fmt.Errorf("row %d is scheduled before the zero of the schedule", c.n)
	case r.ScheduledUs < c.last:
		err = fmt.Errorf("row %d is scheduled before row %d", c.n, c.n-1)
	}
	c.last = r.ScheduledUs
	c.n++
	return fault.Mark(err, fault.Data, hint)
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

func (o Options) mode() string {
	if o.Mode == "" {
		return ModeSession
	}
	return o.Mode
}

func (o Options) jitterUs() int64 {
	if o.Jitter == 0 {
		return DefaultJitter.Microseconds()
	}
	return o.Jitter.Microseconds()
}
