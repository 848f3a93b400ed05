package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tailgate/sim"
)

type fitFlags struct {
	like       string
	experts    string
	budget     int
	confidence float64
	asJSON     bool
}

func (a *app) simFitCommand() *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit RUN_DIR…|RESULTS",
		Short: "Estimate the step model of an engine from a replay against it",
		Long: `Estimates the coefficients of the simulated engine's step model by least squares from the requests of one or more
runs, with their intervals, and prints a spec for --target. The spec plans and compares; it never issues a Safe QPS
for real hardware. Best is an open-loop run of at least a thousand streamed requests of mixed lengths below
saturation; queue times as the server tells them (vLLM: --enable-per-request-metrics) make it sharper.

Exit codes: 0 done; 1 cannot read; 2 wrong usage; 6 the run does not tell the model, or its rows are broken.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.simFit(cmd, args, &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.like, "like", "sim:", "engine whose limits and memory the spec takes, as a run does not show them")
	fl.StringVar(&f.experts, "experts", "", "k/E: a mixture of experts that reads k of E experts per token, such as 8/256")
	fl.IntVar(&f.budget, "max-num-batched-tokens", 0, "token budget of a step of the real engine (default: that of --like)")
	fl.Float64Var(&f.confidence, "confidence", .95, "of the intervals")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (f *fitFlags) options() (sim.FitOptions, error) {
	base, err := sim.ParseSpec(f.like)
	o := sim.FitOptions{Base: base, MaxBatchedTokens: f.budget, Confidence: f.confidence}
	errs := []error{err}
	if err == nil && base.Service > 0 {
		errs = append(errs, errors.New("--like must name an engine with steps"))
	}
	if f.budget < 0 {
		errs = append(errs, errors.New("--max-num-batched-tokens must be at least 1"))
	}
	if f.budget > 0 {
		o.Base.MaxBatchedTokens = max(f.budget, base.MaxNumSeqs)
	}
	if f.experts != "" {
		k, e, _ := strings.Cut(f.experts, "/")
		var errK, errE error
		o.ActiveExperts, errK = strconv.Atoi(k)
		o.Experts, errE = strconv.Atoi(e)
		if errK != nil || errE != nil || o.ActiveExperts < 1 || o.ActiveExperts >= o.Experts {
			errs = append(errs, fmt.Errorf("--experts %q is not k/E with 0 < k < E, such as 8/256", f.experts))
		}
	}
	if !(f.confidence > 0 && f.confidence < 1) {
		errs = append(errs, fmt.Errorf("--confidence must be between 0 and 1, not %v", f.confidence))
	}
	return o, allFaults(errs...)
}

func (a *app) simFit(cmd *cobra.Command, paths []string, f *fitFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	obs, err := sim.ReadObservations(cmd.Context(), paths)
	if err != nil {
		return err
	}
	fit, err := sim.FitSteps(obs, o)
	if err != nil {
		return err
	}
	check := fit.Check(obs)
	if f.asJSON {
		return a.printJSON(map[string]any{
			"spec": fit.Spec(), "coefficients": fit.Coefficients, "confidence": fit.Confidence,
			"requests": fit.Requests, "unusable": fit.Unusable, "targets": fit.Targets, "steps": math.Round(fit.Steps),
			"equations": fit.Equations, "dropped": fit.Dropped, "agreeing": fit.Agreeing,
			"residual_p50": fit.ResidualP50, "residual_p95": fit.ResidualP95, "check": check, "notes": fit.Notes,
		})
	}
	return a.printFit(fit, check)
}

func (a *app) printFit(fit *sim.Fit, check []sim.Compared) error {
	fmt.Fprintf(a.stdout, "%d requests on %d replicas, %.0f steps; %d equations, %d outliers left out\n", fit.Requests, fit.Targets,
		fit.Steps, fit.Equations, fit.Dropped)
	fmt.Fprintf(a.stdout, "steps agree with the tokens of %.1f %% of the requests; spans are within %.2g %% (median), %.2g %% (p95)\n\n",
		100*fit.Agreeing, 100*fit.ResidualP50, 100*fit.ResidualP95)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "coefficient\tvalue\t%.4g %% interval\tunit\t\n", 100*fit.Confidence)
	for _, c := range fit.Coefficients {
		if math.IsNaN(c.Low) {
			fmt.Fprintf(w, "%s\t?\t\t%s\t%s\n", c.Name, c.Unit, c.Note)
			continue
		}
		fmt.Fprintf(w, "%s\t%.5g\t%.5g … %.5g\t%s\t%s\n", c.Name, c.Value, c.Low, c.High, c.Unit, c.Note)
	}
	if len(check) > 0 {
		fmt.Fprintln(w, "\nthe same requests\tmeasured ms\tfitted ms\tfitted ÷ measured − 1\t")
		for _, x := range check {
			fmt.Fprintf(w, "%s\t%.4g\t%.4g\t%+.1f %%\t\n", x.Metric, x.Measured, x.Fitted, 100*(x.Fitted/x.Measured-1))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range fit.Notes {
		fmt.Fprintf(a.stdout, "note: %s\n", n)
	}
	if len(check) == 0 {
		fmt.Fprintln(a.stdout, "note: not checked against the run: too many of its prompt tokens came from the cache, or it is too long")
	}
	fmt.Fprintf(a.stdout, "\n--target %q\n", fit.Spec())
	return nil
}
