package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tailgate/ingest"
	"tailgate/internal/smallfile"
)

// formatUsage describes --format.
var formatUsage = "layout of the records: auto, " + strings.Join(ingest.Formats(), ", ") + ", or mapped:FILE for a mapping of your own"

// parseFormat reads --format: a name, or a mapping file.
func parseFormat(s string) (string, *ingest.Mapping, error) {
	path, mapped := strings.CutPrefix(s, ingest.FormatMapped+":")
	switch {
	case s == "":
		return "", nil, errors.New("--format is missing")
	case !mapped:
		return s, nil, nil
	}
	data, err := smallfile.Config(path)
	if err != nil {
		return "", nil, fmt.Errorf("--format: reading %s: %w", path, errors.Unwrap(err))
	}
	m, err := ingest.ParseMapping(path, data)
	return ingest.FormatMapped, m, err
}

func (a *app) inspectCommand() *cobra.Command {
	var o ingest.InspectOptions
	var k kafkaFlags
	var format, classes, print string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect kafka://broker/topic | FILE…",
		Short: "Show which fields gateway logs have, and what a format makes of them; never a value",
		Long: `Looks at the first records and prints the paths and types of their fields with counts, the format that they
have, and how many of them its decoder would turn into rows. No value is printed, and names that may be values
(ids, addresses, sentences used as keys) are shown as *. With --classes it prints the share of rows that each
class of a rules file would get; input lengths that the log does not tell are estimated. Nothing is written.

--print-mapping NAME prints a shipped mapping instead, as a start for a mapping file of your own.

Exit codes: 0 done; 1 the source is unreachable or broken; 2 wrong usage.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if print != "" {
				return a.printMapping(print)
			}
			hideText()
			var errs []error
			if len(args) == 0 {
				errs = append(errs, errors.New("no source to look at"))
			}
			if o.Sample < 0 {
				errs = append(errs, fmt.Errorf("--sample must not be negative, not %d", o.Sample))
			}
			var err error
			o.Format, o.Mapping, err = parseFormat(format)
			errs = append(errs, err)
			o.Classes, err = readClasses(classes)
			if err := allFaults(append(errs, err)...); err != nil {
				return err
			}
			return a.inspect(cmd.Context(), args, &k, o, asJSON)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&format, "format", ingest.FormatAuto, formatUsage)
	k.register(fl)
	valueCodecFlag(fl, &o.ValueCodec)
	fl.IntVar(&o.Sample, "sample", ingest.DefaultSample, "messages to look at")
	fl.StringVar(&classes, "classes", "", "YAML file with rules for workload classes, to print the shares they would give")
	fl.StringVar(&print, "print-mapping", "", "print a shipped mapping: "+strings.Join(ingest.ShippedMappings(), ", "))
	fl.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) inspect(ctx context.Context, sources []string, k *kafkaFlags, o ingest.InspectOptions, asJSON bool) error {
	src, err := a.openSource(ctx, sources, k, false)
	if err != nil {
		return err
	}
	in, err := ingest.Inspect(ctx, src, o)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(in)
	}
	return in.WriteText(a.stdout)
}

func (a *app) printMapping(name string) error {
	text, ok := ingest.ShippedMapping(name)
	if !ok {
		return usage(fmt.Errorf("--print-mapping: %q is not one of %s", name, strings.Join(ingest.ShippedMappings(), ", ")), "")
	}
	_, err := a.stdout.Write(text)
	return err
}
