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

// planFlags say what is sent and when.
type planFlags struct {
	tf          traceFlags
	shape       reshapeFlags
	leadIn      time.Duration
	warmup      time.Duration
	cooldown    time.Duration
	requestRate rateFlag
	burstiness  float64
}

func (f *planFlags) addPlan(cmd *cobra.Command) {
	f.tf.add(cmd)
	f.shape.add(cmd)
	fl := cmd.Flags()
	fl.DurationVar(&f.leadIn, "lead-in", 0, "the trace just before the window, replayed as warm-up")
	fl.DurationVar(&f.warmup, "warmup", 0, "rows scheduled before this are warm-up and are not judged")
	fl.DurationVar(&f.cooldown, "cooldown", 0, "rows scheduled in this last part keep the load up: they count in success, not in tails")
	fl.Var(&f.requestRate, "request-rate", "send the trace's rows at this rate instead of at their timestamps, such as 30/s")
	fl.Float64Var(&f.burstiness, "burstiness", 1, "with --request-rate: Gamma shape of the gaps; 1 = Poisson, below 1 burstier")
}

// validatePlan reports every fault that needs no trace.
func (f *planFlags) validatePlan(cmd *cobra.Command) error {
	var errs []error
	errs = append(errs, f.shape.validate(f.tf.seed))
	if f.leadIn != 0 && f.shape.window == "" {
		errs = append(errs, errors.New("--lead-in needs --window"))
	}
	if f.leadIn < 0 || f.warmup < 0 || f.cooldown < 0 {
		errs = append(errs, errors.New("--lead-in, --warmup and --cooldown must not be negative"))
	}
	for _, flag := range []string{"scale", "target-rate", "mode", "jitter"} {
		if f.requestRate > 0 && cmd.Flags().Changed(flag) {
			errs = append(errs, fmt.Errorf("--%s and --request-rate contradict each other", flag))
		}
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
	p := &planned{source: source}
	t, length, err := a.cut(source, &f.shape.cutFlags, f.leadIn, f.tf.seed)
	if err != nil {
		return nil, err
	}
	p.notes = t.Notes
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
	if f.shape.targetRate == 0 && f.shape.mode != synth.ModeModel && f.shape.scaleIsOne() {
		return t, nil
	}
	res, err := f.shape.rescaleTrace(ctx, t, f.tf.seed)
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
