package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tailgate/internal/objstore"
	"tailgate/internal/version"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

func (a *app) profileCommand() *cobra.Command {
	var tf traceFlags
	var day, view, out, page string
	var perGroup, asJSON bool
	cmd := &cobra.Command{
		Use:   "profile LAKE|TRACE -o DIR",
		Short: "Fit lengths, arrivals, burstiness, sessions and prefix reuse",
		Long: `Writes the profile tables of a published day, or of any trace, as Parquet files into DIR and prints one screen.
LAKE is a folder or s3://bucket/prefix.

Exit codes: 0 done; 1 failed while running; 2 wrong usage; 6 broken rows or a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := newProfileDir(cmd, out); err != nil {
				return err
			}
			t, source, err := a.profileInput(cmd.Context(), args[0], day, view, &tf)
			if err != nil {
				return err
			}
			p, err := profile.Compute(cmd.Context(), t, profile.Options{PerGroup: perGroup, Source: source})
			if err != nil {
				return err
			}
			if err := writeProfile(p, t, out, &tf); err != nil {
				return err
			}
			if err := writeRendered(page, p.WriteHTML); err != nil {
				return err
			}
			return a.showProfile(p, asJSON)
		},
	}
	tf.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&day, "day", "", "UTC day of the lake (default: the newest)")
	fl.StringVar(&view, "view", "engine", "of a lake: engine or client")
	fl.BoolVar(&perGroup, "per-group", true, "also per tenant and class")
	fl.StringVarP(&out, "output", "o", "", "folder to write the tables into")
	fl.StringVar(&page, "html", "", "also write the profile as one HTML page")
	fl.BoolVar(&asJSON, "json", false, "print the total's tables as one JSON object")
	cmd.AddCommand(a.profileShowCommand(), a.profileDiffCommand(), a.profileMergeCommand(), a.profileServeGenCommand())
	return cmd
}

func (a *app) profileShowCommand() *cobra.Command {
	var asJSON bool
	var page string
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Print a profile on one screen",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := profile.Read(args[0])
			if err != nil {
				return err
			}
			if err := writeRendered(page, p.WriteHTML); err != nil {
				return err
			}
			return a.showProfile(p, asJSON)
		},
	}
	cmd.Flags().StringVar(&page, "html", "", "also write the profile as one HTML page")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the total's tables as one JSON object")
	return cmd
}

func (a *app) showProfile(p *profile.Profile, asJSON bool) error {
	if asJSON {
		return p.WriteJSON(a.stdout)
	}
	p.WriteText(a.stdout)
	return nil
}

// profileInput reads a trace file, or a day of a lake when path is a folder.
func (a *app) profileInput(ctx context.Context, path, day, view string, tf *traceFlags) (*trace.Trace, string, error) {
	if info, err := os.Stat(path); !objstore.IsS3(path) && (err != nil || !info.IsDir()) {
		t, err := a.loadChecked(ctx, path, tf)
		return t, "trace", err
	}
	if day == "" {
		days, err := a.lakeDays(ctx, path)
		if err != nil {
			return nil, "", err
		}
		if len(days) == 0 {
			return nil, "", fmt.Errorf("reading %s: no published day (LAKE/day=*)", path)
		}
		day = days[len(days)-1]
	}
	t, err := a.exportDay(ctx, path, trace.ExportOptions{Day: day, View: view, BlockSize: tf.blockSize, Seed: tf.seed})
	if err != nil {
		return nil, "", err
	}
	for _, n := range t.Notes {
		a.note("%s", n)
	}
	return t, "lake", nil
}

func writeProfile(p *profile.Profile, t *trace.Trace, dir string, tf *traceFlags) error {
	started := now()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	input := traceDigest(t)
	files, err := p.Write(dir, traceFooter(t, tf.seed))
	if err != nil {
		return err
	}
	m := &schemas.Manifest{Kind: "profile", Tool: version.String(), Seed: tf.seed, StartedAt: started, EndedAt: now(),
		Inputs: []schemas.FileDigest{input}, Files: files, Notes: t.Notes,
		Settings: map[string]any{"keep_quantum": tf.keepQuantum, "format": t.Meta.Format}}
	return m.Write(dir)
}

// traceDigest pins the trace that a folder was made from.
func traceDigest(t *trace.Trace) schemas.FileDigest {
	return schemas.FileDigest{Name: filepath.Base(t.Meta.Name), Bytes: t.Meta.Bytes, SHA256: t.Meta.SHA256, Rows: int64(len(t.Rows))}
}

// traceFooter is the provenance of files made from a trace.
func traceFooter(t *trace.Trace, seed uint64) schemas.Footer {
	return schemas.Footer{Tool: version.String(), Seed: fmt.Sprint(seed), BlockSize: fmt.Sprint(t.Meta.BlockSize),
		Tokenizer: t.Meta.Tokenizer, Inputs: schemas.InputsDigest([]schemas.FileDigest{traceDigest(t)})}
}
