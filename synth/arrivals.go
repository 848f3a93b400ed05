package synth

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
)

// Kinds of arrivals.
const (
	Constant = "constant" // equal gaps
	Poisson  = "poisson"  // exponential gaps
	Gamma    = "gamma"    // Gamma gaps of a given burstiness
)

// maxArrivals bounds one schedule.
const maxArrivals = 1 << 30

// ArrivalOptions say which arrivals to draw.
type ArrivalOptions struct {
	Kind string  // Constant, Poisson or Gamma
	Rate float64 // mean arrivals per second
	// Burstiness is the Gamma shape: 1 = Poisson, below 1 burstier, CV = 1/√burstiness. Gamma only; elsewhere 0.
	Burstiness float64
	N          int64         // number of arrivals; 0 = as many as come before Duration
	Duration   time.Duration // an arrival at or after it is not sent; 0 = no limit
	Seed       uint64
}

// Validate reports every fault of the options.
func (o ArrivalOptions) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Kind != Constant && o.Kind != Poisson && o.Kind != Gamma {
		add("arrivals must be %s, %s or %s, not %q", Constant, Poisson, Gamma, o.Kind)
	}
	if !positive(o.Rate) {
		add("request rate must be a finite number > 0, not %v", o.Rate)
	}
	if o.Kind == Gamma && !positive(o.Burstiness) {
		add("burstiness must be a finite number > 0, not %v", o.Burstiness)
	}
	if o.Kind != Gamma && o.Burstiness != 0 {
		add("burstiness has no meaning for %s arrivals", o.Kind)
	}
	switch {
	case o.N < 0 || o.Duration < 0:
		add("number %d and duration %v of arrivals must be >= 0", o.N, o.Duration)
	case o.N == 0 && o.Duration == 0:
		add("arrivals need a number or a duration")
	case o.N > maxArrivals || o.N == 0 && o.Rate*o.Duration.Seconds() > maxArrivals:
		add("more than %d arrivals", maxArrivals)
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// Arrivals returns offsets from 0, ascending, equal ones allowed. It stops at N arrivals or before Duration,
// whichever comes first.
//
// Constant arrivals are at i/rate from i = 0. The others are renewal processes seen from a random moment on: the
// gaps have the shape Burstiness and the scale 1/(rate·shape), the first wait is the rest of a gap that was
// under way, so that the mean number in any interval is rate times its length. The sum of the gaps is never
// forced to a total; offsets are rounded to nanoseconds one by one, so rounding does not add up.
func Arrivals(o ArrivalOptions) ([]time.Duration, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	next := o.clock()
	out := make([]time.Duration, 0, o.expected())
	for o.N == 0 || int64(len(out)) < o.N {
		ns := math.Round(next() * 1e9)
		if o.Duration > 0 && ns >= float64(o.Duration) {
			break
		}
		if ns >= math.MaxInt64 {
			return nil, fault.Mark(fmt.Errorf("drawing arrivals: %d at %v/s last longer than 292 years", o.N, o.Rate), fault.Usage, "")
		}
		if len(out) == maxArrivals {
			return nil, fault.Mark(fmt.Errorf("drawing arrivals: more than %d", maxArrivals), fault.Usage, "")
		}
		out = append(out, time.Duration(ns))
	}
	return out, nil
}

// expected is a bound for the first allocation.
func (o ArrivalOptions) expected() int64 {
	n := o.N
	if o.Duration > 0 {
		byTime := int64(o.Rate*o.Duration.Seconds()*1.1) + 16
		if n == 0 || byTime < n {
			n = byTime
		}
	}
	return min(n, 1<<22)
}

// clock returns the function that gives the next arrival in seconds.
func (o ArrivalOptions) clock() func() float64 {
	if o.Kind == Constant {
		i := 0.0
		return func() float64 {
			at := i / o.Rate
			i++
			return at
		}
	}
	shape := 1.0
	if o.Kind == Gamma {
		shape = o.Burstiness
	}
	r := rng.New(o.Seed, "arrival")
	gap := distuv.Gamma{Alpha: shape, Beta: o.Rate * shape, Src: r}
	// The gap under way at a random moment is drawn in proportion to its length, which adds 1 to the shape.
	underWay := distuv.Gamma{Alpha: shape + 1, Beta: o.Rate * shape, Src: r}
	at, first := 0.0, true
	return func() float64 {
		if first {
			first = false
			at = r.Float64() * underWay.Rand()
		} else {
			at += gap.Rand()
		}
		return at
	}
}
