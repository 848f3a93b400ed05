package cli

import (
	"github.com/spf13/cobra"

	"tailgate/profile"
	"tailgate/schemas"
)

func (a *app) profileServeGenCommand() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "servegen DIR -o DIR",
		Short: "Make a profile of ServeGen's client files",
		Long: `DIR holds chunk-<n>-trace.csv and chunk-<n>-dataset.json of one model, as github.com/alibaba/ServeGen publishes them. They tell
rates, laws of the gaps and lengths of each client, and no requests: the profile has those three tables, with the client as
tenant, and the total of the clients that are there.

Exit codes: 0 done; 1 unreadable, or no client in DIR; 2 wrong usage; 6 broken content.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := newProfileDir(cmd, out); err != nil {
				return err
			}
			started := now()
			s, err := profile.ReadServeGen(args[0])
			if err != nil {
				return err
			}
			p := s.Profile()
			m := &schemas.Manifest{Kind: "profile", StartedAt: started, Inputs: s.Files, Settings: map[string]any{"format": profile.SourceServeGen}}
			if err := writeProfileDir(p, out, m); err != nil {
				return err
			}
			return a.showProfile(p, asJSON, "")
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "folder to write the tables into")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the total's tables as one JSON object")
	return cmd
}
