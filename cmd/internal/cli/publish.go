package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/objstore"
	"tailgate/internal/version"
)

// publishFlags are the flags of `tailgate publish`.
type publishFlags struct {
	ingest.PublishOptions
	several      dayRangeFlags
	keys, memory string
	metrics      metricsFlags
	asJSON       bool
}

func (a *app) publishCommand() *cobra.Command {
	var f publishFlags
	cmd := &cobra.Command{
		Use:   "publish LAKE --day D",
		Short: "Build a day of the lake from its segments",
		Long: `Dedupes, sorts by arrival, numbers turns, suppresses labels of small groups and keeps only shared block ids.
The same segments, options and keys give the same bytes, whatever --parts and --memory; the day's file is
replaced whole. LAKE/day=*/*.parquet is always right. LAKE is a folder or s3://bucket/prefix, reached as for ingest;
the day in a bucket has the bytes of the day in a folder. With --days, the days of a range are published one by one;
one that fails does not keep the next from being built.

Block ids that two tenants share, but fewer than --k, are keyed for each tenant with --keys, and left out
without. Rows of a later epoch than the day's are late: they are counted and left out until the whole day was
ingested again under a new epoch and is published with --backfill.

Exit codes: 0 done; 1 failed while running; 2 wrong usage; 6 a segment is missing or torn, epochs are mixed, or
the day is open and --complete was given; 7 the day's key is missing.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Lake = args[0]
			return a.publish(cmd, &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Day, "day", "", "UTC day, 2006-01-02")
	f.register(fl)
	fl.StringVar(&f.keys, "keys", "", keysUsage+"; for ids that only few tenants share")
	fl.DurationVar(&f.MaxDuration, "max-duration", 0, "how long after its arrival a request may be logged (default 32m)")
	fl.BoolVar(&f.Complete, "complete", false, "refuse a day whose records may not all have come")
	fl.BoolVar(&f.Backfill, "backfill", false, "build the day from its newest epoch alone")
	f.metrics.register(fl)
	f.several.register(fl)
	fl.BoolVar(&f.asJSON, "json", false, "print the report as one JSON object")
	return cmd
}

func (a *app) publish(cmd *cobra.Command, f *publishFlags) (err error) {
	ctx := cmd.Context()
	var missing error
	if f.Day == "" && f.several.days == "" {
		missing = errors.New("--day is missing")
	}
	if err := errors.Join(missing, f.several.read(f.Day), f.apply(cmd.Flags()), f.metrics.check("tailgate_publish", "shard", f.several.shard)); err != nil {
		return usage(err, helpHint(cmd))
	}
	f.Tool, f.Logger = version.String(), a.logger()
	if f.keys != "" {
		hideText()
		f.Keys = func(epoch string) (ingest.Keyer, error) { return a.dayKeys(ctx, f.keys, epoch) }
	}
	if objstore.IsS3(f.Lake) {
		if f.Bucket, err = a.openBucket(ctx, f.Lake); err != nil {
			return err
		}
	}
	if f.several.days == "" {
		return a.publishDay(ctx, f, f.Day)
	}
	return f.several.each(ctx, a, func(day string) error { return a.publishDay(ctx, f, day) })
}

func (a *app) publishDay(ctx context.Context, f *publishFlags, day string) error {
	o := f.PublishOptions
	o.Day = day
	report, err := ingest.Publish(ctx, o)
	if err != nil {
		return err
	}
	if err := f.metrics.end(ctx, a, publishMetrics(report)); err != nil {
		return err
	}
	if f.asJSON {
		return a.printJSON(report)
	}
	return report.WriteText(a.stdout)
}

// register adds the flags that say how a day is built; a refresh file has them too.
func (f *publishFlags) register(fl *pflag.FlagSet) {
	fl.IntVar(&f.K, "k", 0, "sessions below which a label is suppressed, and tenants below which a block id is not shared across them (default 20)")
	fl.IntVar(&f.MinRequests, "min-requests", 0, "requests below which a label is suppressed (default 100)")
	fl.IntVar(&f.Parts, "parts", 0, "segments read and sorted side by side (default: processors)")
	fl.StringVar(&f.memory, "memory", "512MiB", "rows and ids in memory at a time")
	fl.IntVar(&f.KeepBuilds, "keep-builds", 1, "earlier builds of the day to keep")
}

// apply reads those flags into the options.
func (f *publishFlags) apply(fl *pflag.FlagSet) error {
	var memory sizeFlag // read here, so that its fault is told with the others
	if err := memory.Set(f.memory); err != nil || memory == 0 {
		return fmt.Errorf("--memory: %q is not a size such as 512MiB", f.memory)
	}
	f.Memory = int(memory)
	if fl.Changed("keep-builds") && f.KeepBuilds == 0 {
		f.KeepBuilds = -1
	}
	return nil
}

// dayKeys loads the keys of a day's epoch.
func (a *app) dayKeys(ctx context.Context, source, epoch string) (ingest.Keyer, error) {
	keys, err := a.loadKeys(ctx, source, epoch)
	if err != nil {
		return nil, err
	}
	return anonymize.NewHasher(keys, anonymize.Options{})
}
