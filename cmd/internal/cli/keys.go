package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
		Long: `Keys live in a folder of mode 0700, one file of mode 0600 per epoch (--keys DIR or file:DIR), or with a key
service that a command speaks to (--keys 'exec:CMD'). Without a key there is no run; a key is never given on the
command line and never printed. Ids made under different epochs cannot be joined.

Exit codes: 0 done; 2 wrong usage; 7 key missing or unsafe.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&dir, "keys", "", keysUsage)
	needDir := func() error {
		if dir == "" {
			return usage(errors.New("--keys is missing"), "tailgate keys init --keys DIR makes a new folder of keys")
		}
		return nil
	}
	initialize := &cobra.Command{
		Use: "init", Short: "Make the folder and its first epoch", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needDir(); err != nil {
				return err
			}
			hideText()
			if _, err := anonymize.InitKeys(cmd.Context(), dir, a.keyOptions(), now()); err != nil {
				return err
			}
			a.note("%s: keys made", dir)
			return nil
		},
	}
	newEpoch := &cobra.Command{
		Use: "new-epoch", Short: "Make the key of a new refresh", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.openKeys(cmd.Context(), needDir, dir)
			if err != nil {
				return err
			}
			epoch, err := d.NewEpoch(cmd.Context(), now())
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, epoch)
			return nil
		},
	}
	cmd.AddCommand(initialize, newEpoch, a.keysListCommand(needDir, &dir), a.keysDestroyCommand(needDir, &dir))
	return cmd
}

func (a *app) keysListCommand(needDir func() error, dir *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List epochs and their ages, never bytes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.openKeys(cmd.Context(), needDir, *dir)
			if err != nil {
				return err
			}
			epochs, err := d.List(cmd.Context())
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

func (a *app) keysDestroyCommand(needDir func() error, dir *string) *cobra.Command {
	var log string
	cmd := &cobra.Command{
		Use: "destroy EPOCH", Short: "Destroy the key of an epoch, for good", Args: cobra.ExactArgs(1),
		Long: `Destroys a key by the means of its source. A key file is overwritten and removed, and destroyed.jsonl of the
folder remembers epoch, time and result; a command is asked to destroy. The record is printed as a line of JSON.

Exit codes: 0 destroyed; 2 wrong usage; 7 it was not.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.openKeys(cmd.Context(), needDir, *dir)
			if err != nil {
				return err
			}
			file := io.Discard
			if log != "" { // opened first: a key whose end cannot be recorded stays
				f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
				if err != nil {
					return fmt.Errorf("destroying a key: %w", err)
				}
				defer f.Close()
				file = f
			}
			record, err := d.Destroy(cmd.Context(), args[0])
			if record != nil {
				line, jerr := json.Marshal(record)
				_, werr := fmt.Fprintf(io.MultiWriter(a.stdout, file), "%s\n", line)
				err = errors.Join(err, jerr, werr)
			}
			if err == nil {
				a.note("%s destroyed; %s", record.Epoch, record.Notice)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&log, "log", "", "file to append the record to")
	return cmd
}

// keysUsage explains every --keys flag.
const keysUsage = "the keys: a folder (tailgate keys init), or exec:CMD, a command that has them (docs/keys.md)"

// keyOptions lets a key command speak to the user.
func (a *app) keyOptions() anonymize.SourceOptions { return anonymize.SourceOptions{Stderr: a.stderr} }

func (a *app) openKeys(ctx context.Context, needDir func() error, source string) (*anonymize.Keyring, error) {
	if err := needDir(); err != nil {
		return nil, err
	}
	hideText()
	return anonymize.OpenKeys(ctx, source, a.keyOptions())
}

// loadKeys reads the keys of an epoch from a key source.
func (a *app) loadKeys(ctx context.Context, source, epoch string) (*anonymize.Keys, error) {
	d, err := anonymize.OpenKeys(ctx, source, a.keyOptions())
	if err != nil {
		return nil, err
	}
	return d.Load(ctx, epoch)
}
