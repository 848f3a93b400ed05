package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tailgate/analyze"
	"tailgate/internal/parquetio"
	"tailgate/internal/smallfile"
	"tailgate/internal/version"
	"tailgate/schemas"
)

// analyzeFlags are the flags of `tailgate analyze`.
type analyzeFlags struct {
	gate, html, junit, markdown string
	tables, truth               string
	by                          []string
	k                           int
	warmup                      time.Duration
	asJSON, trend               bool
	explain                     explainFlags
}

func (a *app) analyzeCommand() *cobra.Command {
	var f analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze RUN_DIR… | results.jsonl",
		Short: "Judge a run: tails per bucket, gate verdict, report",
		Long: `Reads run folders, anyone's results as JSONL or Parquet, and what AIPerf (profile_export.jsonl), vLLM bench
(--save-detailed), GuideLLM (JSON) and inference-perf (per request) write, and prints the tails per bucket with their
intervals. With --gate it judges them. Several inputs are merged row by row; five or more runs also get intervals over runs.
With --explain it also says why requests break the limits: what they have in common that the others lack, with shares and
intervals (docs/explain.md).

--trend shows instead how the tails moved from day to day, and those of all days together, from histograms merged over
runs. It reads run folders, and what an earlier --parquet stored of runs whose rows are gone; it gives no verdict.

Exit codes: 0 done, gate passed; 1 unreadable; 2 wrong usage or a faulty gate file; 3 gate failed; 4 run invalid, also
without a gate; 5 inconclusive; 6 broken rows.`,
		Example: `  tailgate analyze run --gate gate.yaml --by input_length=0,1024,8192 --by 'tenant*class'
  tailgate analyze run --by time=5m                      slices of the run
  tailgate analyze shard-0 shard-1 shard-2 --json        shards of one run, as one JSON object
  tailgate analyze run --gate gate.yaml --junit gate.xml --markdown - --parquet tables/2026-11-30
  tailgate analyze --trend tables/*                      the days side by side`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			warmup := &f.warmup
			if !cmd.Flags().Changed("warmup") {
				warmup = nil
			}
			if f.trend {
				return a.trend(cmd.Context(), args, &f, warmup)
			}
			return a.analyze(cmd.Context(), args, &f, warmup)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.gate, "gate", "", "gate file (YAML); ${VARS} are taken from the environment")
	fl.StringArrayVar(&f.by, "by", nil, "`buckets`: input_length=0,1024,8192, tenant, class, model, target, time=5m, tenant*class (repeatable)")
	fl.DurationVar(&f.warmup, "warmup", 0, "leave out what was scheduled before this (default: the run's own)")
	fl.IntVar(&f.k, "k", analyze.DefaultK, "tenants with fewer requests are merged into other; 1 keeps all")
	fl.StringVar(&f.html, "html", "", "also write the report as one HTML file, - for stdout")
	fl.StringVar(&f.junit, "junit", "", "also write the gate's rules as JUnit XML, - for stdout")
	fl.StringVar(&f.markdown, "markdown", "", "also write the report as Markdown, - for stdout")
	fl.StringVar(&f.tables, "parquet", "", "also write runs, buckets and verdicts as Parquet files into this folder")
	fl.StringVar(&f.truth, "truth", "", "compare with what the simulated engine saw (the file of tailgate sim --truth)")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	fl.BoolVar(&f.trend, "trend", false, "show the tails day by day from merged histograms")
	f.explain.add(cmd)
	return cmd
}

