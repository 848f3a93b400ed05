package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tailgate/internal/version"
	"tailgate/trace"
)

func (a *app) traceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Check, describe, convert and export timed traces",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.traceCheckCommand(), a.traceInfoCommand(), a.traceConvertCommand(), a.traceExportCommand(),
		a.traceCompareCommand())
	return cmd
}

func (a *app) traceInfoCommand() *cobra.Command {
	var tf traceFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info TRACE",
		Short: "Describe a trace on one screen",
		Long: `Prints format, length, rates, lengths, sessions and prefix reuse of a trace.

Exit codes: 0 done; 1 unreadable; 2 wrong usage; 6 broken rows or a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.scan(cmd.Context(), args[0], tf.options())
			if err != nil {
				return err
			}
			defer s.Close()
			info, err := s.Info(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(info)
			}
			return info.WriteText(a.stdout)
		},
	}
	tf.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) traceConvertCommand() *cobra.Command {
	var tf traceFlags
	var share shareFlags
	var to, out string
	cmd := &cobra.Command{
		Use:   "convert TRACE -o OUT",
		Short: "Write a trace in another format",
		Long: `Writes a trace in another format, and says what that format does not hold and how its tool plays the file.

mooncake and parquet hold everything. aiperf gives every row the whole prompt and no session; aiperf-delta and
mooncake-delta hold what each turn adds. vllm and bailian are in seconds, burstgpt holds no hash ids.

Exit codes: 0 done; 1 unreadable; 2 wrong usage; 6 broken rows or a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var missing error
			if out == "" {
				missing = errors.New("-o is missing")
			}
			if err := allFaults(missing, writable(to)); err != nil {
				return err
			}
			s, err := a.scan(cmd.Context(), args[0], tf.options())
			if err != nil {
				return err
			}
			defer s.Close()
			if err := checked(cmd.Context(), s); err != nil {
				return err
			}
			return a.writeShared(cmd.Context(), s, &share, out, formatOf(out, to))
		},
	}
	tf.add(cmd)
	share.add(cmd)
	addOutput(cmd.Flags(), &to, &out)
	return cmd
}

func (a *app) traceExportCommand() *cobra.Command {
	var o trace.ExportOptions
	var share shareFlags
	var split []string
	var window, to, out string
	cmd := &cobra.Command{
		Use:   "export LAKE --day D -o OUT",
		Short: "Turn a published day of the lake into a timed trace",
		Long: `Makes a trace of a published day, or with --split several of one reading. LAKE is a folder or s3://bucket/prefix.

Exit codes: 0 done; 1 failed while running; 2 wrong usage, or no such day; 6 a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var missing []error
			if o.Day == "" {
				missing = append(missing, errors.New("--day is missing"))
			}
			if out == "" {
				missing = append(missing, errors.New("-o is missing"))
			}
			var err error
			if window != "" {
				o.Window, err = trace.ParseWindow(window)
			}
			if len(split) > 0 && (len(o.Classes) > 0 || share.on || out == "-") {
				missing = append(missing, errors.New("--split goes with a folder as -o, and neither with --classes nor with --share"))
			}
			if err := allFaults(append(missing, err, writable(to))...); err != nil {
				return err
			}
			if len(split) > 0 {
				return a.exportSplit(cmd.Context(), args[0], o, split, out, to)
			}
			s, err := a.exportStream(cmd.Context(), args[0], o)
			if err != nil {
				return err
			}
			defer s.Close()
			for _, n := range s.Notes {
				a.note("%s", n)
			}
			return a.writeShared(cmd.Context(), s, &share, out, formatOf(out, to))
		},
	}
	share.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&o.Day, "day", "", "UTC day, 2006-01-02")
	fl.StringVar(&window, "window", "", "part of the day, such as 18h..20h")
	fl.StringSliceVar(&o.Classes, "classes", nil, "only these workload classes")
	fl.StringSliceVar(&split, "split", nil, "one trace for each of these classes (all = every class), CLASS.jsonl.zst in the folder -o, of one reading of the day")
	fl.StringVar(&o.View, "view", "engine", "engine: what reached the engine; client: first attempts, as clients sent them")
	fl.IntVar(&o.BlockSize, "block-size", 512, "tokens per hash id")
	fl.Uint64Var(&o.Seed, "seed", 1, "seed of the ids of private blocks")
	addOutput(fl, &to, &out)
	return cmd
}

// addOutput adds the flags of a command that writes a trace.
func addOutput(fl *pflag.FlagSet, to, out *string) {
	addFormat(fl, to)
	fl.StringVarP(out, "output", "o", "", "file to write, - for stdout; .gz and .zst compress")
}

func addFormat(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, "to", "", "format of the output: "+strings.Join(trace.Written(), ", ")+" (default: by the name's ending)")
}

// writable refuses a format that is not written, before anything is read.
func writable(format string) error {
	if format == "" || slices.Contains(trace.Written(), format) {
		return nil
	}
	return fmt.Errorf("--to %s is not one of %s", format, strings.Join(trace.Written(), ", "))
}

// writeShared writes s, or with --share the copy that may leave the house, which is made in memory.
func (a *app) writeShared(ctx context.Context, s *trace.Stream, share *shareFlags, out, format string) error {
	if share.on {
		t, err := s.Load(ctx)
		if err != nil {
			return err
		}
		if t, err = a.share(t, share); err != nil {
			return err
		}
		s = t.Stream()
	}
	return a.writeStream(ctx, s, out, format, version.String())
}

// printJSON prints v as one indented object.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	return nil
}
