package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/smallfile"
	"tailgate/internal/version"
	"tailgate/refresh"
)

// Exit codes of refresh alone.
const (
	exitNoNewData = 8
	exitLateData  = 9
)

// refreshFlags are the flags of `tailgate refresh`.
type refreshFlags struct {
	day, backfill      string
	plan, cron, asJSON bool
}

func (a *app) refreshCommand() *cobra.Command {
	var f refreshFlags
	cmd := &cobra.Command{
		Use:   "refresh REFRESH.yaml [--day D]",
		Short: "Do the night's work: ingest, publish, profile, drift, traces, retention, status",
		Long: `Brings a day that is over from the gateway's log to profiles and traces, below the root of the file. What was done
is not done again: a second run says so, one that was killed goes on, and of two at a time one gives way. The result is
in reports/status.json and reports/status.html of the root.

--backfill FROM..TO builds days again, in order; one whose key is destroyed is read again under a new one.
--plan prints what the night will take, and changes nothing.
--cron makes the codes 8 and 9 (and 3, with cron: {drift_ok: true} in the file) 0; status.json tells them.

Exit codes: 0 done; 1 failed while running, or the plan says it cannot be done in time; 2 wrong usage; 3 drift; 6 a data
gap, a reset topic, or a torn file; 7 key missing or unsafe, or the canary was found; 8 no new data; 9 done, late data
waits; 130 interrupted: the same command goes on.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.refresh(cmd.Context(), args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.day, "day", "", "UTC day, 2006-01-02 (default: yesterday)")
	fl.StringVar(&f.backfill, "backfill", "", "days to build again: 2006-01-02 or 2006-01-02..2006-01-08")
	fl.BoolVar(&f.plan, "plan", false, "print records waiting, time, disk and what retention leaves, and change nothing")
	fl.BoolVar(&f.cron, "cron", false, "exit 0 also when there is no new data, or late data waits")
	fl.BoolVar(&f.asJSON, "json", false, "print the status, or the plan, as one JSON object")
	return cmd
}

func (a *app) refresh(ctx context.Context, path string, f *refreshFlags) error {
	hideText()
	o, err := a.refreshOptions(ctx, path, f)
	if err != nil {
		return err
	}
	defer limitMemory(ingestMemory)()
	if f.plan {
		return a.refreshPlan(ctx, o, f)
	}
	line := a.progress()
	defer line.end()
	var rate ingestRate
	o.Working = func(p ingestProgress) { line.show(rate.text(p)) }
	o.Progress = func(refresh.Step, string) { line.end() }
	status, err := refresh.Run(ctx, *o)
	line.end()
	if status == nil {
		return err
	}
	if f.asJSON {
		err = errors.Join(err, a.printJSON(status))
	} else {
		err = errors.Join(err, status.WriteText(a.stdout))
	}
	if err == nil {
		a.code = refreshCode(status.Exit, f.cron, o.Config)
	}
	return err
}

// refreshCode is the exit code of a run that did not fail.
func refreshCode(code int, cron bool, c *refresh.Config) int {
	if cron && (code == exitNoNewData || code == exitLateData || code == exitGateFailed && c.Cron.DriftOK) {
		return exitOK
	}
	return code
}

// refreshOptions reads the file and opens what it names, but for the source.
func (a *app) refreshOptions(ctx context.Context, path string, f *refreshFlags) (*refresh.Options, error) {
	data, err := smallfile.Config(path)
	if err != nil {
		return nil, fmt.Errorf("reading the refresh file: %w", err)
	}
	c, err := refresh.ParseConfig(path, data, a.getenv)
	if err != nil {
		return nil, err
	}
	o := &refresh.Options{Config: c, Tool: version.String(), Now: now, Logger: a.refreshLogger()}
	source, err := a.refreshStages(c, filepath.Dir(path), o)
	if err := errors.Join(err, f.days(o)); err != nil {
		return nil, usage(err, fault.Hint(err))
	}
	o.Open = source.open
	if o.Keys, err = a.openKeys(ctx, func() error { return nil }, besideFile(filepath.Dir(path), c.Keys)); err != nil {
		return nil, err
	}
	return o, a.openRoot(ctx, c, filepath.Dir(path), o)
}

// openRoot opens the folder or the bucket of the root.
func (a *app) openRoot(ctx context.Context, c *refresh.Config, dir string, o *refresh.Options) (err error) {
	var bucket *objstore.S3
	name := c.Root
	if objstore.IsS3(name) {
		if bucket, err = a.openBucket(ctx, name); err != nil {
			return err
		}
		if o.Bucket, err = a.openBucket(ctx, strings.TrimSuffix(name, "/")+"/"+refresh.LakeFolder); err != nil {
			return err
		}
	} else {
		name = besideFile(dir, name)
	}
	o.Root, err = refresh.OpenRoot(name, bucket)
	return err
}

// besideFile is a path of a file, relative to that file's folder; what is no path stays as it is.
func besideFile(dir, path string) string {
	if path == "" || filepath.IsAbs(path) || strings.Contains(path, "://") || strings.HasPrefix(path, "exec:") || path == "-" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, "file:"); ok {
		return "file:" + besideFile(dir, rest)
	}
	return filepath.Join(dir, path)
}

// days reads --day and --backfill.
func (f *refreshFlags) days(o *refresh.Options) error {
	if f.backfill == "" {
		if o.Day = f.day; o.Day == "" {
			o.Day = now().AddDate(0, 0, -1).Format(time.DateOnly)
		}
		return nil
	}
	o.Backfill = true
	from, to, ranged := strings.Cut(f.backfill, "..")
	if o.Day, o.To = from, to; !ranged {
		o.To = ""
	}
	switch {
	case f.day != "":
		return errors.New("--day and --backfill contradict each other")
	case ranged && to == "":
		return fmt.Errorf("--backfill: %q is not a day or FROM..TO", f.backfill)
	}
	for _, d := range []string{from, to} {
		if _, err := time.Parse(time.DateOnly, d); err != nil && d != "" {
			return fmt.Errorf("--backfill: %q is not a day such as 2026-11-28", d)
		}
	}
	return nil
}

// refreshLogger logs as a job does: also what went well.
func (a *app) refreshLogger() *slog.Logger {
	if a.quiet || a.log != nil {
		return a.logger()
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
}
