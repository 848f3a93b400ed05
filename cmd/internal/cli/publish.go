package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"tailgate/ingest"
	"tailgate/internal/version"
)

func (a *app) publishCommand() *cobra.Command {
	var o ingest.PublishOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "publish LAKE --day D",
		Short: "Build a day of the lake from its segments",
		Long: `Dedupes, sorts by arrival, numbers turns, suppresses labels of small groups and keeps only shared block ids.
The same segments give the same bytes; the day's file is replaced whole. LAKE/day=*/*.parquet is always right.

Exit codes: 0 done; 1 failed while running; 2 wrong usage; 6 a segment is missing or torn.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Day == "" {
				return usage(errors.New("--day is missing"), helpHint(cmd))
			}
			o.Lake, o.Tool, o.Logger = args[0], version.String(), a.logger()
			report, err := ingest.Publish(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(report)
			}
			return report.WriteText(a.stdout)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.Day, "day", "", "UTC day, 2006-01-02")
	fl.IntVar(&o.K, "k", 0, "sessions below which a label is suppressed (default 20)")
	fl.IntVar(&o.MinRequests, "min-requests", 0, "requests below which a label is suppressed (default 100)")
	fl.BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	return cmd
}
