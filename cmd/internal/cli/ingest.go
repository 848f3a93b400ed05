package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tailgate/ingest"
	"tailgate/internal/objstore"
	"tailgate/internal/percent"
	"tailgate/internal/smallfile"
)

// ingestFlags are the flags of `tailgate ingest`.
type ingestFlags struct {
	format, lake, classes, exclude string
	labels                         []string
	maxBad                         string
	allowGap, acceptReset, asJSON  bool
	deep, distribute               bool
	group                          string
	metrics                        metricsFlags
	anon                           anonymizerFlags
	kafka                          kafkaFlags
	run                            runFlags
}

func (a *app) ingestCommand() *cobra.Command {
	var f ingestFlags
	cmd := &cobra.Command{
		Use:   "ingest kafka://broker/topic | s3://bucket/prefix | FILE… --format F --out LAKE --keys DIR",
		Short: "Read gateway logs into the segment log: nothing lost, nothing twice, no text on disk",
		Long: `Reads gateway logs up to the end that the source had at the start, hashes the prompts, and writes segments.
A second run goes on where the files end; every consumed record ends as rows, a counted skip or a dead letter.
Prompts are rendered by --template and cut into tokens by --tokenizer: o200k and plain are an estimate for a model
that is not theirs; give the served model's own for the block ids that its engine's cache sees.
LAKE is a folder or s3://bucket/prefix. Buckets are reached as the AWS environment says (AWS_REGION,
AWS_ACCESS_KEY_ID …); TAILGATE_S3_ENDPOINT names another server.

Exit codes: 0 done; 1 the source is unreachable or stalled, or too many bad records; 2 wrong usage; 6 a data gap,
a reset topic or a torn segment; 7 key missing or unsafe; 130 interrupted, with what was read saved.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.ingest(cmd.Context(), args, &f) },
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.StringVar(&f.lake, "out", "", "the lake: a folder, or s3://bucket/prefix")
	fl.BoolVar(&f.distribute, "distribute", false, "share the partitions with all runs of the same --group, also when one of them fails or joins")
	f.metrics.register(fl)
	fl.BoolVar(&f.asJSON, "json", false, "print the report as one JSON object")
	f.anon.registerKeys(fl)
	f.run.registerBounds(fl)
	return cmd
}

// register adds the flags that say how the log is read; a refresh file has them too.
func (f *ingestFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.format, "format", "", formatUsage)
	f.anon.register(fl)
	fl.StringVar(&f.classes, "classes", "", "YAML file with the rules for workload classes")
	fl.StringVar(&f.exclude, "exclude", "", "YAML file with the tenants, sessions and headers that opted out; dropped before hashing")
	fl.StringSliceVar(&f.labels, "model-label", nil, "model names that may be written as they are; others become m_ tokens")
	fl.StringVar(&f.maxBad, "max-bad", "1%", "share of bad records above which the run fails")
	fl.BoolVar(&f.allowGap, "allow-gap", false, "go on when retention has removed records that were not read")
	fl.BoolVar(&f.acceptReset, "accept-reset", false, "start a new generation when the topic was recreated")
	fl.BoolVar(&f.deep, "deep", false, "read the footers of all segments at the start, not only the last of each partition")
	fl.StringVar(&f.group, "group", "tailgate", "Kafka group that is told the position, and that hands out partitions with --distribute")
	f.kafka.register(fl)
	f.run.register(fl)
}

func (a *app) ingest(ctx context.Context, sources []string, f *ingestFlags) error {
	hideText()
	o, err := f.options()
	ao, anonErr := f.anon.options()
	if err := allFaults(err, anonErr, f.run.apply(o), o.CheckLimits(), f.metrics.check("tailgate_ingest", "worker", f.run.worker)); err != nil {
		return err
	}
	hasher, err := a.anonymizer(ctx, &f.anon, ao, o)
	if err != nil {
		return err
	}
	defer hasher.Close()
	o.Logger = a.logger()
	if objstore.IsS3(f.lake) {
		if o.Bucket, err = a.openBucket(ctx, f.lake); err != nil {
			return err
		}
	}
	report, err := a.runIngest(ctx, sources, f, o, func() { a.tellSettings(hasher) })
	if report != nil {
		if f.asJSON {
			err = errors.Join(err, a.printJSON(report))
		} else {
			err = errors.Join(err, report.WriteText(a.stdout))
		}
	}
	return err
}

// runIngest opens the source, calls opened, and runs, with a line of progress and the metrics file.
func (a *app) runIngest(ctx context.Context, sources []string, f *ingestFlags, o *ingest.Options, opened func()) (*ingest.Report, error) {
	line := a.progress()
	defer line.end()
	var rate ingestRate
	metrics := newIngestMetrics(&f.metrics)
	var metricsErr error
	o.OnProgress = func(p ingest.Progress) {
		line.show(rate.text(p))
		metricsErr = metrics.progress(p)
	}
	src, err := a.openSource(ctx, sources, &f.kafka, f.run.follow)
	if err == nil {
		opened()
	}
	if err == nil && o.Format == ingest.FormatAuto {
		err = a.detect(ctx, src, o)
	}
	var report *ingest.Report
	if err == nil {
		defer limitMemory(ingestMemory)()
		report, err = ingest.Run(ctx, src, *o)
	}
	if endErr := metrics.end(ctx, a, report, err != nil); endErr != nil {
		metricsErr = endErr
	}
	return report, errors.Join(err, metricsErr)
}

// detect looks which format the source has.
func (a *app) detect(ctx context.Context, src ingest.Source, o *ingest.Options) error {
	found, err := ingest.DetectFormat(ctx, src, ingest.DefaultSample)
	if err != nil {
		return err
	}
	a.note("format: %s", &found)
	o.Format = found.Format
	return nil
}

// options reads what the flags and the class file say; every fault is listed.
func (f *ingestFlags) options() (*ingest.Options, error) {
	var errs []error
	if f.lake == "" {
		errs = append(errs, errors.New("--out is missing"))
	}
	format, mapping, err := parseFormat(f.format)
	errs = append(errs, err)
	maxBad, err := parseShare(f.maxBad)
	if err != nil {
		errs = append(errs, fmt.Errorf("--max-bad: %w", err))
	}
	o := &ingest.Options{Format: format, Mapping: mapping, Lake: f.lake, Models: f.labels, MaxBad: maxBad,
		AllowGap: f.allowGap, AcceptReset: f.acceptReset, Deep: f.deep, Distribute: f.distribute, Group: f.group}
	o.Classes, err = readClasses(f.classes)
	errs = append(errs, err)
	if f.exclude != "" {
		data, err := smallfile.Config(f.exclude)
		if err == nil {
			o.Exclude, err = ingest.ParseExclude(f.exclude, data)
		}
		errs = append(errs, err)
	}
	return o, allFaults(errs...)
}

// readClasses reads a rules file; "" gives nil.
func readClasses(path string) (*ingest.ClassRules, error) {
	if path == "" {
		return nil, nil
	}
	data, err := smallfile.Config(path)
	if err != nil {
		return nil, err
	}
	return ingest.ParseClasses(path, data)
}

// parseShare reads 1% or 0.01.
func parseShare(s string) (float64, error) {
	v, err := percent.Parse(s)
	if err != nil || v < 0 || v > 1 {
		return 0, fmt.Errorf("%q is not a share such as 1%% or 0.01", s)
	}
	return v, nil
}

// ingestMemory is from which size on the collector works harder, so that an ingest stays below 512 MiB.
const ingestMemory = 384 << 20

// limitMemory sets such a size unless GOMEMLIMIT does, and returns what sets it back.
func limitMemory(bytes int64) (back func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(bytes)
	return func() { debug.SetMemoryLimit(before) }
}
