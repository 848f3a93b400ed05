package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tailgate/anonymize"
)

func (a *app) keysCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, list and destroy the keys that ids are made with",
		Long: `Keys live in a folder of mode 0700, one file of mode 0600 per epoch. Without a key there is no run; a key
is never given on the command line and never printed. Ids made under different epochs cannot be joined.

Exit codes: 0 done; 2 wrong usage; 7 key missing or unsafe.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&dir, "keys", "", "folder of the keys")
	needDir := func() error {
		if dir == "" {
			return usage(errors.New("--keys is missing"), "tailgate keys init --keys DIR makes a new folder of keys")
		}
		return nil
	}
	initialize := &cobra.Command{
		Use: "init", Short: "Make the folder and its first epoch", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := needDir(); err != nil {
				return err
			}
			if _, err := anonymize.InitKeyDir(dir, now()); err != nil {
				return err
			}
			a.note("%s: keys made", dir)
			return nil
		},
	}
	newEpoch := &cobra.Command{
		Use: "new-epoch", Short: "Make the key of a new refresh", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := openKeys(needDir, dir)
			if err != nil {
				return err
			}
			epoch, err := d.NewEpoch(now())
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, epoch)
			return nil
		},
	}
	destroy := &cobra.Command{
		Use: "destroy EPOCH", Short: "Destroy the key of an epoch, for good", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := openKeys(needDir, dir)
			if err != nil {
				return err
			}
			if err := d.Destroy(args[0]); err != nil {
				return err
			}
			a.note("%s destroyed; snapshots and backups of the volume are not covered", args[0])
			return nil
		},
	}
	cmd.AddCommand(initialize, newEpoch, a.keysListCommand(needDir, &dir), destroy)
	return cmd
}

func (a *app) keysListCommand(needDir func() error, dir *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List epochs and their ages, never bytes", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := openKeys(needDir, *dir)
			if err != nil {
				return err
			}
			epochs, err := d.List()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(epochs)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "epoch\tkind\tcreated\tage")
			for _, e := range epochs {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.ID, e.Kind, e.CreatedAt.UTC().Format(time.RFC3339), now().Sub(e.CreatedAt).Round(time.Minute))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return cmd
}

func openKeys(needDir func() error, dir string) (*anonymize.KeyDir, error) {
	if err := needDir(); err != nil {
		return nil, err
	}
	return anonymize.OpenKeyDir(dir)
}
