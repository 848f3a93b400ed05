package synth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"tailgate/internal/fault"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// ArrivalsProfile draws arrivals by the profile's own law and rate curve.
const ArrivalsProfile = "profile"

// ModelOptions say what traffic to make. With a profile, the zero value makes traffic like the profile's: its rate
// curve, laws, lengths, sessions and prefixes. Without one, the lengths and the rate must be given.
type ModelOptions struct {
	Arrivals   string  // Constant, Poisson, Gamma or ArrivalsProfile; "" = ArrivalsProfile with a profile, else Poisson
	Burstiness float64 // of Gamma; elsewhere 0

	Scale       float64       // times the profile's rate; 0 = 1
	RequestRate float64       // mean requests per second of the trace; 0 = the profile's times Scale
	RateEnd     float64       // the rate climbs or falls linearly from RequestRate to this; 0 = it stays
	RateSeries  RateSeries    // the rate over time instead of the profile's curve and RequestRate; nil = none
	Duration    time.Duration // of the schedule; 0 = the profile's, or that of the series
	From        time.Duration // moment of the profile's window at which the trace begins; 0 = its begin
	Requests    int64         // stop after so many requests; 0 = no limit
	Bursts      []Burst       // spliced in

	Input    LengthSpec         // nil = the profile's lengths
	Output   LengthSpec         // nil = the profile's lengths
	ClassMix map[string]float64 // shares of requests by class; nil = the profile's

	Turns     IntDist       // turns of a session; nil = the profile's, or 1
	ThinkTime *DurationDist // arrival to arrival inside a session; nil = the profile's
	Growth    IntDist       // tokens that a later turn adds to prompt and answer of the turn before; nil = the profile's

	PrefixShare *float64 // share of a first prompt's whole blocks that other sessions have too; nil = the profile's
	Prefixes    int      // different shared prefixes of PrefixShare; 0 = those of the profile, or 1
	BlockSize   int      // tokens per hash id; 0 = the profile's, or 512 where PrefixShare or sessions need ids

	Seed uint64 // of every draw
}

// Validate reports every fault of the options that needs no profile.
func (o ModelOptions) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	notNegative := func(what string, x float64) {
		if !(x >= 0) || math.IsInf(x, 0) {
			add("%s must be a finite number > 0, not %v", what, x)
		}
	}
	switch o.Arrivals {
	case "", ArrivalsProfile, Constant, Poisson, Gamma:
	default:
		add("arrivals must be %s, %s, %s or %s, not %q", Constant, Poisson, Gamma, ArrivalsProfile, o.Arrivals)
	}
	if o.Arrivals == Gamma && !positive(o.Burstiness) {
		add("burstiness must be a finite number > 0, not %v", o.Burstiness)
	}
	if o.Arrivals != Gamma && o.Burstiness != 0 {
		add("burstiness has a meaning for %s arrivals only", Gamma)
	}
	notNegative("scale", o.Scale)
	notNegative("request rate", o.RequestRate)
	notNegative("rate at the end", o.RateEnd)
	if o.Scale > 0 && o.RequestRate > 0 {
		add("a scale and a request rate contradict each other")
	}
	if o.RateSeries != nil && (o.RequestRate > 0 || o.Scale > 0 && o.Scale != 1) {
		add("a rate series contradicts a request rate or a scale")
	}
	if o.RateEnd > 0 && o.RequestRate == 0 {
		add("a rate at the end needs one at the begin")
	}
	if o.Duration < 0 || o.Requests < 0 || o.From < 0 {
		add("duration %v, begin %v and requests %d must be >= 0", o.Duration, o.From, o.Requests)
	}
	errs = append(errs, o.RateSeries.validate(), o.Input.validate("input"), o.Output.validate("output"), o.Turns.validate("turns", 1),
		o.Growth.validate("growth", math.MinInt32), o.ThinkTime.validate())
	for _, b := range o.Bursts {
		errs = append(errs, b.validate())
	}
	sum := 0.0
	for class, share := range o.ClassMix {
		if !(share >= 0) || math.IsInf(share, 0) {
			add("share of class %q must be a finite number >= 0, not %v", class, share)
		}
		sum += share
	}
	if o.ClassMix != nil && !(sum > 0) {
		add("the class mix has no share above 0")
	}
	if s := o.PrefixShare; s != nil && !(*s >= 0 && *s <= 1) {
		add("prefix share must be in 0…1, not %v", *s)
	}
	if o.Prefixes < 0 || o.Prefixes > 0 && o.PrefixShare == nil {
		add("the number of prefixes (%d) must be > 0 and needs a prefix share", o.Prefixes)
	}
	if o.BlockSize < 0 || o.BlockSize > maxBlockSize {
		add("block size %d is not within 1…%d", o.BlockSize, maxBlockSize)
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

const maxBlockSize = 1 << 20

// FromProfile makes a trace of traffic like that of p, changed as o says; p may be nil where o gives lengths and a
// rate. The rows of the trace are sorted, sessions are named s_<number>, hash ids count up from 1. Equal arguments give
// equal traces, whatever the number of threads.
//
// What the options ask and the profile cannot give (a class that it has not, lengths that it does not tell, a rate
// curve that it lacks) is fault.Usage. Notes of the result say what was chosen and what the profile does not tell.
func FromProfile(ctx context.Context, p *profile.Profile, o ModelOptions) (*Result, error) {
	t := &trace.Trace{}
	meta, notes, err := Generate(ctx, p, o, func(r *schemas.TraceRow) error {
		t.Rows = append(t.Rows, *r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.Meta = meta
	return &Result{Trace: t, Notes: notes}, nil
}

// Drawn is traffic that is drawn again each time it is read: its memory is that of the sessions under way.
type Drawn struct {
	*trace.Stream
	InputTokens, OutputTokens int64 // of all rows
}

// StreamProfile is FromProfile for traffic that need not fit into memory: it draws once to know how much there is.
func StreamProfile(ctx context.Context, p *profile.Profile, o ModelOptions) (*Drawn, error) {
	m, err := prepare(ctx, p, o)
	if err != nil {
		return nil, err
	}
	d := &Drawn{}
	var rows, first, last int64
	meta, err := m.run(ctx, func(r *schemas.TraceRow) error {
		if rows == 0 {
			first = r.ScheduledUs
		}
		rows, last = rows+1, r.ScheduledUs
		d.InputTokens += int64(r.InputTokens)
		d.OutputTokens += int64(*r.OutputTokens)
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.Stream = trace.NewStream(meta, rows, first, last, func(ctx context.Context, visit func(*schemas.TraceRow) error) error {
		_, err := m.run(ctx, visit)
		return err
	})
	d.Notes = m.notes
	return d, nil
}
