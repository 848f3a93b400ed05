package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tailgate/analyze"
	"tailgate/schemas"
)

// explainFlags are the flags of `tailgate analyze --explain`.
type explainFlags struct {
	on    bool
	trace string
	slo   []string
}

func (f *explainFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.on, "explain", false, "say why requests break the gate's limits (without a gate: --slo, else each bucket's own p99)")
	fl.StringVar(&f.trace, "trace", "", "with --explain: the trace that the run replayed, to see prefixes that should have been cached")
	fl.StringSliceVar(&f.slo, "slo", nil, "with --explain and without a gate: limits such as ttft=800ms,e2e=30s")
}

// options reads the flags; the gate is that of the analysis.
func (f *explainFlags) options(gate *analyze.Gate) (analyze.ExplainOptions, error) {
	var o analyze.ExplainOptions
	var errs []error
	if !f.on && (f.trace != "" || len(f.slo) > 0) {
		errs = append(errs, errors.New("--trace and --slo need --explain"))
	}
	if gate != nil && len(f.slo) > 0 {
		errs = append(errs, errors.New("--slo and --gate contradict each other"))
	}
	for _, s := range f.slo {
		metric, limit, _ := strings.Cut(s, "=")
		rule, err := analyze.LatencyRule(strings.TrimSpace(metric), limit)
		if err != nil {
			err = fmt.Errorf("--slo %q: %w", s, err)
		}
		o.Limits, errs = append(o.Limits, rule), append(errs, err)
	}
	return o, allFaults(errs...)
}

// explain adds the explanation to a report.
func (a *app) explain(ctx context.Context, f *explainFlags, report *analyze.Report, data *analyze.Data, o analyze.Options, e analyze.ExplainOptions) (err error) {
	if f.trace != "" {
		if e.Expected, err = a.expectedPrefixes(ctx, f.trace, data); err != nil {
			return err
		}
	}
	report.Explain, err = analyze.Explain(ctx, data, o, e)
	return err
}

// expectedPrefixes makes the plan of the run once more, from its manifest and the trace, for the numbers of rows in results are
// those of the plan.
func (a *app) expectedPrefixes(ctx context.Context, path string, data *analyze.Data) (func(int64) (int32, bool), error) {
	var m *schemas.Manifest
	for _, in := range data.Inputs {
		switch {
		case in.Manifest == nil:
			return nil, usage(fmt.Errorf("--trace: %s has no manifest that names its trace", in.Path), "")
		case m == nil:
			m = in.Manifest
		case schemas.InputsDigest(m.Inputs) != schemas.InputsDigest(in.Manifest.Inputs) || !maps.Equal(planSettings(m), planSettings(in.Manifest)):
			return nil, usage(fmt.Errorf("--trace: %s replayed another plan than %s", in.Path, data.Inputs[0].Path), "explain runs of one plan at a time")
		}
	}
	f, err := planOf(m)
	if err != nil {
		return nil, err
	}
	p, err := f.make(ctx, a, path, 0, 0)
	if err != nil {
		return nil, err
	}
	if len(m.Inputs) != 1 || m.Inputs[0].SHA256 != p.source.SHA256 {
		return nil, usage(fmt.Errorf("--trace: %s is not the trace that the run replayed", path), "its sha256 stands in the run's manifest.json")
	}
	return analyze.ExpectedPrefix(p.plan.All(), p.plan.BlockSize), nil
}

// planSettings are the settings of a run that its plan was made by.
func planSettings(m *schemas.Manifest) map[string]string {
	cmd := &cobra.Command{}
	(&planFlags{}).addPlan(cmd)
	out := map[string]string{}
	cmd.Flags().VisitAll(func(fl *pflag.Flag) {
		if value, ok := m.Settings[fl.Name].(string); ok {
			out[fl.Name] = value
		}
	})
	return out
}

// planOf reads the flags of a plan from the settings of a run.
func planOf(m *schemas.Manifest) (*planFlags, error) {
	f := &planFlags{}
	cmd := &cobra.Command{}
	f.addPlan(cmd)
	var errs []error
	settings := planSettings(m)
	cmd.Flags().VisitAll(func(fl *pflag.Flag) {
		if value, ok := settings[fl.Name]; ok && value != fl.Value.String() {
			for _, one := range listed(fl, value) {
				errs = append(errs, cmd.Flags().Set(fl.Name, one))
			}
		}
	})
	text, _ := m.Settings["duration"].(string)
	length, _ := time.ParseDuration(text) // "" where the run has none
	if err := errors.Join(append(errs, f.validatePlan(cmd, length))...); err != nil {
		return nil, fmt.Errorf("reading the settings of run %s: %w", m.RunID, err)
	}
	return f, nil
}

// listed takes the value of a flag apart that may stand several times: as pflag prints it, [a,b] with quotes as in CSV.
func listed(fl *pflag.Flag, value string) []string {
	if _, ok := fl.Value.(pflag.SliceValue); !ok {
		return []string{value}
	}
	parts, err := csv.NewReader(strings.NewReader(strings.Trim(value, "[]"))).Read()
	if err != nil {
		return nil
	}
	return parts
}
