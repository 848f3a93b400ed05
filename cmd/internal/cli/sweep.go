package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tailgate/analyze"
	"tailgate/capacity"
	"tailgate/internal/atomicfile"
)

type sweepFlags struct {
	target, targets, out  string
	gate, preset, profile string
	concurrency, caps     []int
	rates                 string
	options               capacity.SweepOptions
	labels                labelsFlag
	replay                []string
	asJSON                bool
}

func (a *app) sweepCommand() *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep TRACE --target URL|sim:…",
		Short: "Run a grid of loads and draw how the cluster behaves",
		Long: `Runs the trace's traffic in closed loops (--concurrency), in open loops (--rates by --patterns, --lengths, --classes and
--max-inflight) and all at once (--offline), and keeps every run. A point says what the cluster did there; what rate it can
hold is found by tailgate capacity. What was finished is not run again when the same command is started once more.

Exit codes: 0 done; 1 failed while running; 2 wrong usage; 4 a run stayed invalid; 6 broken rows in the trace; 130 interrupted.`,
		Example: `  tailgate sweep trace.jsonl.gz --target http://10.0.0.1:8000 --concurrency 1,2,4,8,16,32
  tailgate sweep trace.jsonl.gz --target sim: --rates 1..6/s:6 --patterns poisson,smooth,bursty,real --gate gate.yaml
  tailgate sweep trace.jsonl.gz --target sim: --rates 2,4 --lengths short,mid,long --offline --preset mlperf-server:llama3.1-8b`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.sweep(cmd.Context(), args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.target, "target", "", "`URL` of an OpenAI-compatible server, or sim:SPEC")
	fl.StringVar(&f.targets, "targets", "", "targets file (YAML)")
	fl.StringVarP(&f.out, "out", "o", "sweep", "folder for the runs and the points")
	fl.IntSliceVar(&f.concurrency, "concurrency", nil, "closed loops with these numbers of slots")
	fl.StringVar(&f.rates, "rates", "", "open loops at these rates: 1,2,4/s, or 1..8/s:5 for five of equal ratio")
	fl.StringSliceVar(&f.options.Patterns, "patterns", nil, "arrivals: poisson (default), smooth, bursty, real")
	fl.StringSliceVar(&f.options.Lengths, "lengths", nil, "input lengths, one by one: short, mid, long, 512, 1024..8192 (default: the trace's)")
	fl.StringSliceVar(&f.options.Classes, "classes", nil, "workload classes, one by one and alone (default: the mix)")
	fl.IntSliceVar(&f.caps, "max-inflight", nil, "caps on requests in flight, 0 = none")
	fl.BoolVar(&f.options.Offline, "offline", false, "one more run with everything at once, and the server/offline ratio")
	fl.DurationVar(&f.options.Step, "step", 5*time.Minute, "length of a run, warm-up included")
	fl.DurationVar(&f.options.Warmup, "warmup", time.Minute, "part of it that is not measured")
	fl.Uint64Var(&f.options.Seed, "seed", 1, "seed of everything that is drawn")
	fl.StringVar(&f.gate, "gate", "", "gate file: judge each run")
	fl.StringVar(&f.preset, "preset", "", "limits to judge by, such as mlperf-server:llama2-70b")
	fl.StringVar(&f.profile, "profile", "", "profile of the trace for synthetic arrivals (default: made of it)")
	fl.Var(&f.labels, "label", "key=value to keep with the runs (repeatable)")
	fl.StringArrayVar(&f.replay, "replay", nil, "`NAME=VALUE`: one more flag of tailgate replay, such as api=chat (repeatable)")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

// plan is the sweep as a plan without cells.
func (f *sweepFlags) plan(path string) (*capacity.Plan, error) {
	p := &capacity.Plan{Name: "sweep", Target: f.target, Targets: f.targets, Trace: path, Profile: f.profile, Labels: f.labels, Replay: map[string]string{}, Seed: f.options.Seed}
	var errs []error
	if (f.target == "") == (f.targets == "") {
		errs = append(errs, errors.New("either --target or --targets is needed"))
	}
	if f.gate != "" && f.preset != "" {
		errs = append(errs, errors.New("--gate and --preset contradict each other"))
	}
	for _, text := range f.replay {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("--replay %q is not NAME=VALUE", text))
		}
		p.Replay[name] = value
	}
	var err error
	f.options.Concurrency, f.options.Caps = f.concurrency, f.caps
	f.options.Rates, err = parseRateList(f.rates)
	errs = append(errs, err, f.options.Validate())
	return p, allFaults(errs...)
}

func (a *app) sweep(ctx context.Context, path string, f *sweepFlags) error {
	plan, err := f.plan(path)
	if err != nil {
		return err
	}
	gate, err := a.sweepGate(f)
	if err != nil {
		return err
	}
	traffic, meta, err := a.traffic(ctx, path, nil)
	if err != nil {
		return err
	}
	r := &capacityRunner{app: a, plan: plan, dir: f.out, traffic: traffic}
	o := capacity.Options{Plan: plan, Gate: gate, Traffic: traffic, Runner: r, Dir: f.out, Digest: planDigest(plan, gate, nil, meta.SHA256), Note: func(s string) { a.note("%s", s) }}
	test, err := capacity.New(o)
	if err != nil {
		return err
	}
	if err := makeDir(f.out); err != nil {
		return err
	}
	gpus, _ := strconv.ParseFloat(f.labels["gpu_count"], 64)
	s, err := test.Sweep(ctx, f.options, gpus)
	if err != nil {
		return a.capacityError(err, f.out)
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the sweep: %w", err)
	}
	if err := atomicfile.WriteFile(filepath.Join(f.out, "sweep.json"), append(data, '\n')); err != nil {
		return err
	}
	if err := s.WriteTable(filepath.Join(f.out, "points.parquet"), o.Digest); err != nil {
		return err
	}
	if err := s.WriteHTML(filepath.Join(f.out, "sweep.html")); err != nil {
		return err
	}
	if f.asJSON {
		_, err := a.stdout.Write(append(data, '\n'))
		return err
	}
	return s.WriteText(a.stdout)
}

func (a *app) sweepGate(f *sweepFlags) (*analyze.Gate, error) {
	if f.preset == "" {
		return a.loadGate(f.gate)
	}
	text, err := capacity.PresetGate(f.preset)
	if err != nil {
		return nil, err
	}
	return analyze.ParseGate(f.preset, []byte(text), nil)
}

// parseRateList reads 1,2,4/s, or 1..8/s:5 for five rates of equal ratio.
func parseRateList(s string) ([]float64, error) {
	if s == "" {
		return nil, nil
	}
	if span, count, ok := strings.Cut(s, ":"); ok {
		from, to, err := parseRates(span)
		n, countErr := strconv.Atoi(count)
		if err != nil || countErr != nil || n < 2 || to <= from {
			return nil, fmt.Errorf("--rates %q is not a span such as 1..8/s:5", s)
		}
		return capacity.Ratios(from, to, n), nil
	}
	var out []float64
	for text := range strings.SplitSeq(strings.TrimSuffix(s, "/s"), ",") {
		rate, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), "/s"), 64)
		if err != nil {
			return nil, fmt.Errorf("--rates: %q is not a rate such as 4/s", text)
		}
		out = append(out, rate)
	}
	return out, nil
}
