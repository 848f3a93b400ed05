package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tailgate/internal/parquetio"
	"tailgate/internal/version"
	"tailgate/profile"
	"tailgate/schemas"
)

func (a *app) profileDiffCommand() *cobra.Command {
	var changes []string
	var asJSON bool
	var out string
	cmd := &cobra.Command{
		Use:   "diff BEFORE NOW",
		Short: "Tell whether the traffic has drifted from an earlier profile",
		Long: `Holds the totals of a profile against those of an earlier one. Metrics and their limits:

` + limitsHelp() + `
Exit codes: 0 nothing drifted; 1 unreadable; 2 wrong usage; 3 a distance is above its limit; 6 a broken file.`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			limits, err := parseLimits(changes)
			if err != nil {
				return err
			}
			before, err := profile.Read(args[0])
			if err != nil {
				return err
			}
			now, err := profile.Read(args[1])
			if err != nil {
				return err
			}
			rows := profile.Drift(before, now, limits)
			if out != "" {
				footer := schemas.Footer{Schema: schemas.TableProfileDrift, Tool: version.String()}
				if err := parquetio.WriteFile(out, footer.Map(), rows); err != nil {
					return err
				}
			}
			if profile.Drifted(rows) > 0 {
				a.code = exitGateFailed
			}
			if asJSON {
				text, err := schemas.JSONList(rows)
				if err == nil {
					_, err = a.stdout.Write(text)
				}
				return err
			}
			profile.WriteDrift(a.stdout, rows)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&changes, "limit", nil, "another limit, such as request_rate=10%; metric=off leaves it out")
	fl.StringVarP(&out, "output", "o", "", "also write the rows to this Parquet file")
	fl.BoolVar(&asJSON, "json", false, "print the rows as one JSON list")
	return cmd
}

func limitsHelp() string {
	var b strings.Builder
	limits := profile.DefaultLimits()
	for _, m := range slices.Sorted(maps.Keys(limits)) {
		fmt.Fprintf(&b, "  %-18s %g\n", m, limits[m])
	}
	return b.String()
}

// parseLimits changes the default limits.
func parseLimits(changes []string) (profile.Limits, error) {
	limits := profile.DefaultLimits()
	var errs []error
	for _, c := range changes {
		metric, value, _ := strings.Cut(c, "=")
		if err := limits.Set(metric, value); err != nil {
			errs = append(errs, fmt.Errorf("--limit %s: %w", c, err))
		}
	}
	return limits, usage(errors.Join(errs...), "")
}
