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
	stream  bool
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
	addOutput(cmd.Flags(), &f.to, &f.out)
	cmd.Flags().BoolVar(&f.stream, "stream", false, "rescale row by row, in bounded memory, with the same output (default: from 128 MiB of text on)")
	return cmd
}

func (a *app) rescale(cmd *cobra.Command, path string, f *rescaleFlags) error {
	err := f.validate(f.tf.seed)
	if f.out == "" {
		err = errors.Join(err, errors.New("-o is missing"))
	}
	if err := allFaults(err, writable(f.to)); err != nil {
		return err
	}
	if f.streams(path) {
		return a.rescaleStream(cmd, path, f)
	}
	ctx := cmd.Context()
	t, err := a.loadChecked(ctx, path, &f.tf)
	if err != nil {
		return err
	}
	format := formatOf(f.out, f.to)
	if f.copies(path, t.Meta.Format) {
		return copyFile(path, f.out)
	}
	input, read := traceDigest(&t.Meta, int64(len(t.Rows))), len(t.Notes)
	if t, _, err = a.cut(t, &f.cutFlags, 0, f.tf.seed); err != nil {
		return err
	}
	for _, n := range t.Notes[read:] {
		a.note("%s: %s", t.Meta.Name, n)
	}
	res, err := f.rescaleTrace(ctx, t, f.tf.seed)
	if res != nil { // also beside an error: it shows what is broken
		a.tellRescale(rateOf(int64(len(t.Rows)), t.LengthUs()), rateOf(int64(len(res.Trace.Rows)), res.Trace.LengthUs()), res.Notes, res.Invariants)
	}
	if err != nil {
		return err
	}
	if err := a.writeTrace(ctx, res.Trace, f.out, format, version.String()); err != nil || f.out == "-" {
		return err
	}
	notes := append(append([]string(nil), t.Notes[read:]...), res.Notes...)
	return f.manifest(cmd, input, int64(len(res.Trace.Rows)), res.Scale, res.Invariants, notes)
}

// copies tells that the output is the input, byte for byte.
func (f *rescaleFlags) copies(path, format string) bool {
	return f.untouched() && format == formatOf(f.out, f.to) && path != "-" && f.out != "-" && sameEnding(path, f.out)
}

// Files from these sizes on are rescaled row by row.
const (
	streamedBytes = 128 << 20
	streamedZip   = 24 << 20 // compressed
)

// streams tells whether the trace is rescaled without being in memory. The output is the same.
func (f *rescaleFlags) streams(path string) bool {
	if f.cuts() || len(f.only) > 0 || f.mode == synth.ModeModel || path == "-" {
		return false
	}
	st, err := os.Stat(path)
	if err != nil {
		return false
	}
	switch filepath.Ext(path) {
	case ".gz", ".zst", ".parquet":
		return f.stream || st.Size() >= streamedZip
	}
	return f.stream || st.Size() >= streamedBytes
}

// rescaleStream is rescale for a trace that is read, rescaled and written row by row.
func (a *app) rescaleStream(cmd *cobra.Command, path string, f *rescaleFlags) error {
	ctx := cmd.Context()
	src, err := a.scan(ctx, path, f.tf.options())
	if err != nil {
		return err
	}
	defer src.Close()
	if err := checked(ctx, src); err != nil {
		return err
	}
	if f.copies(path, src.Meta.Format) {
		return copyFile(path, f.out)
	}
	o, err := f.options(f.tf.seed)
	if err != nil {
		return err
	}
	defer spareMemory(40)()
	res, err := synth.RescaleStream(ctx, src, o)
	if err != nil {
		return err
	}
	defer res.Close()
	notes := f.rateNote(res.Scale, res.Notes)
	if f.out == "-" { // nothing is printed of a result that is broken
		err = res.Out.Each(ctx, func(*schemas.TraceRow) error { return nil })
	}
	if err == nil {
		err = a.writeStream(ctx, res.Out, f.out, formatOf(f.out, f.to), version.String())
	}
	if res.Invariants() != nil {
		a.tellRescale(rateOf(src.Len(), src.LengthUs()), rateOf(res.Out.Len(), res.Out.LengthUs()), notes, res.Invariants())
	}
	if err != nil || f.out == "-" {
		return err
	}
	return f.manifest(cmd, traceDigest(&src.Meta, src.Len()), res.Out.Len(), res.Scale, res.Invariants(), notes)
}

// manifest writes OUT.manifest.json: what was made of what, and the invariants before and after.
func (f *rescaleFlags) manifest(cmd *cobra.Command, input schemas.FileDigest, rows int64, scale float64, invariants []schemas.Invariant, notes []string) error {
	file, err := schemas.DigestFile(filepath.Dir(f.out), f.out)
	if err != nil {
		return err
	}
	file.Rows = rows
	effective := settings(cmd)
	effective["effective_scale"] = strconv.FormatFloat(scale, 'g', -1, 64)
	m := &schemas.Manifest{Kind: "trace", Tool: version.String(), Seed: f.tf.seed, StartedAt: now(), EndedAt: now(),
		Settings: effective, Inputs: []schemas.FileDigest{input}, Files: []schemas.FileDigest{file}, Invariants: invariants, Notes: notes}
	return m.WriteFile(f.out + "." + schemas.ManifestName)
}

// rateOf says how many rows there are, and how many in a second.
func rateOf(rows, lengthUs int64) string {
	if lengthUs <= 0 {
		return fmt.Sprintf("%d rows", rows)
	}
	return fmt.Sprintf("%d rows (%.4g/s)", rows, float64(rows)/(float64(lengthUs)/1e6))
}

// tellRescale says what a rescale did: the rates, the notes and the invariants.
func (a *app) tellRescale(before, after string, notes []string, invariants []schemas.Invariant) {
	a.note("%s become %s", before, after)
	for _, n := range notes {
		a.note("%s", n)
	}
	if !a.quiet {
		writeInvariants(a.stderr, invariants)
	}
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