func (a *app) analyze(ctx context.Context, inputs []string, f *analyzeFlags, warmup *time.Duration) error {
	o := analyze.Options{Warmup: warmup, Histograms: f.tables != ""}
	var gateErr error
	by, byErr := parseBys(f.by)
	o.By = by
	o.Gate, gateErr = a.loadGate(f.gate)
	explain, explainErr := f.explain.options(o.Gate)
	if err := allFaults(byErr, gateErr, explainErr, checkK(f.k), oneStdout(f.asJSON, f.renderings(nil)...)); err != nil {
		return err
	}
	defer spareMemory(15)()
	load := analyze.Load
	if f.explain.on {
		load = analyze.LoadExplained
	}
	data, err := loadResultsBy(ctx, load, inputs, f.k)
	if err != nil {
		return err
	}
	report, err := analyze.Analyze(ctx, data, o)
	if err != nil {
		return err
	}
	if f.explain.on {
		if err := a.explain(ctx, &f.explain, report, data, o, explain); err != nil {
			return err
		}
	}
	if f.truth != "" {
		if report.Truth, err = analyze.CompareTruth(ctx, inputs, f.truth); err != nil {
			return err
		}
	}
	if err := writeTables(report, f.tables); err != nil {
		return err
	}
	a.code = verdictCode(report)
	return a.render(f.asJSON, report.WriteText, report.WriteJSON, f.renderings(report)...)
}

// renderings are the forms of a report that the flags ask for.
func (f *analyzeFlags) renderings(r *analyze.Report) []rendering {
	return []rendering{{"--html", f.html, r.WriteHTML}, {"--junit", f.junit, r.WriteJUnit}, {"--markdown", f.markdown, r.WriteMarkdown}}
}

// parseBys reads every --by.
func parseBys(texts []string) ([]analyze.By, error) {
	var out []analyze.By
	var errs []error
	for _, s := range texts {
		by, err := analyze.ParseBy(s)
		out, errs = append(out, by), append(errs, err)
	}
	return out, allFaults(errs...)
}

func checkK(k int) error {
	if k < 1 {
		return fmt.Errorf("--k must be at least 1, not %d", k)
	}
	return nil
}

// loadResults loads results for reports: tenants with fewer than k requests are merged.
func loadResults(ctx context.Context, inputs []string, k int) (*analyze.Data, error) {
	return loadResultsBy(ctx, analyze.Load, inputs, k)
}

func loadResultsBy(ctx context.Context, load func(context.Context, []string) (*analyze.Data, error), inputs []string, k int) (*analyze.Data, error) {
	data, err := load(ctx, inputs)
	if err != nil {
		return nil, err
	}
	data.MergeTenants(k)
	return data, nil
}

func (a *app) loadGate(path string) (*analyze.Gate, error) {
	if path == "" {
		return nil, nil
	}
	data, err := smallfile.Config(path)
	if err != nil {
		return nil, fmt.Errorf("reading the gate: %w", err)
	}
	return analyze.ParseGate(path, data, a.getenv)
}

// writeTables writes the report's tables into dir; "" writes nothing.
func writeTables(r *analyze.Report, dir string) error {
	if dir == "" {
		return nil
	}
	if err := makeDir(dir); err != nil {
		return err
	}
	runs, err := r.RunRows()
	if err != nil {
		return err
	}
	buckets, verdicts := r.Tables()
	return errors.Join(
		writeTable(dir, schemas.TableRuns, runs),
		writeTable(dir, schemas.TableBuckets, buckets),
		writeTable(dir, schemas.TableVerdicts, verdicts))
}

func writeTable[T any](dir, name string, rows []T) error {
	footer := schemas.Footer{Schema: name, Tool: version.String()}
	return parquetio.WriteFile(filepath.Join(dir, name+".parquet"), footer.Map(), rows)
}

// verdictCode is the exit code of a report. A run that is invalid has no valid figures either, so it ends with 4
// without a gate too.
func verdictCode(r *analyze.Report) int {
	switch r.Verdict() {
	case schemas.VerdictFail:
		return exitGateFailed
	case schemas.VerdictInvalid:
		return exitInvalid
	case schemas.VerdictInconclusive:
		return exitInconclusive
	}
	if len(r.Invalid) > 0 {
		return exitInvalid
	}
	return exitOK
}
