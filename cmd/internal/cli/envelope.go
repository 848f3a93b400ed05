package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"tailgate/capacity"
)

func (a *app) envelopeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "envelope", Short: "Work with Capacity Envelopes"}
	cmd.AddCommand(a.envelopeDiffCommand(), a.envelopeHeadroomCommand())
	return cmd
}

func (a *app) envelopeDiffCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Compare the rates of two Capacity Envelopes",
		Long: `Compares Safe QPS by class and pattern, and says whether a change is beyond the error of the searches, and what else differs:
traces, SLOs, labels. OLD and NEW are envelope files or the folders of capacity tests.

Exit codes: 0 done; 1 unreadable; 2 wrong usage; 3 a rate fell beyond the error, or is no longer confirmed; 6 a broken file.`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			old, err := capacity.ReadEnvelope(args[0])
			if err != nil {
				return err
			}
			new, err := capacity.ReadEnvelope(args[1])
			if err != nil {
				return err
			}
			d := capacity.DiffEnvelopes(old, new)
			if d.Fell() {
				a.code = exitGateFailed
			}
			if asJSON {
				return json.NewEncoder(a.stdout).Encode(d)
			}
			return d.WriteText(a.stdout)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) checklistCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "checklist DIR",
		Short: "Prove the go-live items from a capacity test",
		Long: `Looks into the folder of a capacity test for eight things that stand before going live, each done, not done, or cannot tell,
with the file that shows it.

Exit codes: 0 all are done; 1 no capacity test there; 2 wrong usage; 3 one is missing or cannot be told; 6 a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := capacity.ReadChecklist(args[0])
			if err != nil {
				return err
			}
			if !c.Done() {
				a.code = exitGateFailed
			}
			if asJSON {
				return json.NewEncoder(a.stdout).Encode(c)
			}
			return c.WriteText(a.stdout)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}
