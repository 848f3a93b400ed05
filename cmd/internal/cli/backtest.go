package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tailgate/analyze"
	"tailgate/trace"
)

// backtestFlags are the flags of `tailgate backtest`.
type backtestFlags struct {
	lake, start, lengths     string
	tolerance, out, markdown string
	asJSON                   bool

	o analyze.BacktestOptions
}

func (a *app) backtestCommand() *cobra.Command {
	var f backtestFlags
	cmd := &cobra.Command{
		Use:   "backtest RUN --lake LAKE --day D",
		Short: "Hold a replay at 1.0x against the latencies that production had",
		Long: `Compares ttft and e2e of a replay at 1.0x with ttft and duration of the same requests in production, as the lake has
them for the window that was replayed: ratios of p50, p95 and p99 for all requests, each class, and each class and
length of prompts, with intervals by a bootstrap over blocks of time that both sides share. A p99 that is over 15 % off,
and surely off, marks the run as not calibrated, with the factor. The result goes to backtest.json in the run's folder.

Exit codes: 0 calibrated; 1 failed while running; 2 wrong usage, or not a replay of that day at 1.0x; 3 not calibrated;
4 the run is invalid; 5 cannot tell; 6 broken rows.`,
		Example: `  tailgate trace export lake --day 2026-11-28 --window 10h..11h -o hour.jsonl.zst
  tailgate replay hour.jsonl.zst --target http://cluster:8000 --out run
  tailgate backtest run --lake lake --day 2026-11-28`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.backtest(cmd.Context(), args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.lake, "lake", "", "lake: a folder or s3://bucket/prefix")
	fl.StringVar(&f.o.Day, "day", "", "UTC day of the lake that the trace was exported from, 2006-01-02")
	fl.StringVar(&f.start, "start", "", "when the trace began in production, for runs that do not tell it: 2026-11-28T10:00:00Z")
	fl.StringVar(&f.lengths, "lengths", "0,1024,8192", "edges of the ranges of prompt lengths, in tokens")
	fl.StringVar(&f.tolerance, "tolerance", "15%", "by how much a p99 may differ")
	fl.Uint64Var(&f.o.Seed, "seed", 1, "seed of the bootstrap")
	fl.StringVarP(&f.out, "output", "o", "", "file to write, - for stdout (default: RUN/"+analyze.BacktestName+")")
	fl.StringVar(&f.markdown, "markdown", "", "also write the comparison as Markdown, - for stdout")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

// read reads the flags and reports every fault.
func (f *backtestFlags) read() error {
	var errs []error
	if f.lake == "" {
		errs = append(errs, errors.New("--lake is missing"))
	}
	if f.o.Day == "" {
		errs = append(errs, errors.New("--day is missing"))
	} else if _, err := time.Parse(time.DateOnly, f.o.Day); err != nil {
		errs = append(errs, fmt.Errorf("--day %q must look like 2006-01-02", f.o.Day))
	}
	var err error
	if f.o.Tolerance, err = parsePercent("tolerance", f.tolerance); err == nil && (f.o.Tolerance == 0 || f.o.Tolerance >= 1) {
		err = fmt.Errorf("--tolerance %q must lie between 0 and 100%%", f.tolerance)
	}
	errs = append(errs, err)
	for text := range strings.SplitSeq(f.lengths, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if err != nil || n < 0 || len(f.o.Edges) > 0 && n <= f.o.Edges[len(f.o.Edges)-1] {
			errs = append(errs, fmt.Errorf("--lengths %q must be ascending numbers of tokens", f.lengths))
			break
		}
		f.o.Edges = append(f.o.Edges, n)
	}
	if f.start != "" {
		f.o.Start, err = parseTime("start", f.start)
		errs = append(errs, err)
	}
	return allFaults(append(errs, oneStdout(f.asJSON, f.renderings(nil)...))...)
}

// renderings are the forms of the result that the flags ask for.
func (f *backtestFlags) renderings(b *analyze.Backtested) []rendering {
	return []rendering{{"-o", f.out, b.WriteJSON}, {"--markdown", f.markdown, b.WriteMarkdown}}
}

func (a *app) backtest(ctx context.Context, run string, f *backtestFlags) error {
	if err := f.read(); err != nil {
		return err
	}
	data, err := analyze.Load(ctx, []string{run})
	if err != nil {
		return err
	}
	day, err := a.fetchDay(ctx, f.lake, f.o.Day)
	if err != nil {
		return err
	}
	defer day.drop()
	path, err := trace.DayFile(day.dir, f.o.Day)
	if err != nil {
		return day.renamed(err)
	}
	result, err := analyze.Backtest(ctx, data, path, f.o)
	if err != nil {
		return day.renamed(err)
	}
	if f.out == "" {
		f.out = filepath.Join(run, analyze.BacktestName)
	}
	a.code = backtestCode(result)
	return a.render(f.asJSON, result.WriteText, result.WriteJSON, f.renderings(result)...)
}

func backtestCode(b *analyze.Backtested) int {
	switch {
	case !b.Valid:
		return exitInvalid
	case b.Verdict == analyze.NotCalibrated:
		return exitGateFailed
	case b.Verdict == analyze.CannotTell:
		return exitInconclusive
	}
	return exitOK
}
