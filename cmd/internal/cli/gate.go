package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tailgate/analyze"
	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/trace"
)

func (a *app) gateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "gate", Short: "Work with gate files"}
	cmd.AddCommand(a.gateInitCommand())
	return cmd
}

func (a *app) gateInitCommand() *cobra.Command {
	var lake, day, out, slack string
	var minN int
	cmd := &cobra.Command{
		Use:   "init --from LAKE",
		Short: "Propose a gate from the latencies that production had",
		Long: `Writes a gate file whose limits are production's own p95 and p99 of ttft and duration on a published day, with some
slack, for the whole and for each class. It is marked as proposed: edit it before you rely on it.

Exit codes: 0 done; 1 failed while running; 2 wrong usage; 6 no latencies in the day, or a broken file.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			share, err := parsePercent("slack", slack)
			if lake == "" {
				err = errors.Join(err, errors.New("--from is missing: a lake"))
			}
			if minN < 1 {
				err = errors.Join(err, errors.New("--min-requests must be at least 1"))
			}
			if err := allFaults(err); err != nil {
				return err
			}
			ctx := cmd.Context()
			if day, err = a.newestDay(ctx, lake, day); err != nil {
				return err
			}
			folder, err := a.fetchDay(ctx, lake, day)
			if err != nil {
				return err
			}
			defer folder.drop()
			file, err := trace.DayFile(folder.dir, day)
			if fault.Of(err) == fault.Usage {
				return usage(fmt.Errorf("%s has no day %s", lake, day), "publish it first")
			}
			if err != nil {
				return folder.renamed(err)
			}
			text, err := analyze.ProposeGate(ctx, file, analyze.ProposeOptions{Day: day, Slack: share, MinN: minN})
			if err != nil {
				return folder.renamed(err)
			}
			if out == "-" {
				_, err = a.stdout.Write(text)
				return err
			}
			if err := atomicfile.WriteFile(out, text); err != nil {
				return err
			}
			a.note("%s: proposed from %s, edit it before you rely on it", out, day)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&lake, "from", "", "lake: a folder or s3://bucket/prefix")
	fl.StringVar(&day, "day", "", "UTC day of the lake (default: the newest)")
	fl.StringVar(&slack, "slack", "20%", "how far a limit lies above what production had")
	fl.IntVar(&minN, "min-requests", 1000, "classes with fewer requests of a metric get no rule on it")
	fl.StringVarP(&out, "output", "o", "gate.yaml", "file to write, - for stdout")
	return cmd
}
