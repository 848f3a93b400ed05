package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tailgate/analyze"
	"tailgate/internal/atomicfile"
	"tailgate/internal/parquetio"
	"tailgate/internal/version"
	"tailgate/schemas"
)

// analyzeFlags are the flags of `tailgate analyze`.
type analyzeFlags struct {
	gate, html, junit string
	tables, truth     string
	by                []string
	warmup            time.Duration
	asJSON            bool
}

func (a *app) analyzeCommand() *cobra.Command {
	var f analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze RUN_DIR… | results.jsonl",
		Short: "Judge a run: tails per bucket, gate verdict, report",
		Long: `Reads run folders, anyone's results as JSONL or Parquet, and what AIPerf (profile_export.jsonl), vLLM bench
(--save-detailed), GuideLLM (JSON) and inference-perf (per request) write, and prints the tails per bucket. With --gate
it judges them. Several inputs are merged row by row.

Exit codes: 0 done, gate passed; 1 unreadable; 2 wrong usage or a faulty gate file; 3 gate failed; 4 run invalid;
5 inconclusive; 6 broken rows.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			warmup := &f.warmup
			if !cmd.Flags().Changed("warmup") {
				warmup = nil
			}
			return a.analyze(cmd.Context(), args, &f, warmup)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.gate, "gate", "", "gate file (YAML); ${VARS} are taken from the environment")
	fl.StringArrayVar(&f.by, "by", nil, "buckets: input_length=0,1024,8192, tenant, class, model, target, tenant*class (repeatable)")
	fl.DurationVar(&f.warmup, "warmup", 0, "leave out what was scheduled before this (default: the run's own)")
	fl.StringVar(&f.html, "html", "", "also write the report as one HTML file")
	fl.StringVar(&f.junit, "junit", "", "also write the gate's rules as JUnit XML")
	fl.StringVar(&f.tables, "tables", "", "also write runs, buckets and verdicts as Parquet files into this folder")
	fl.StringVar(&f.truth, "truth", "", "compare with what the simulated engine saw (the file of tailgate sim --truth)")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) analyze(ctx context.Context, inputs []string, f *analyzeFlags, warmup *time.Duration) error {
	o := analyze.Options{Warmup: warmup}
	errs := []error{}
	for _, s := range f.by {
		by, err := analyze.ParseBy(s)
		o.By, errs = append(o.By, by), append(errs, err)
	}
	var err error
	o.Gate, err = a.loadGate(f.gate)
	if err := allFaults(append(errs, err)...); err != nil {
		return err
	}
	data, err := analyze.Load(ctx, inputs)
	if err != nil {
		return err
	}
	report, err := analyze.Analyze(ctx, data, o)
	if err != nil {
		return err
	}
	if f.truth != "" {
		if report.Truth, err = analyze.CompareTruth(ctx, inputs, f.truth); err != nil {
			return err
		}
	}
	if err := errors.Join(writeRendered(f.html, report.WriteHTML), writeRendered(f.junit, report.WriteJUnit)); err != nil {
		return err
	}
	if err := writeTables(report, f.tables); err != nil {
		return err
	}
	render := report.WriteText
	if f.asJSON {
		render = report.WriteJSON
	}
	a.code = verdictCode(report.Verdict())
	return render(a.stdout)
}

func (a *app) loadGate(path string) (*analyze.Gate, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the gate: %w", err)
	}
	return analyze.ParseGate(path, data, a.getenv)
}

// writeRendered writes a rendering to path, whole or not at all; "" writes nothing.
func writeRendered(path string, render func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	out, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := render(out); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return out.Commit()
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

func verdictCode(verdict string) int {
	switch verdict {
	case schemas.VerdictFail:
		return exitGateFailed
	case schemas.VerdictInvalid:
		return exitInvalid
	case schemas.VerdictInconclusive:
		return exitInconclusive
	default:
		return exitOK
	}
}
