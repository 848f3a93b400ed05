package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/version"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// profileFlags are the flags of profile itself.
type profileFlags struct {
	trace               traceFlags
	day, view, hours    string
	out, page           string
	perGroup, printJSON bool
	several             dayRangeFlags
}

func (a *app) profileCommand() *cobra.Command {
	var f profileFlags
	cmd := &cobra.Command{
		Use:   "profile LAKE|TRACE -o DIR",
		Short: "Fit lengths, arrivals, burstiness, sessions and prefix reuse",
		Long: `Writes the profile tables of a published day, or of any trace, as Parquet files into DIR and prints one screen.
LAKE is a folder or s3://bucket/prefix. With --hours, DIR also holds what profile merge needs to make the day's profile of its hours.
With --days, DIR/day=D has the profile of each day; one that is there, of the day as the lake has it now, stays.

Exit codes: 0 done; 1 failed while running; 2 wrong usage; 6 broken rows or a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.several.days != "" || f.several.shard != "" {
				return a.profileDays(cmd, args[0], &f)
			}
			if err := errors.Join(newProfileDir(cmd, f.out), onePage(f.printJSON, f.page)); err != nil {
				return err
			}
			defer spareMemory(100)()
			p, err := a.makeProfile(cmd.Context(), args[0], &f)
			if err != nil {
				return err
			}
			return a.showProfile(p, f.printJSON, f.page)
		},
	}
	f.trace.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.day, "day", "", "UTC day of the lake (default: the newest)")
	f.several.register(fl)
	fl.StringVar(&f.hours, "hours", "", "of the day: one hour such as 13, or a range such as 8..14, and keep what joins it to the others")
	fl.StringVar(&f.view, "view", "engine", "of a lake: engine or client")
	fl.BoolVar(&f.perGroup, "per-group", true, "also per tenant and class")
	fl.StringVarP(&f.out, "output", "o", "", "folder to write the tables into")
	fl.StringVar(&f.page, "html", "", "also write the profile as one HTML page, - for stdout")
	fl.BoolVar(&f.printJSON, "json", false, "print the total's tables as one JSON object")
	cmd.AddCommand(a.profileShowCommand(), a.profileDiffCommand(), a.profileMergeCommand(), a.profileServeGenCommand())
	return cmd
}

// sparedMemory is from which size on the collector works hardest while much is held.
const sparedMemory = 1536 << 20

// profileDays profiles several days of a lake, each into a folder of its own.
func (a *app) profileDays(cmd *cobra.Command, lake string, f *profileFlags) error {
	ctx := cmd.Context()
	errs := []error{f.several.read(f.day)}
	if f.out == "" {
		errs = append(errs, errors.New("-o is missing"))
	}
	if f.hours != "" || f.page != "" {
		errs = append(errs, errors.New("--hours and --html are for one day"))
	}
	if err := errors.Join(errs...); err != nil {
		return usage(err, helpHint(cmd))
	}
	defer spareMemory(100)()
	return f.several.each(ctx, a, func(day string) error {
		one := *f
		one.day, one.out = day, filepath.Join(f.out, "day="+day)
		made, err := a.madeFrom(ctx, one.out, lake, day)
		if err != nil {
			return fmt.Errorf("profiling %s: %w", day, err)
		}
		if made {
			a.note("%s: its profile is there already", day)
			return nil
		}
		p, err := a.profileLake(ctx, lake, &one)
		if err != nil {
			return err
		}
		return a.showProfile(p, f.printJSON, "")
	})
}

// spareMemory lets the collector run whenever so many percent came on top of what is kept, unless GOGC says when: where
// that are large arrays, it costs little. The result sets that back.
func spareMemory(percent int) (back func()) {
	limit := limitMemory(sparedMemory)
	if os.Getenv("GOGC") != "" {
		return limit
	}
	before := debug.SetGCPercent(percent)
	return func() {
		debug.SetGCPercent(before)
		limit()
	}
}

// makeProfile profiles a trace file, or a day of a lake when path is a folder or a bucket, and writes the tables.
func (a *app) makeProfile(ctx context.Context, path string, f *profileFlags) (*profile.Profile, error) {
	if info, err := os.Stat(path); objstore.IsS3(path) || err == nil && info.IsDir() {
		return a.profileLake(ctx, path, f)
	}
	if f.hours != "" || f.day != "" {
		return nil, usage(fmt.Errorf("--day and --hours are for a lake, %s is not one", path), "")
	}
	started := now()
	s, err := a.scan(ctx, path, f.trace.options())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := checked(ctx, s); err != nil {
		return nil, err
	}
	p, err := profile.ComputeFrom(ctx, s.Meta, s, profile.Options{PerGroup: f.perGroup, Source: profile.SourceTrace})
	if err != nil {
		return nil, err
	}
	return p, writeProfile(p, nil, &profiled{s.Meta, s.Len(), s.Notes, started}, f)
}

// profileLake profiles a day of a lake, or some of its hours.
func (a *app) profileLake(ctx context.Context, lake string, f *profileFlags) (*profile.Profile, error) {
	started := now()
	o := profile.LakeOptions{View: f.view, BlockSize: f.trace.blockSize, Seed: f.trace.seed}
	var err error
	if o.FromHour, o.ToHour, err = parseHours(f.hours); err != nil {
		return nil, err
	}
	if o.Day, err = a.newestDay(ctx, lake, f.day); err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	day, err := a.fetchDay(ctx, lake, o.Day)
	if err != nil {
		return nil, fmt.Errorf("profiling %s: %w", o.Day, err)
	}
	defer day.drop()
	part, err := profile.ReadLake(ctx, day.dir, o)
	if err != nil {
		return nil, day.renamed(err)
	}
	about := &profiled{part.Meta(), part.Requests(), part.Notes(), started}
	about.meta.Name = day.name
	for _, n := range about.notes {
		a.note("%s", n)
	}
	if f.hours == "" && part.Requests() == 0 {
		return nil, fault.Mark(fmt.Errorf("profiling %s: its %s view holds no request", day.name, f.view), fault.Data, strings.Join(about.notes, "; "))
	}
	var files []schemas.FileDigest
	if f.hours != "" {
		if files, err = writePart(part, f.out, about, f.trace.seed); err != nil {
			return nil, err
		}
	}
	p, err := part.Profile(ctx, profile.Options{PerGroup: f.perGroup})
	if err != nil {
		return nil, err
	}
	return p, writeProfile(p, files, about, f)
}

// newestDay is day, or the newest one of the lake.
func (a *app) newestDay(ctx context.Context, lake, day string) (string, error) {
	if day != "" {
		return day, nil
	}
	days, err := a.lakeDays(ctx, lake)
	if err != nil {
		return "", err
	}
	if len(days) == 0 {
		return "", usage(fmt.Errorf("%s has no published day (LAKE/day=*)", lake), "publish one first")
	}
	return days[len(days)-1], nil
}

// parseHours reads "13" or "8..14"; "" is the whole day.
func parseHours(s string) (from, to int, err error) {
	if s == "" {
		return 0, 0, nil
	}
	first, last, ranged := strings.Cut(s, "..")
	if from, err = strconv.Atoi(first); err == nil {
		if to = from + 1; ranged {
			to, err = strconv.Atoi(last)
		}
	}
	if err != nil || to == 0 {
		return 0, 0, usage(fmt.Errorf("--hours %s: want an hour such as 13 or a range such as 8..14", s), "")
	}
	return from, to, nil
}

func (a *app) profileShowCommand() *cobra.Command {
	var asJSON bool
	var page string
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Print a profile on one screen",
		Long: `Prints the totals of a profile that tailgate profile wrote.

Exit codes: 0 done; 1 unreadable; 2 wrong usage; 6 a broken file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := onePage(asJSON, page); err != nil {
				return err
			}
			p, err := profile.Read(args[0])
			if err != nil {
				return err
			}
			return a.showProfile(p, asJSON, page)
		},
	}
	cmd.Flags().StringVar(&page, "html", "", "also write the profile as one HTML page, - for stdout")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the total's tables as one JSON object")
	return cmd
}

