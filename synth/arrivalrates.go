package synth

import (
	"errors"
	"fmt"
	"math"
	"time"

	"tailgate/internal/fault"
)

// alongSeconds is how far a series is followed: its last rate holds for so long.
const alongSeconds = 10 * 365 * 86400

// ArrivalsAlong returns the arrivals of a rate that changes over time: those of o at one a second, moved to where
// the expected number of arrivals reaches them (operational time; Çinlar 1975), so that burstiness is the same at every
// rate. Bursts multiply the rate. o.Rate must be 0: series tells it. It stops like Arrivals, and where the rate ends at
// 0, in front of which fewer than N arrivals may lie.
func ArrivalsAlong(o ArrivalOptions, series RateSeries, bursts []Burst) ([]time.Duration, error) {
	errs := []error{series.validate()}
	if o.Rate != 0 {
		errs = append(errs, errors.New("a rate and a rate series contradict each other"))
	}
	if len(series) == 0 {
		errs = append(errs, errors.New("the rate series has no point"))
	}
	for _, b := range bursts {
		errs = append(errs, b.validate())
	}
	limit := o.Duration
	o.Rate, o.Duration = 1, 0
	if o.N == 0 && limit > 0 {
		o.N = maxArrivals
	}
	errs = append(errs, o.Validate())
	if err := errors.Join(errs...); err != nil {
		return nil, fault.Mark(err, fault.Usage, "")
	}
	c := burst(series.curve(alongSeconds), bursts)
	along, next := cursor{c: c}, o.clock()
	var out []time.Duration
	for int64(len(out)) < o.N {
		at, ok := along.when(next())
		ns := math.Round(at * 1e9)
		if !ok || limit > 0 && ns >= float64(limit) {
			break
		}
		if len(out) == maxArrivals {
			return nil, fault.Mark(fmt.Errorf("drawing arrivals: more than %d", maxArrivals), fault.Usage, "")
		}
		out = append(out, time.Duration(ns))
	}
	return out, nil
}

// burst multiplies the rate inside each burst.
func burst(c *curve, bursts []Burst) *curve {
	for _, b := range bursts {
		from, to := b.At.Seconds(), (b.At + b.For).Seconds()
		out := &curve{}
		for _, s := range c.segs {
			out.addPart(s, math.Inf(-1), from)
			if lo, hi := max(s.from, from), min(s.to, to); lo < hi {
				out.add(lo, hi, b.X*s.at(lo), b.X*s.at(hi))
			}
			out.addPart(s, to, math.Inf(1))
		}
		c = out
	}
	return c
}
