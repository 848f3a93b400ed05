package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"tailgate/ingest"
	"tailgate/internal/objstore"
)

func (a *app) reprocessCommand() *cobra.Command {
	f := ingestFlags{maxBad: "1%"}
	var reasons []string
	cmd := &cobra.Command{
		Use:   "reprocess kafka://broker/topic | FILE… --format F --out LAKE --keys DIR [--reason R]",
		Short: "Read dead letters again, by their pointers, and add what can be read now",
		Long: `Fetches the records of the dead-letter ledger again and decodes them with this version, --format and --classes.
What can be read becomes rows beside its segment, once, however often this runs; the next publish has them.
Use the epoch, tokenizer and template that the day was ingested with: rows of another epoch are late.

Exit codes: 0 done; 1 the source is unreachable, or another run was first; 2 wrong usage; 6 a broken lake; 7 key
missing or unsafe.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reprocess(cmd.Context(), args, &f, reasons) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.format, "format", "", "layout of the records, as for ingest; not auto")
	valueCodecFlag(fl, &f.run.valueCodec)
	f.kafka.register(fl)
	fl.StringVar(&f.lake, "out", "", "the lake: a folder, or s3://bucket/prefix")
	f.anon.register(fl)
	f.anon.registerKeys(fl)
	fl.StringVar(&f.classes, "classes", "", "YAML file with the rules for workload classes")
	fl.StringVar(&f.exclude, "exclude", "", "YAML file with the tenants, sessions and headers that opted out")
	fl.StringSliceVar(&f.labels, "model-label", nil, "model names that may be written as they are; others become m_ tokens")
	fl.StringSliceVar(&reasons, "reason", nil, "reasons of the dead letters to read again (default: all)")
	fl.BoolVar(&f.asJSON, "json", false, "print the report as one JSON object")
	return cmd
}

func (a *app) reprocess(ctx context.Context, sources []string, f *ingestFlags, reasons []string) error {
	hideText()
	o, err := f.options()
	ao, anonErr := f.anon.options()
	if err := allFaults(err, anonErr); err != nil {
		return err
	}
	o.ValueCodec = f.run.valueCodec
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
	src, err := a.openSource(ctx, sources, &f.kafka, false)
	if err != nil {
		return err
	}
	a.tellSettings(hasher)
	report, err := ingest.Reprocess(ctx, src, *o, reasons)
	if report == nil {
		return err
	}
	if f.asJSON {
		return errors.Join(err, a.printJSON(report))
	}
	return errors.Join(err, report.WriteText(a.stdout))
}
