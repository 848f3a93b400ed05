package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tailgate/replay"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// rateFlags send a trace's rows at a rate instead of at their stamps.
type rateFlags struct {
	requestRate string
	rateSeries  string
	ramp        bool
	arrivals    string
	burstiness  float64
	bursts      []string

	series   synth.RateSeries
	declared []synth.Burst
}

func (f *rateFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.requestRate, "request-rate", "", "send the trace's rows at this rate instead of at their timestamps: 30/s, or a ramp over --duration such as 5/s..30/s")
	fl.StringVar(&f.rateSeries, "rate-series", "", "CSV file of time,rate lines (seconds or 10m; requests/s) instead of one rate")
	fl.BoolVar(&f.ramp, "ramp", false, "the rate of --rate-series goes in a line from point to point instead of holding until the next")
	fl.StringVar(&f.arrivals, "arrivals", "", "at a rate: poisson, gamma or constant (default: poisson, gamma with --burstiness)")
	fl.Float64Var(&f.burstiness, "burstiness", 0, "of gamma arrivals: the shape of the gaps; 1 = Poisson, below 1 burstier")
	fl.StringArrayVar(&f.bursts, "burst", nil, "at a rate: a `burst` that multiplies it for a while, such as at=10m,for=30s,x=4; its rows have the phase burst (repeatable)")
}

// on tells whether rows go at a rate.
func (f *rateFlags) on() bool { return f.requestRate != "" || f.rateSeries != "" }

// read reads the flags; duration is that of the run, 0 = not told.
func (f *rateFlags) read(cmd *cobra.Command, duration time.Duration) error {
	var errs []error
	if !f.on() {
		for _, flag := range []string{"burstiness", "arrivals", "burst", "ramp"} {
			if cmd.Flags().Changed(flag) {
				errs = append(errs, fmt.Errorf("--%s needs --request-rate or --rate-series", flag))
			}
		}
		return errors.Join(errs...)
	}
	for _, flag := range []string{"scale", "target-rate", "mode", "jitter"} {
		if cmd.Flags().Changed(flag) {
			errs = append(errs, fmt.Errorf("--%s and --request-rate contradict each other", flag))
		}
	}
	if f.ramp && f.rateSeries == "" {
		errs = append(errs, errors.New("--ramp needs --rate-series; a plain ramp is --request-rate 5/s..30/s"))
	}
	for _, s := range f.bursts {
		b, err := synth.ParseBurst(s)
		f.declared, errs = append(f.declared, b), append(errs, err)
	}
	var err error
	switch {
	case f.requestRate != "" && f.rateSeries != "":
		err = errors.New("--request-rate and --rate-series contradict each other")
	case f.rateSeries != "":
		f.series, err = readRateSeries(f.rateSeries, f.ramp)
	default:
		f.series, err = ramped(f.requestRate, duration)
	}
	errs = append(errs, err)
	if err == nil {
		_, err = synth.ArrivalsAlong(f.options(1, 0), f.series, nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ramped is one rate, or a line from one to another over the duration.
func ramped(s string, duration time.Duration) (synth.RateSeries, error) {
	from, to, err := parseRates(s)
	switch {
	case err != nil:
		return nil, err
	case to == 0:
		return synth.RateSeries{{Rate: from}}, nil
	case duration <= 0:
		return nil, errors.New("a ramp of --request-rate needs --duration")
	}
	return synth.RateSeries{{Rate: from, Ramp: true}, {At: duration, Rate: to}}, nil
}

func (f *rateFlags) options(n int64, seed uint64) synth.ArrivalOptions {
	o := synth.ArrivalOptions{Kind: f.arrivals, Burstiness: f.burstiness, N: n, Seed: seed}
	if o.Kind == "" {
		o.Kind = synth.Poisson
		if f.burstiness != 0 && f.burstiness != 1 {
			o.Kind = synth.Gamma
		}
	}
	if o.Kind == synth.Poisson && f.burstiness == 1 {
		o.Burstiness = 0
	}
	return o
}

// restamp gives the rows of t new stamps, in their order, and leaves out those for which the rate ends too early.
func (f *rateFlags) restamp(ctx context.Context, t *trace.Stream, seed uint64, add func(*schemas.TraceRow) error) (notes []string, err error) {
	at, err := synth.ArrivalsAlong(f.options(t.Len(), seed), f.series, f.declared)
	if err != nil {
		return nil, err
	}
	if int64(len(at)) < t.Len() {
		notes = append(notes, fmt.Sprintf("the rate ends after %d of %d rows", len(at), t.Len()))
	}
	n := 0
	return notes, t.Each(ctx, func(row *schemas.TraceRow) error {
		if n == len(at) {
			return nil
		}
		moved := *row
		moved.ScheduledUs = at[n].Microseconds()
		n++
		return add(&moved)
	})
}

// spans are the declared bursts.
func (f *rateFlags) spans() []replay.Span {
	var out []replay.Span
	for _, b := range f.declared {
		out = append(out, replay.Span{From: b.At, To: b.At + b.For})
	}
	return out
}
