package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tailgate/internal/version"
	"tailgate/trace"
)

func (a *app) traceCheckCommand() *cobra.Command {
	var f traceCheckFlags
	cmd := &cobra.Command{
		Use:   "check TRACE [--repair -o OUT]",
		Short: "Apply every rule to every row, and mend what breaks one",
		Long: `Applies every rule of the format to every row and lists each broken row with its line. With --repair it mends
what can be mended, leaves out what cannot, says what it did, and writes a trace that breaks no rule.

Exit codes: 0 all rows are right, or were mended; 1 unreadable; 2 wrong usage; 6 broken rows or a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.repair != (f.out != "") {
				return usage(errors.New("--repair and -o belong together"), helpHint(cmd))
			}
			if err := writable(f.to); err != nil {
				return usage(err, "")
			}
			return a.traceCheck(cmd.Context(), args[0], &f)
		},
	}
	f.trace.add(cmd)
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&f.repair, "repair", false, "mend the trace and write it to -o")
	addFormat(cmd.Flags(), &f.to)
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "file for the mended trace, - for stdout; .gz and .zst compress")
	return cmd
}

type traceCheckFlags struct {
	trace          traceFlags
	asJSON, repair bool
	to, out        string
}

func (a *app) traceCheck(ctx context.Context, path string, f *traceCheckFlags) error {
	o := f.trace.options()
	o.Lenient = true
	if f.repair {
		t, err := a.loadWith(ctx, path, o)
		if err != nil {
			return err
		}
		return a.traceRepair(ctx, t, f)
	}
	s, err := a.scan(ctx, path, o)
	if err != nil {
		return err
	}
	defer s.Close()
	broken, err := a.tellFaults(ctx, s, f.asJSON)
	if broken > 0 {
		a.code = exitData
	}
	return err
}

// tellFaults prints every broken row, one after the other: there may be millions.
func (a *app) tellFaults(ctx context.Context, s *trace.Stream, asJSON bool) (broken int64, err error) {
	if asJSON {
		faults := []trace.Fault{}
		broken, err = s.Check(ctx, func(f trace.Fault) error {
			faults = append(faults, f)
			return nil
		})
		if err != nil {
			return 0, err
		}
		return broken, a.printJSON(map[string]any{"rows": s.Len(), "broken": broken, "faults": faults})
	}
	out := bufio.NewWriter(a.stdout)
	if broken, err = s.Check(ctx, func(f trace.Fault) error {
		_, err := fmt.Fprintln(out, f.String())
		return err
	}); err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "%d rows, %d problems\n", s.Len(), broken)
	return broken, out.Flush()
}

// traceRepair mends, writes, and then tells.
func (a *app) traceRepair(ctx context.Context, t *trace.Trace, f *traceCheckFlags) error {
	mended, mends := t.Repair()
	if err := a.writeTrace(ctx, mended, f.out, formatOf(f.out, f.to), version.String()); err != nil {
		return err
	}
	lost := len(t.Rows) + len(t.Unread) - len(mended.Rows)
	if f.asJSON && f.out != "-" {
		if mends == nil {
			mends = []trace.Mend{}
		}
		return a.printJSON(map[string]any{"rows": len(mended.Rows), "left_out": lost, "mended": len(mends), "mends": mends})
	}
	tell := a.stdout
	if f.out == "-" {
		tell = a.stderr
	}
	for _, m := range mends {
		fmt.Fprintln(tell, m.String())
	}
	fmt.Fprintf(tell, "%d rows, %d problems mended, %d rows left out\n", len(mended.Rows), len(mends), lost)
	return nil
}
