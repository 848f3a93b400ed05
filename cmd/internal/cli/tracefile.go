package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"tailgate/trace"
)

// traceFlags are the flags of every command that reads a trace.
type traceFlags struct {
	format      string
	unit        string
	blockSize   int
	convention  string
	keepQuantum bool
	seed        uint64
}

func (f *traceFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.format, "from", "", "format of the input: mooncake, vllm, bailian, azure, burstgpt, parquet (default: detected)")
	fl.StringVar(&f.unit, "timestamp-unit", "", "unit of the input's timestamps: s, ms, us (default: by format)")
	fl.IntVar(&f.blockSize, "block-size", 0, "tokens per hash id (default: sidecar, else 512)")
	fl.StringVar(&f.convention, "convention", "", "rows of later turns: cumulative (whole prompts) or delta (what they add) (default: sidecar, else cumulative)")
	fl.BoolVar(&f.keepQuantum, "keep-quantum", false, "keep timestamps of a coarse clock as they are instead of spreading them")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of everything that is drawn")
}

func (f *traceFlags) options() trace.Options {
	return trace.Options{Format: f.format, Unit: f.unit, BlockSize: f.blockSize, Convention: f.convention,
		KeepQuantum: f.keepQuantum, Seed: f.seed}
}

// load reads a trace and prints its notes.
func (a *app) load(ctx context.Context, path string, f *traceFlags) (*trace.Trace, error) {
	return a.loadWith(ctx, path, f.options())
}

func (a *app) loadWith(ctx context.Context, path string, o trace.Options) (*trace.Trace, error) {
	var t *trace.Trace
	var err error
	if path == "-" {
		t, err = trace.Read(ctx, a.stdin, "stdin", o)
	} else {
		t, err = trace.Load(ctx, path, o)
	}
	if err != nil {
		return nil, err
	}
	for _, n := range t.Notes {
		a.note("%s: %s", t.Meta.Name, n)
	}
	return t, nil
}

// loadChecked reads a trace and refuses it when a row breaks a rule.
func (a *app) loadChecked(ctx context.Context, path string, f *traceFlags) (*trace.Trace, error) {
	t, err := a.load(ctx, path, f)
	if err != nil {
		return nil, err
	}
	return t, broken(t, t.Check())
}

// broken turns rule violations into one error that lists the first of them.
func broken(t *trace.Trace, faults []trace.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	var errs []error
	for _, f := range faults[:min(len(faults), 10)] {
		errs = append(errs, errors.New(f.String()))
	}
	return brokenRows(t.Meta.Name, errs, int64(len(faults)))
}

// writeTrace is writeStream for a trace in memory.
func (a *app) writeTrace(ctx context.Context, t *trace.Trace, path, format, tool string) error {
	return a.writeStream(ctx, t.Stream(), path, format, tool)
}
