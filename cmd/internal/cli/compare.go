package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tailgate/analyze"
	"tailgate/internal/percent"
)

// compareFlags are the flags of `tailgate compare`.
type compareFlags struct {
	gate, again, markdown string
	maxWorse              string
	by                    []string
	k                     int
	seed                  uint64
	asJSON                bool
}

func (a *app) compareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare BASE RUN…",
		Short: "Tell whether runs of one trace differ, and by how much",
		Long: `Compares runs of one trace, request by request: how much p50, p95 and p99 of ttft, tpot and e2e changed against the
first run, with intervals by a paired bootstrap over blocks of time, and which requests break the limits of --gate in
one run alone. --again gives a second run of BASE: what two runs of the same system differ by is the floor below which
nothing is called a change. BASE and RUN may be several folders each, joined by commas, or results of other tools of the
same trace, as for analyze.

Exit codes: 0 compared; 1 unreadable; 2 wrong usage, or runs of different traces; 3 with --max-worse: a percentile
surely rose by more; 4 a run is invalid or did other work; 6 broken rows.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.compare(cmd.Context(), args, &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.gate, "gate", "", "gate file (YAML): its origin and warm-up are used, and its latency limits compared")
	fl.StringArrayVar(&f.by, "by", nil, "`buckets`: input_length=0,1024,8192, tenant, class, model, target, time=5m, tenant*class; or label:parallelism to name the runs by a label (repeatable)")
	fl.IntVar(&f.k, "k", analyze.DefaultK, "tenants with fewer requests are merged into other; 1 keeps all")
	fl.StringVar(&f.again, "again", "", "a second run of BASE, for the floor of noise")
	fl.StringVar(&f.maxWorse, "max-worse", "", "exit 3 when a percentile surely rose by more, such as 5%")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the bootstrap")
	fl.StringVar(&f.markdown, "markdown", "", "also write the comparison as Markdown, - for stdout")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) compare(ctx context.Context, inputs []string, f *compareFlags) error {
	o := analyze.CompareOptions{Seed: f.seed}
	label, bys := labelOf(f.by)
	by, byErr := parseBys(bys)
	o.By = by
	var err error
	o.Gate, err = a.loadGate(f.gate)
	worse, worseErr := parsePercent("max-worse", f.maxWorse)
	if err := allFaults(byErr, err, worseErr, checkK(f.k), oneStdout(f.asJSON, rendering{flag: "--markdown", path: f.markdown})); err != nil {
		return err
	}
	var arms []analyze.Arm
	for _, in := range inputs {
		data, err := loadResults(ctx, strings.Split(in, ","), f.k)
		if err != nil {
			return err
		}
		name := armName(in)
		if label != "" {
			if name, err = labelled(data, in, label); err != nil {
				return err
			}
		}
		arms = append(arms, analyze.Arm{Name: name, Data: data})
	}
	if f.again != "" {
		if o.Again, err = loadResults(ctx, strings.Split(f.again, ","), f.k); err != nil {
			return err
		}
	}
	c, err := analyze.Compare(ctx, arms, o)
	if err != nil {
		return err
	}
	switch {
	case !c.Valid:
		a.code = exitInvalid
	case f.maxWorse != "" && c.Worst() > worse:
		a.code = exitGateFailed
	}
	return a.render(f.asJSON, c.WriteText, c.WriteJSON, rendering{"--markdown", f.markdown, c.WriteMarkdown})
}

// labelOf takes label:KEY out of --by: the label that names the arms.
func labelOf(bys []string) (label string, rest []string) {
	for _, by := range bys {
		if key, ok := strings.CutPrefix(by, "label:"); ok {
			label = key
		} else {
			rest = append(rest, by)
		}
	}
	return label, rest
}

// labelled names an arm by a label of its run.
func labelled(d *analyze.Data, path, label string) (string, error) {
	for _, in := range d.Inputs {
		if in.Manifest != nil && in.Manifest.Labels[label] != "" {
			return label + "=" + in.Manifest.Labels[label], nil
		}
	}
	return "", usage(fmt.Errorf("%s has no label %s", path, label), "give runs labels with --label "+label+"=…")
}

// armName is the short name of a run: its folder's.
func armName(in string) string {
	first, _, _ := strings.Cut(in, ",")
	return filepath.Base(filepath.Clean(first))
}

// parsePercent reads a share such as 5% or 0.05; "" is 0.
func parsePercent(flag, s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	v, err := percent.Parse(s)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("--%s: %q is not a share such as 5%%", flag, s)
	}
	return v, nil
}
