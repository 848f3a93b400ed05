package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tailgate/analyze"
	"tailgate/capacity"
	"tailgate/internal/fault"
	"tailgate/internal/smallfile"
	"tailgate/profile"
	"tailgate/replay"
	"tailgate/schemas"
	"tailgate/sim"
	"tailgate/trace"
)

type capacityFlags struct {
	out    string
	cells  string
	dryRun bool
	asJSON bool
}

func (a *app) capacityCommand() *cobra.Command {
	var f capacityFlags
	cmd := &cobra.Command{
		Use:   "capacity PLAN.yaml",
		Short: "Find the rate that a cluster holds with its SLOs kept",
		Long: `Makes the runs of a plan: the closed loop's ladder, the search for Safe QPS in each cell (class/pattern), a soak with
bursts, and the cluster with one replica less. Every run is a command line that you can type yourself (commands.txt).
The outcome is the Capacity Envelope: envelope.yaml, .json, .parquet and .html in the folder of --out.

A test that was stopped goes on behind its last finished run when the same command is started again.

Exit codes: 0 every cell has a confirmed rate; 1 failed while running; 2 wrong usage; 4 runs stayed invalid; 5 a cell is
inconclusive, and how much longer it takes; 6 broken rows in the trace; 130 interrupted.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.capacity(cmd.Context(), args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "out", "o", "", "folder for the runs and the envelope (default: the plan's name)")
	fl.StringVar(&f.cells, "cells", "", "search these cells instead of the plan's: mix/real,chat/poisson, or all")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print every run, its length and the GPU-hours, and make none")
	fl.BoolVar(&f.asJSON, "json", false, "print the envelope as JSON")
	return cmd
}

// capacityTest is a plan with everything that it names.
type capacityTest struct {
	plan    *capacity.Plan
	options capacity.Options
	runner  *capacityRunner
	trace   trace.Meta
}

func (a *app) capacity(ctx context.Context, path string, f *capacityFlags) error {
	t, err := a.openCapacity(ctx, path, f)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.dryCapacity(t, f)
	}
	test, err := capacity.New(t.options)
	if err != nil {
		return err
	}
	if err := makeDir(t.options.Dir); err != nil {
		return err
	}
	e, err := test.Run(ctx)
	if err != nil {
		return a.capacityError(err, t.options.Dir)
	}
	e.TraceSHA256 = t.trace.SHA256
	if e.Profile, e.ProfileID, err = t.runner.profileUsed(); err != nil {
		return err
	}
	if err := e.Write(t.options.Dir); err != nil {
		return err
	}
	if !e.Confirmed() {
		a.code = exitInconclusive
	}
	if f.asJSON {
		return e.WriteJSON(a.stdout)
	}
	if err := e.WriteText(a.stdout); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "envelope: %s\n", filepath.Join(t.options.Dir, capacity.EnvelopeName))
	return nil
}

// capacityError says that a test can be gone on with. Runs that stay invalid end with a code of their own.
func (a *app) capacityError(err error, dir string) error {
	a.note("what was finished is kept in %s; the same command goes on from there", dir)
	var invalid *capacity.InvalidError
	if errors.As(err, &invalid) {
		a.printError(nil, err)
		a.code = exitInvalid
		return nil
	}
	return err
}

// openCapacity reads the plan and all it names, and reports every fault of them.
func (a *app) openCapacity(ctx context.Context, path string, f *capacityFlags) (*capacityTest, error) {
	data, err := smallfile.Config(path)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	plan, err := capacity.ParsePlan(path, data, a.getenv)
	if err != nil {
		return nil, err
	}
	if plan.Name == "" {
		plan.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if f.out == "" {
		f.out = "capacity-" + plan.Name
	}
	r := &capacityRunner{app: a, plan: plan, folder: filepath.Dir(path), dir: f.out}
	gate, gateErr := a.loadGate(r.path(plan.Gate))
	var minus1 *analyze.Gate
	var minusErr error
	if plan.NMinus1 != nil && plan.NMinus1.Gate != "" {
		minus1, minusErr = a.loadGate(r.path(plan.NMinus1.Gate))
	}
	backtest, backErr := readBacktest(r.path(plan.Calibration))
	traffic, meta, traceErr := a.traffic(ctx, r.path(plan.Trace), &r.hits)
	replicas, clusterErr := a.replicas(r.path(plan.Targets), plan)
	if err := errors.Join(gateErr, minusErr, traceErr, backErr, clusterErr); err != nil {
		return nil, err
	}
	r.traffic = traffic
	if err := setCells(plan, f.cells, traffic); err != nil {
		return nil, err
	}
	t := &capacityTest{plan: plan, runner: r, trace: meta, options: capacity.Options{Plan: plan, Gate: gate, Minus1: minus1, Backtest: backtest, Traffic: traffic, Runner: r,
		Dir: f.out, Digest: planDigest(plan, gate, minus1, meta.SHA256), Note: func(s string) { a.note("%s", s) },
		Facts: capacity.Facts{Replicas: replicas, Hits: r.hits}}}
	return t, nil
}

// readBacktest reads what tailgate backtest wrote; "" is none.
func readBacktest(path string) (*analyze.Backtested, error) {
	if path == "" {
		return nil, nil
	}
	data, err := smallfile.Data(path)
	if err != nil {
		return nil, fmt.Errorf("reading the calibration: %w", err)
	}
	b := &analyze.Backtested{}
	if err := json.Unmarshal(data, b); err != nil || b.Verdict == "" {
		return nil, fault.Mark(fmt.Errorf("reading the calibration: %s is no backtest.json", path), fault.Data, "")
	}
	return b, nil
}

// traffic reads the plan's trace once, for its rates, and for its hit curve where one is asked for.
func (a *app) traffic(ctx context.Context, path string, hits *capacity.Hits) (*capacity.Traffic, trace.Meta, error) {
	t, err := a.loadChecked(ctx, path, &traceFlags{seed: 1})
	if err != nil {
		return nil, trace.Meta{}, err
	}
	rows := func(yield func(*schemas.TraceRow) bool) {
		for i := range t.Rows {
			if !yield(&t.Rows[i]) {
				return
			}
		}
	}
	if hits != nil && t.Meta.BlockSize > 0 {
		at := profile.Capacities()
		c := profile.PrefixHits(rows, t.Meta.BlockSize, at)
		hits.BlockSize, hits.Uses = t.Meta.BlockSize, c.Blocks
		for i, r := range c.LRU {
			hits.LRU = append(hits.LRU, capacity.HitPoint{CapacityBlocks: at[i], BlockHit: r.Block})
		}
	}
	traffic, err := capacity.NewTraffic(rows)
	return traffic, t.Meta, err
}

// replicas is how many replicas the plan's cluster has: by its label, its targets file, or the simulator's settings; 0 = not
// known, since behind one URL there may be several.
func (a *app) replicas(targets string, plan *capacity.Plan) (int, error) {
	if text := plan.Labels["replicas"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return 0, usage(fmt.Errorf("label replicas: %q is no number of replicas", text), "")
		}
		return n, nil
	}
	if strings.HasPrefix(plan.Target, "sim:") {
		config, err := sim.ParseSpec(plan.Target)
		return max(1, config.Replicas), err
	}
	if targets == "" {
		return 0, nil
	}
	data, err := smallfile.Config(targets)
	if err != nil {
		return 0, fmt.Errorf("reading targets file: %w", err)
	}
	t, err := replay.ParseTargets(targets, data, a.getenv)
	if err != nil || len(t.URLs) < 2 {
		return 0, err
	}
	return len(t.URLs), nil
}

func setCells(plan *capacity.Plan, cells string, traffic *capacity.Traffic) error {
	if cells == "" {
		return nil
	}
	plan.Cells = nil
	if cells == "all" {
		for _, class := range append([]string{capacity.Mix}, traffic.Classes()...) {
			for _, pattern := range capacity.Patterns() {
				plan.Cells = append(plan.Cells, capacity.Cell{Class: class, Pattern: pattern})
			}
		}
		return nil
	}
	var errs []error
	for text := range strings.SplitSeq(cells, ",") {
		c, err := capacity.ParseCell(strings.TrimSpace(text))
		plan.Cells, errs = append(plan.Cells, c), append(errs, err)
	}
	return allFaults(errs...)
}

// planDigest pins what the runs of a test have in common. The cells are not in it: more of them may be searched later.
func planDigest(plan *capacity.Plan, gate, minus1 *analyze.Gate, trace string) string {
	p := *plan
	p.Cells = nil
	data, _ := json.Marshal(map[string]any{"plan": p, "gate": gate, "minus1": minus1, "trace": trace})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// dryCapacity prints the runs of a plan with their times.
func (a *app) dryCapacity(t *capacityTest, f *capacityFlags) error {
	test, err := capacity.New(t.options)
	if err != nil {
		return err
	}
	parts, err := test.Dry()
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(a.stdout).Encode(parts)
	}
	gpus, _ := strconv.ParseFloat(t.plan.Labels["gpu_count"], 64)
	return capacity.WriteDry(a.stdout, parts, gpus)
}