// onePage refuses a page on stdout beside JSON.
func onePage(asJSON bool, page string) error {
	return usage(oneStdout(asJSON, rendering{flag: "--html", path: page}), "")
}

// showProfile prints a profile, and writes its page where one is asked for.
func (a *app) showProfile(p *profile.Profile, asJSON bool, page string) error {
	text := func(w io.Writer) error {
		p.WriteText(w)
		return nil
	}
	return a.render(asJSON, text, p.WriteJSON, rendering{"--html", page, p.WriteHTML})
}

// profiled is what a profile was made of.
type profiled struct {
	meta    trace.Meta
	rows    int64
	notes   []string
	started time.Time
}

func (d *profiled) digest() schemas.FileDigest {
	return traceDigest(&d.meta, d.rows)
}

func (d *profiled) footer(seed uint64) schemas.Footer {
	f := streamFooter(d.digest(), &d.meta, seed)
	f.Epoch = d.meta.Epoch
	return f
}

func writePart(part *profile.LakePart, dir string, d *profiled, seed uint64) ([]schemas.FileDigest, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making %s: %w", dir, err)
	}
	return part.Write(dir, d.footer(seed))
}

// writeProfile writes the tables and the manifest, which names files as well.
func writeProfile(p *profile.Profile, files []schemas.FileDigest, d *profiled, f *profileFlags) error {
	tables, err := p.Write(f.out, d.footer(f.trace.seed))
	if err != nil {
		return err
	}
	settings := map[string]any{"keep_quantum": f.trace.keepQuantum, "format": d.meta.Format}
	if f.hours != "" {
		settings["hours"] = f.hours
	}
	m := &schemas.Manifest{Kind: "profile", Tool: version.String(), Seed: f.trace.seed, StartedAt: d.started, EndedAt: now(),
		Inputs: []schemas.FileDigest{d.digest()}, Files: append(tables, files...), Notes: d.notes, Settings: settings}
	return m.Write(f.out)
}

// traceDigest pins the trace of so many rows that a folder was made from.
func traceDigest(m *trace.Meta, rows int64) schemas.FileDigest {
	return schemas.FileDigest{Name: filepath.Base(m.Name), Bytes: m.Bytes, SHA256: m.SHA256, Rows: rows}
}

// streamFooter is the provenance of files made from a trace.
func streamFooter(input schemas.FileDigest, m *trace.Meta, seed uint64) schemas.Footer {
	return schemas.Footer{Tool: version.String(), Seed: fmt.Sprint(seed), BlockSize: fmt.Sprint(m.BlockSize),
		Tokenizer: m.Tokenizer, Inputs: schemas.InputsDigest([]schemas.FileDigest{input})}
}
