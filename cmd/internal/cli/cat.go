package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/internal/tabular"
	"tailgate/schemas"
)

// catFlags are what `tailgate cat` reads and how it prints it.
type catFlags struct {
	tabular.Options
	columns []string
	days    string
	table   string
	head    int64 // -1 = all
	out     string
}

func (a *app) catCommand() *cobra.Command {
	var f catFlags
	cmd := &cobra.Command{
		Use:   "cat PATH…",
		Short: "Print Parquet tables, ours or others': as a table, CSV, JSON lines or Arrow",
		Long: `Prints the rows of Parquet files as one table. A PATH is a file; a folder: of a lake its days, else the files in it;
a pattern with *, ?, [...] and ** for any folders; the same of a bucket (s3://…); or - for standard input.

Files of one table may lack columns that others have: these are null there. docs/query.md says how each type is printed.
What a folder of several tables holds is chosen with --table. --output FILE is written whole or not at all; without
--format its name decides: .csv, .jsonl, .arrows (stream), .arrow or .feather (file).

Exit codes: 0 done; 1 a path cannot be read; 2 wrong usage; 6 a file is broken, or two contradict each other.`,
		Example: `  tailgate cat lake --days 2026-11-28 --columns arrived_at,class,input_tokens --head 20
  tailgate cat run --table results --format csv > results.csv
  tailgate cat 'profiles/*/profile_rate.parquet' -o rates.arrow`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			find, err := f.settle(cmd.Flags().Changed("format"), cmd.Flags().Changed("head"))
			if err := allFaults(err); err != nil {
				return err
			}
			return a.cat(cmd.Context(), args, f, find)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Format, "format", tabular.FormatTable, "how to print: "+strings.Join(tabular.Formats(), ", "))
	fl.StringSliceVar(&f.columns, "columns", nil, "columns to print, in this order (default: all)")
	fl.Int64Var(&f.head, "head", 0, "print at most this many rows (default: all)")
	fl.StringVar(&f.days, "days", "", "of folders day=…, only this UTC day, or FROM..TO, both included")
	fl.StringVar(&f.table, "table", "", "of several tables, the one to print, such as results or profile_rate")
	fl.IntVar(&f.Width, "width", 0, "width of a table's lines; columns without room are left out and named (default: that of the terminal, else any)")
	fl.StringVarP(&f.out, "output", "o", "-", "file to write; - is standard output")
	formats := cobra.FixedCompletions(tabular.Formats(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("format", formats); err != nil {
		panic(err) // there is no such flag
	}
	return cmd
}

// settle reads the flags together.
func (f *catFlags) settle(formatGiven, headGiven bool) (find tabular.Finder, err error) {
	var errs []error
	if !formatGiven && f.out != "-" {
		formats := map[string]string{".csv": tabular.FormatCSV, ".jsonl": tabular.FormatJSON, ".ndjson": tabular.FormatJSON,
			".arrows": tabular.FormatStream, ".arrow": tabular.FormatFile, ".feather": tabular.FormatFile}
		if format, ok := formats[filepath.Ext(f.out)]; ok {
			f.Format = format
		}
	}
	errs = append(errs, f.Validate())
	if !headGiven {
		f.head = -1
	} else if f.head < 0 {
		errs = append(errs, fmt.Errorf("--head must not be negative, not %d", f.head))
	}
	if f.days != "" {
		from, to, span := strings.Cut(f.days, "..")
		if find.From, find.To = from, to; !span {
			find.To = from
		}
		for _, day := range []string{find.From, find.To} {
			if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
				errs = append(errs, fmt.Errorf("--days: %q is not a day such as 2026-11-28", day))
			}
		}
		if find.To != "" && find.To < find.From {
			errs = append(errs, fmt.Errorf("--days: %s is before %s", find.To, find.From))
		}
	}
	return find, errors.Join(errs...)
}

func (a *app) cat(ctx context.Context, paths []string, f catFlags, find tabular.Finder) error {
	find.Bucket = func(ctx context.Context, url string) (tabular.Store, error) { return a.openBucket(ctx, url) }
	var files []tabular.File
	for _, path := range paths {
		if path == "-" {
			file, drop, err := tabular.Spool(a.stdin, "standard input")
			if err != nil {
				return err
			}
			defer drop()
			files = append(files, file)
			continue
		}
		found, err := find.Find(ctx, path)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	files, err := oneTable(ctx, files, f.table)
	if err != nil {
		return err
	}
	rows, err := tabular.Open(ctx, files, f.columns, f.head)
	if err != nil {
		return err
	}
	if f.out == "-" {
		if err := a.fitTerminal(&f); err != nil {
			return err
		}
		return a.writeRows(ctx, rows, a.stdout, f)
	}
	out, err := atomicfile.Create(f.out)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := a.writeRows(ctx, rows, out, f); err != nil {
		return err
	}
	return out.Commit()
}

// oneTable leaves the files of one table: that of the name, or the only one there is.
func oneTable(ctx context.Context, files []tabular.File, table string) ([]tabular.File, error) {
	by := map[string][]tabular.File{}
	for _, f := range files {
		name, err := tabular.Footer(ctx, f, schemas.KeySchema)
		if err != nil {
			return nil, err
		}
		by[name] = append(by[name], f)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(by)), func(name string) bool { return name == "" })
	have := "there are " + strings.Join(names, ", ")
	switch {
	case table != "" && len(by[table]) == 0:
		return nil, usage(fmt.Errorf("--table: there is no table %q", table), have)
	case table != "":
		return by[table], nil
	case len(names) > 1:
		return nil, usage(errors.New("these are several tables"), "choose with --table: "+strings.Join(names, ", "))
	}
	return files, nil
}

// fitTerminal takes the output for what people see where it is one.
func (a *app) fitTerminal(f *catFlags) error {
	out, ok := a.stdout.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	if tabular.Binary(f.Format) {
		return fault.Mark(fmt.Errorf("--format %s is not for a terminal", f.Format), fault.Usage, "send it to a file with -o, or to a program")
	}
	if f.Terminal = true; f.Width == 0 {
		f.Width, _, _ = term.GetSize(int(out.Fd()))
	}
	return nil
}

func (a *app) writeRows(ctx context.Context, rows *tabular.Reader, to io.Writer, f catFlags) error {
	w, err := tabular.NewWriter(to, rows.Schema(), f.Options)
	if err != nil {
		return err
	}
	if err := rows.Each(ctx, w.Write); err != nil {
		return errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	if t, ok := w.(*tabular.Table); ok && len(t.Omitted()) > 0 {
		a.note("no room for: %s", strings.Join(t.Omitted(), ", "))
	}
	return nil
}
