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
	tf       traceFlags
	shape    reshapeFlags
	rate     rateFlags
	leadIn   time.Duration
	warmup   time.Duration
	cooldown time.Duration
}

func (f *planFlags) addPlan(cmd *cobra.Command) {
	f.tf.add(cmd)
	f.shape.add(cmd)
	fl := cmd.Flags()
	fl.DurationVar(&f.leadIn, "lead-in", 0, "the trace just before the window, replayed as warm-up")
	fl.DurationVar(&f.warmup, "warmup", 0, "rows scheduled before this are warm-up and are not judged")
	fl.DurationVar(&f.cooldown, "cooldown", 0, "rows scheduled in this last part keep the load up: they count in success, not in tails")
	f.rate.add(cmd)
}

// validatePlan reports every fault that needs no trace.
func (f *planFlags) validatePlan(cmd *cobra.Command, duration time.Duration) error {
	errs := []error{f.shape.validate(f.tf.seed), f.rate.read(cmd, duration)}
	if f.leadIn != 0 && f.shape.window == "" {
		errs = append(errs, errors.New("--lead-in needs --window"))
	}
	if f.leadIn < 0 || f.warmup < 0 || f.cooldown < 0 {
		errs = append(errs, errors.New("--lead-in, --warmup and --cooldown must not be negative"))
	}
	return allFaults(errs...)
}

// planned is a trace made ready to send.
type planned struct {
	source     schemas.FileDigest
	meta       trace.Meta // of the trace as read
	scale      float64    // times the rate of the trace
	startedAt  time.Time  // wall time of the schedule's zero in the source; zero = not known
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

// make reads, cuts and scales the trace, row by row where nothing of it must be seen as a whole, so that the rows are in
// memory once, packed.
// A run that is asked for its first minutes (until) or requests (count) has no rows behind them; 0 = all.
func (f *planFlags) make(ctx context.Context, a *app, path string, until time.Duration, count int64) (*planned, error) {
	s, err := a.scan(ctx, path, f.tf.options())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := checked(ctx, s); err != nil {
		return nil, err
	}
	p := &planned{source: traceDigest(&s.Meta, s.Len()), meta: s.Meta, scale: 1, notes: s.Notes}
	t, length := s, time.Duration(0)
	if f.shape.cuts() {
		whole, err := s.Load(ctx)
		if err != nil {
			return nil, err
		}
		part, l, err := a.cut(whole, &f.shape.cutFlags, f.leadIn, f.tf.seed)
		if err != nil {
			return nil, err
		}
		t, length, p.notes = part.Stream(), l, part.Notes
	}
	p.startedAt = t.Meta.StartedAt
	packed, behind := &replay.Packed{}, 0
	add := func(row *schemas.TraceRow) error {
		if until > 0 && row.ScheduledUs >= until.Microseconds() || count > 0 && int64(packed.Len()) == count {
			behind++
			return nil
		}
		packed.Add(row)
		return nil
	}
	switch {
	case f.rate.on():
		var notes []string
		notes, err = f.rate.restamp(ctx, t, f.tf.seed, add)
		p.notes = append(p.notes, notes...)
	case f.shape.targetRate == 0 && f.shape.mode != synth.ModeModel && f.shape.scaleIsOne():
		err = t.Each(ctx, add)
	default:
		err = f.rescale(ctx, t, p, add)
	}
	if err != nil {
		return nil, err
	}
	lead := f.leadIn
	if f.shape.mode == synth.ModeWarp { // the window is as much shorter as its rows come sooner
		lead, length = time.Duration(float64(lead)/p.scale), time.Duration(float64(length)/p.scale)
	}
	if behind > 0 {
		length = until // 0 where the count ends it: its last row's stamp
		p.notes = append(p.notes, fmt.Sprintf("the run ends after %d rows: %d more of the plan lie behind --duration or --count", packed.Len(), behind))
	}
	p.plan = &replay.Plan{Packed: packed, BlockSize: t.Meta.BlockSize, Warmup: max(lead, f.warmup), Cooldown: f.cooldown,
		Bursts: f.rate.spans(), Length: length}
	return p, nil
}

func (f *planFlags) rescale(ctx context.Context, t *trace.Stream, p *planned, add func(*schemas.TraceRow) error) error {
	o, err := f.shape.options(f.tf.seed)
	if err != nil {
		return err
	}
	if len(f.shape.only) > 0 {
		return f.rescaleClasses(ctx, t, p, o, add)
	}
	res, err := synth.RescaleStream(ctx, t, o)
	if err != nil {
		return err
	}
	defer res.Close()
	err = res.Out.Each(ctx, add)
	p.invariants, p.scale = res.Invariants(), res.Scale
	p.notes = append(p.notes, f.shape.rateNote(res.Scale, res.Notes)...)
	return err
}

// rescaleClasses is rescale for some classes, with the trace in memory.
func (f *planFlags) rescaleClasses(ctx context.Context, t *trace.Stream, p *planned, o synth.Options, add func(*schemas.TraceRow) error) error {
	whole, err := t.Load(ctx)
	if err != nil {
		return err
	}
	res, err := synth.RescaleClasses(ctx, whole, f.shape.only, o)
	if err != nil {
		return err
	}
	p.invariants, p.scale = res.Invariants, res.Scale
	p.notes = append(p.notes, f.shape.rateNote(res.Scale, res.Notes)...)
	return res.Trace.Stream().Each(ctx, add)
}
