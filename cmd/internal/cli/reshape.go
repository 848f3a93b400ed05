package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tailgate/synth"
	"tailgate/trace"
)

// reshapeFlags say which part of a trace is taken and how it is rescaled: the same for rescale and replay.
type reshapeFlags struct {
	cutFlags
	scaleFlags
}

func (f *reshapeFlags) add(cmd *cobra.Command) {
	f.cutFlags.add(cmd)
	f.scaleFlags.add(cmd)
}

// validate reports every fault that needs no trace.
func (f *reshapeFlags) validate(seed uint64) error {
	_, err := f.options(seed)
	return allFaults(f.cutFlags.validate(), err)
}

// untouched tells that the flags leave the trace as it is.
func (f *reshapeFlags) untouched() bool {
	return !f.cuts() && f.targetRate == 0 && f.mode != synth.ModeModel && f.scaleIsOne()
}

// cutFlags say which part of a trace is taken.
type cutFlags struct {
	window                string
	classes               []string
	sample                string
	clipInput, clipOutput int32
}

func (f *cutFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.window, "window", "", "part of the trace, such as 0..5m, or burst:1 for its worst burst window")
	fl.StringSliceVar(&f.classes, "classes", nil, "only these workload classes")
	fl.StringVar(&f.sample, "sample-sessions", "", "a random sample of whole sessions: 500 or 10%; the others are left out")
	fl.Int32Var(&f.clipInput, "clip-input", 0, "cut longer prompts to this many `tokens`, hash ids with them (0 = no limit)")
	fl.Int32Var(&f.clipOutput, "clip-output", 0, "cut longer outputs to this many `tokens` (0 = no limit)")
}

// cuts tells that something is cut.
func (f *cutFlags) cuts() bool {
	return f.window != "" || len(f.classes) > 0 || f.sample != "" || f.clipInput != 0 || f.clipOutput != 0
}

func (f *cutFlags) validate() error {
	var errs []error
	if f.window != "" {
		errs = append(errs, checkWindow(f.window))
	}
	if f.sample != "" {
		_, err := synth.ParseSample(f.sample)
		errs = append(errs, err)
	}
	if f.clipInput < 0 || f.clipOutput < 0 {
		errs = append(errs, errors.New("--clip-input and --clip-output must not be negative"))
	}
	return errors.Join(errs...)
}

// cut takes the classes, then the window with its lead-in, then the sample of sessions, and clips at last. length
// is that of a window with an end, 0 elsewhere.
func (a *app) cut(t *trace.Trace, f *cutFlags, leadIn time.Duration, seed uint64) (out *trace.Trace, length time.Duration, err error) {
	if len(f.classes) > 0 {
		if t, err = t.SelectClasses(f.classes); err != nil {
			return nil, 0, err
		}
	}
	if f.window != "" {
		w, err := a.windowOf(t, f.window)
		if err != nil {
			return nil, 0, err
		}
		if t, err = t.Slice(w, leadIn); err != nil {
			return nil, 0, err
		}
		if w.To > 0 {
			length = leadIn + w.To - w.From
		}
	}
	if f.sample != "" {
		n, err := synth.ParseSample(f.sample)
		if err != nil {
			return nil, 0, err
		}
		if t, err = synth.SampleSessions(t, n, seed); err != nil {
			return nil, 0, err
		}
	}
	if f.clipInput > 0 || f.clipOutput > 0 {
		if t, err = synth.Clip(t, f.clipInput, f.clipOutput); err != nil {
			return nil, 0, err
		}
	}
	return t, length, nil
}

// scaleFlags are the flags of everything that rescales.
type scaleFlags struct {
	scale          string
	targetRate     rateFlag
	mode           string
	jitter         time.Duration
	allowDistorted bool
	only           []string // classes that are scaled; nil = all
	scaleGiven     func() bool
}

func (f *scaleFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.scale, "scale", "1x", "times the rate: 1.5x, 1.5 or 150%")
	fl.Var(&f.targetRate, "target-rate", "instead of --scale: the mean rate that the trace is to have, such as 30/s")
	fl.StringVar(&f.mode, "mode", synth.ModeSession, `how to scale:
session      copies or drops whole sessions, for 0.05x to 20x. Keeps the duration, payloads at their time of day,
             think times, the shape of the day, shared prompts shared and private ones private. Loses independence
             of the added users within the jitter
warp         compresses time. Keeps every row, its order, the shape of the gaps to the microsecond. Loses think times,
             the day and the length of overloads, all divided by the scale: waits look too short
independent  copies sessions half an hour to an hour away. Keeps the duration, think times and the dispersion of
             counts. Loses the shape of the day: peaks fill troughs, waits look too short
balancer     what one of 1/scale replicas sees, sessions staying where they begin, least work left. Keeps stamps, ids
             and sessions. Loses exact shares of rows and the bursts that other replicas take
model        draws new requests from a profile of the trace. Keeps the fitted laws. Loses every single request
`)
	fl.DurationVar(&f.jitter, "jitter", 0, "how far copies of a session are shifted in mode session (default 5s)")
	fl.BoolVar(&f.allowDistorted, "allow-distorted", false, "go on when an invariant of the rescale is broken")
	fl.StringSliceVar(&f.only, "scale-classes", nil, "scale only these workload classes; the others stay as they are")
	f.scaleGiven = func() bool { return cmd.Flags().Changed("scale") }
}

// scaleIsOne tells that the scale is 1, however it is written.
func (f *scaleFlags) scaleIsOne() bool {
	scale, err := synth.ParseScale(f.scale)
	return err == nil && scale == 1
}

func (f *scaleFlags) options(seed uint64) (synth.Options, error) {
	o := synth.Options{Mode: f.mode, Jitter: f.jitter, Seed: seed, AllowDistorted: f.allowDistorted, TargetRate: float64(f.targetRate)}
	var err error
	switch {
	case f.targetRate != 0 && f.scaleGiven():
		err = errors.New("--scale and --target-rate contradict each other")
	case f.targetRate == 0:
		o.Scale, err = synth.ParseScale(f.scale)
	}
	if err != nil {
		bare := o
		bare.Scale, bare.TargetRate = 1, 0 // the other faults are told too
		return o, allFaults(err, bare.Validate())
	}
	return o, allFaults(o.Validate())
}

// rescaleTrace rescales a trace in memory; nil when the flags leave it as it is.
func (f *scaleFlags) rescaleTrace(ctx context.Context, t *trace.Trace, seed uint64) (*synth.Result, error) {
	o, err := f.options(seed)
	if err != nil {
		return nil, err
	}
	var res *synth.Result
	if len(f.only) > 0 {
		res, err = synth.RescaleClasses(ctx, t, f.only, o)
	} else {
		res, err = synth.Rescale(ctx, t, o)
	}
	if res != nil {
		res.Notes = f.rateNote(res.Scale, res.Notes)
	}
	return res, err
}

// rateNote adds what scale the target rate is.
func (f *scaleFlags) rateNote(scale float64, notes []string) []string {
	if f.targetRate == 0 {
		return notes
	}
	return append(notes, fmt.Sprintf("%.6g/s is %.6g times the rate of the trace", float64(f.targetRate), scale))
}
