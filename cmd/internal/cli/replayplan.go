package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"tailgate/replay"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// planFlags say what is sent and when.
type planFlags struct {
	tf          traceFlags
	sf          scaleFlags
	window      string
	leadIn      time.Duration
	warmup      time.Duration
	cooldown    time.Duration
	classes     []string
	requestRate rateFlag
	burstiness  float64
}

func (f *planFlags) addPlan(cmd *cobra.Command) {
	f.tf.add(cmd)
	f.sf.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.window, "window", "", "part of the trace, such as 0..5m, or burst:1 for its worst burst window")
	fl.DurationVar(&f.leadIn, "lead-in", 0, "the trace just before the window, replayed as warm-up")
	fl.DurationVar(&f.warmup, "warmup", 0, "rows scheduled before this are warm-up and are not judged")
	fl.DurationVar(&f.cooldown, "cooldown", 0, "rows scheduled in this last part keep the load up: they count in success, not in tails")
	fl.StringSliceVar(&f.classes, "classes", nil, "only these workload classes")
	fl.Var(&f.requestRate, "request-rate", "send the trace's rows at this rate instead of at their timestamps, such as 30/s")
	fl.Float64Var(&f.burstiness, "burstiness", 1, "with --request-rate: Gamma shape of the gaps; 1 = Poisson, below 1 burstier")
}

// validatePlan reports every fault that needs no trace.
func (f *planFlags) validatePlan(cmd *cobra.Command) error {
	var errs []error
	if f.window != "" {
		errs = append(errs, checkWindow(f.window))
	}
	if f.leadIn != 0 && f.window == "" {
		errs = append(errs, errors.New("--lead-in needs --window"))
	}
	if f.leadIn < 0 || f.warmup < 0 || f.cooldown < 0 {
		errs = append(errs, errors.New("--lead-in, --warmup and --cooldown must not be negative"))
	}
	if _, err := f.sf.options(f.tf.seed); err != nil {
		errs = append(errs, err)
	}
	if f.requestRate > 0 && cmd.Flags().Changed("scale") {
		errs = append(errs, errors.New("--scale and --request-rate contradict each other"))
	}
	if f.requestRate == 0 && cmd.Flags().Changed("burstiness") {
		errs = append(errs, errors.New("--burstiness needs --request-rate"))
	}
	return allFaults(errs...)
}

// planned is a trace made ready to send.
type planned struct {
	source     *trace.Trace // as read
	plan       *replay.Plan
	invariants []schemas.Invariant
	notes      []string
}

// stamps are the plan's stamps, in order.
func (p *planned) stamps() []time.Duration {
	out := make([]time.Duration, p.plan.Len())
	for i := range out {
		out[i] = p.plan.At(i)
	}
	return out
}

// make reads, cuts and scales the trace.
func (f *planFlags) make(ctx context.Context, a *app, path string) (*planned, error) {
	source, err := a.loadChecked(ctx, path, &f.tf)
	if err != nil {
		return nil, err
	}
	p := &planned{source: source, notes: source.Notes}
	t, length := source, time.Duration(0)
	if len(f.classes) > 0 {
		if t, err = t.SelectClasses(f.classes); err != nil {
			return nil, err
		}
	}
	if f.window != "" {
		w, err := a.windowOf(t, f.window)
		if err != nil {
			return nil, err
		}
		if t, err = t.Slice(w, f.leadIn); err != nil {
			return nil, err
		}
		if w.To > 0 {
			length = f.leadIn + w.To - w.From
		}
	}
	if t, err = f.rescale(ctx, t, p); err != nil {
		return nil, err
	}
	p.plan = &replay.Plan{Rows: t.Rows, BlockSize: t.Meta.BlockSize, Warmup: max(f.leadIn, f.warmup), Cooldown: f.cooldown, Length: length}
	return p, nil
}

func (f *planFlags) rescale(ctx context.Context, t *trace.Trace, p *planned) (*trace.Trace, error) {
	if f.requestRate > 0 {
		return f.atRate(t)
	}
	o, err := f.sf.options(f.tf.seed)
	if err != nil {
		return nil, err
	}
	if o.Scale == 1 {
		return t, nil
	}
	res, err := synth.Rescale(ctx, t, o)
	if err != nil {
		return nil, err
	}
	p.invariants = res.Invariants
	p.notes = append(p.notes, res.Notes...)
	return res.Trace, nil
}

// atRate gives the rows of t new stamps, in their order.
func (f *planFlags) atRate(t *trace.Trace) (*trace.Trace, error) {
	o := synth.ArrivalOptions{Kind: synth.Poisson, Rate: float64(f.requestRate), N: int64(len(t.Rows)), Seed: f.tf.seed}
	if f.burstiness != 1 {
		o.Kind, o.Burstiness = synth.Gamma, f.burstiness
	}
	at, err := synth.Arrivals(o)
	if err != nil {
		return nil, err
	}
	out := *t
	out.Rows = append([]schemas.TraceRow(nil), t.Rows...)
	for i := range out.Rows {
		out.Rows[i].ScheduledUs = at[i].Microseconds()
	}
	return &out, nil
}
