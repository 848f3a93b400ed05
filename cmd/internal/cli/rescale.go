package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tailgate/internal/atomicfile"
	"tailgate/internal/version"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// rescaleFlags are the flags of `tailgate rescale`.
type rescaleFlags struct {
	reshapeFlags
	tf      traceFlags
	to, out string
}

func (a *app) rescaleCommand() *cobra.Command {
	var f rescaleFlags
	cmd := &cobra.Command{
		Use:   "rescale TRACE --scale 1.5x -o OUT",
		Short: "Make a trace of 1.5 times the users, at constant duration",
		Long: `Takes a trace or a part of it, rescales it and measures what the rescale kept; a broken invariant fails the run.
What was measured before and after is in OUT.manifest.json. At scale 1 with no other option and the same format the
input bytes are copied.

Exit codes: 0 done; 1 an invariant is broken; 2 wrong usage; 6 broken rows or a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.rescale(cmd, args[0], &f) },
	}
	f.tf.add(cmd)
	f.add(cmd)
	cmd.Flags().StringVar(&f.to, "to", "", "format of the output: "+strings.Join(trace.Written(), ", ")+" (default: by the name's ending)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "file to write, - for stdout; .gz and .zst compress")
	return cmd
}

func (a *app) rescale(cmd *cobra.Command, path string, f *rescaleFlags) error {
	err := f.validate(f.tf.seed)
	if f.out == "" {
		err = errors.Join(err, errors.New("-o is missing"))
	}
	if err := allFaults(err); err != nil {
		return err
	}
	t, err := a.loadChecked(cmd.Context(), path, &f.tf)
	if err != nil {
		return err
	}
	format := formatOf(f.out, f.to)
	if f.untouched() && t.Meta.Format == format && path != "-" && f.out != "-" && sameEnding(path, f.out) {
		return copyFile(path, f.out)
	}
	read := len(t.Notes)
	if t, _, err = a.cut(t, &f.cutFlags, 0, f.tf.seed); err != nil {
		return err
	}
	for _, n := range t.Notes[read:] {
		a.note("%s: %s", t.Meta.Name, n)
	}
	res, err := f.rescaleTrace(cmd.Context(), t, f.tf.seed)
	if res != nil && !a.quiet { // also beside an error: it shows what is broken
		writeRescale(a.stderr, t, res)
	}
	if err != nil {
		return err
	}
	if err := a.writeTrace(cmd.Context(), res.Trace, f.out, format, version.String()); err != nil || f.out == "-" {
		return err
	}
	res.Notes = append(append([]string(nil), t.Notes[read:]...), res.Notes...)
	return rescaleManifest(cmd, t, res, f.tf.seed, f.out)
}

// rescaleManifest writes OUT.manifest.json: what was made of what, and the invariants before and after.
func rescaleManifest(cmd *cobra.Command, before *trace.Trace, res *synth.Result, seed uint64, out string) error {
	file, err := schemas.DigestFile(filepath.Dir(out), out)
	if err != nil {
		return err
	}
	file.Rows = int64(len(res.Trace.Rows))
	effective := settings(cmd)
	effective["effective_scale"] = strconv.FormatFloat(res.Scale, 'g', -1, 64)
	m := &schemas.Manifest{Kind: "trace", Tool: version.String(), Seed: seed, StartedAt: now(), EndedAt: now(),
		Settings: effective, Inputs: []schemas.FileDigest{traceDigest(before)}, Files: []schemas.FileDigest{file},
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
