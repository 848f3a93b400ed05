package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tailgate/internal/atomicfile"
	"tailgate/internal/version"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// scaleFlags are the flags of everything that rescales.
type scaleFlags struct {
	scale          string
	mode           string
	jitter         time.Duration
	allowDistorted bool
}

func (f *scaleFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.scale, "scale", "1x", "times the rate: 1.5x, 1.5 or 150%")
	fl.StringVar(&f.mode, "mode", synth.ModeSession, `how to scale:
session  copies or drops whole sessions at constant duration; keeps payloads at their time of day, think times and prefix sharing
warp     compresses time; keeps order and gaps' shape, shortens overload periods and think times (optimistic)
`)
	fl.DurationVar(&f.jitter, "jitter", 0, "how far copies of a session are shifted in mode session (default 5s)")
	fl.BoolVar(&f.allowDistorted, "allow-distorted", false, "go on when an invariant of the rescale is broken")
}

func (f *scaleFlags) options(seed uint64) (synth.Options, error) {
	scale, err := synth.ParseScale(f.scale)
	o := synth.Options{Scale: scale, Mode: f.mode, Jitter: f.jitter, Seed: seed, AllowDistorted: f.allowDistorted}
	if err == nil {
		err = o.Validate()
	}
	return o, allFaults(err)
}

func (a *app) rescaleCommand() *cobra.Command {
	var tf traceFlags
	var sf scaleFlags
	var to, out string
	cmd := &cobra.Command{
		Use:   "rescale TRACE --scale 1.5x -o OUT",
		Short: "Make a trace of 1.5 times the users, at constant duration",
		Long: `Rescales a trace and measures what the rescale kept; a broken invariant fails the run.
At scale 1 with no other option and the same format the input bytes are copied.

Exit codes: 0 done; 1 an invariant is broken; 2 wrong usage; 6 broken rows or a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := sf.options(tf.seed)
			if out == "" {
				err = errors.Join(err, errors.New("-o is missing"))
			}
			if err := allFaults(err); err != nil {
				return err
			}
			t, err := a.loadChecked(cmd.Context(), args[0], &tf)
			if err != nil {
				return err
			}
			format := formatOf(out, to)
			if o.Scale == 1 && t.Meta.Format == format && args[0] != "-" && out != "-" && sameEnding(args[0], out) {
				return copyFile(args[0], out)
			}
			res, err := synth.Rescale(cmd.Context(), t, o)
			if res != nil && !a.quiet { // also beside an error: it shows what is broken
				writeRescale(a.stderr, t, res)
			}
			if err != nil {
				return err
			}
			if err := a.writeTrace(cmd.Context(), res.Trace, out, format, version.String()); err != nil || out == "-" {
				return err
			}
			return rescaleManifest(cmd, t, res, tf.seed, out)
		},
	}
	tf.add(cmd)
	sf.add(cmd)
	cmd.Flags().StringVar(&to, "to", "", "format of the output: mooncake, parquet (default: by the name's ending)")
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write, - for stdout; .gz and .zst compress")
	return cmd
}

// rescaleManifest writes OUT.manifest.json: what was made of what, and the invariants before and after.
func rescaleManifest(cmd *cobra.Command, before *trace.Trace, res *synth.Result, seed uint64, out string) error {
	file, err := schemas.DigestFile(filepath.Dir(out), out)
	if err != nil {
		return err
	}
	file.Rows = int64(len(res.Trace.Rows))
	m := &schemas.Manifest{Kind: "trace", Tool: version.String(), Seed: seed, StartedAt: now(), EndedAt: now(),
		Settings: settings(cmd), Inputs: []schemas.FileDigest{traceDigest(before)}, Files: []schemas.FileDigest{file},
		Invariants: res.Invariants, Notes: res.Notes}
	return m.WriteFile(out + "." + schemas.ManifestName)
}

// writeRescale says what a rescale did: the rates and the invariants.
func writeRescale(w io.Writer, before *trace.Trace, res *synth.Result) {
	seconds := float64(before.LengthUs()) / 1e6
	if seconds > 0 {
		fmt.Fprintf(w, "%d rows (%.3g/s) become %d rows (%.3g/s)\n", len(before.Rows), float64(len(before.Rows))/seconds,
			len(res.Trace.Rows), float64(len(res.Trace.Rows))/(float64(res.Trace.LengthUs())/1e6))
	}
	for _, n := range res.Notes {
		fmt.Fprintln(w, n)
	}
	writeInvariants(w, res.Invariants)
}

func writeInvariants(w io.Writer, invariants []schemas.Invariant) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, i := range invariants {
		verdict := "held"
		switch {
		case !i.Judged:
			verdict = "not judged"
		case !i.Held:
			verdict = "BROKEN"
		}
		fmt.Fprintf(tw, "  %s\t%.4g\t→ %.4g\t%s\t%s\n", i.Name, i.Before, i.After, i.Limit, verdict)
	}
	tw.Flush()
}

// formatOf is the trace format that a file name asks for.
func formatOf(path, given string) string {
	if given != "" {
		return given
	}
	if strings.HasSuffix(path, ".parquet") {
		return "parquet"
	}
	return "mooncake"
}

func sameEnding(a, b string) bool { return filepath.Ext(a) == filepath.Ext(b) }

// copyFile copies a trace and its sidecar byte for byte.
func copyFile(from, to string) error {
	for _, suffix := range []string{"", trace.SidecarSuffix} {
		data, err := os.ReadFile(from + suffix)
		if suffix != "" && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", from+suffix, err)
		}
		if err := atomicfile.WriteFile(to+suffix, data); err != nil {
			return err
		}
	}
	return nil
}
