package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tailgate/anonymize/audit"
	"tailgate/internal/objstore"
)

// auditFlags are the flags of `tailgate audit`.
type auditFlags struct {
	canaries, classes string
	models, labels    []string
	asJSON            bool
}

func (a *app) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit DIR | FILE | s3://bucket/prefix [--canaries FILE]",
		Short: "Look for text where there must be none: in every byte, page, dictionary and statistic",
		Long: `Reads all files below DIR, hidden ones too: as they lie there, decompressed (gzip, zstd, every Parquet page and
dictionary), decoded, and behind escapes. With --canaries it looks for texts that were planted in the input, one a
line, as they are and in lower or upper case, escaped, in base64, hex, percent signs or UTF-16, and for their first
12 bytes. It always holds the strings of Parquet files (values, dictionaries, minima and maxima, footers) and of
timed traces to the allow-list of their table: a closed list, a keyed token, or a label that --model-label, --classes or --label names.
What is found is counted by file and place; neither a canary nor a value is printed.

Exit codes: 0 nothing was found; 1 failed while running; 2 wrong usage; 6 a file could not be read; 7 something was found.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.audit(cmd.Context(), args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.canaries, "canaries", "", "file with texts that must not be found, one a line; - reads stdin")
	fl.StringVar(&f.classes, "classes", "", "YAML file with the rules for workload classes: their names may be found")
	fl.StringSliceVar(&f.models, "model-label", nil, "model names that may be found, as for ingest")
	fl.StringSliceVar(&f.labels, "label", nil, "other labels that may be found, for example tenants of a foreign trace")
	fl.BoolVar(&f.asJSON, "json", false, "print the report as one JSON object")
	return cmd
}

func (a *app) audit(ctx context.Context, path string, f *auditFlags) error {
	hideText()
	o, err := f.options(a)
	if err != nil {
		return err
	}
	line := a.progress()
	o.OnFile = func(done, total int) { line.show(fmt.Sprintf("%d of %d files", done, total)) }
	report, err := a.runAudit(ctx, path, *o)
	line.end()
	if err != nil {
		return err
	}
	if f.asJSON {
		err = a.printJSON(report)
	} else {
		err = report.WriteText(a.stdout)
	}
	return errors.Join(err, report.Err())
}

func (a *app) runAudit(ctx context.Context, path string, o audit.Options) (*audit.Report, error) {
	if !objstore.IsS3(path) {
		return audit.Path(ctx, path, o)
	}
	bucket, err := a.openBucket(ctx, path)
	if err != nil {
		return nil, err
	}
	return audit.Bucket(ctx, bucket, o)
}

// options reads the files that the flags name.
func (f *auditFlags) options(a *app) (*audit.Options, error) {
	o := &audit.Options{Labels: append(f.models, f.labels...)}
	classes, err := readClasses(f.classes)
	if classes != nil {
		o.Labels = append(o.Labels, classes.Classes()...)
	}
	if f.canaries == "" {
		return o, allFaults(err)
	}
	in := a.stdin
	if f.canaries != "-" {
		file, ferr := os.Open(f.canaries)
		if ferr != nil {
			return nil, allFaults(err, usage(fmt.Errorf("--canaries: %w", ferr), ""))
		}
		defer file.Close()
		in, o.Skip = file, f.canaries
	}
	canaries, cerr := audit.ReadCanaries(in)
	if cerr == nil && len(canaries) == 0 {
		cerr = usage(errors.New("--canaries: the file holds none"), "one canary a line")
	}
	o.Canaries = canaries
	return o, allFaults(err, cerr)
}
