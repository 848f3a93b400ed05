package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/replay"
	"tailgate/schemas"
)

// dayRangeFlags are several days, and which of them are this process's.
type dayRangeFlags struct {
	days, shard string

	mine []string // UTC days, in order; empty without --days
}

// maxDays is ten years: more is a slip of the pen.
const maxDays = 3653

func (f *dayRangeFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.days, "days", "", "FROM..TO instead of --day: these UTC days, both included, one by one")
	fl.StringVar(&f.shard, "shard", "", "i/n: with --days, only every nth of them, from the one with number i (from 0)")
}

// read reports the faults of the flags; day is what --day says.
func (f *dayRangeFlags) read(day string) error {
	switch {
	case f.days == "" && f.shard != "":
		return errors.New("--shard needs --days")
	case f.days == "":
		return nil
	case day != "":
		return errors.New("--day and --days contradict each other")
	}
	days, err := parseDays(f.days)
	if err != nil {
		return err
	}
	part := replay.Shard{Count: 1}
	if f.shard != "" {
		if part, err = replay.ParseShard(f.shard); err != nil {
			return err
		}
	}
	for i, d := range days {
		if i%part.Count == part.Index {
			f.mine = append(f.mine, d)
		}
	}
	return nil
}

// parseDays reads FROM..TO, or one day.
func parseDays(s string) ([]string, error) {
	from, to, span := strings.Cut(s, "..")
	if !span {
		to = from
	}
	a, err1 := time.Parse(time.DateOnly, from)
	b, err2 := time.Parse(time.DateOnly, to)
	switch {
	case errors.Join(err1, err2) != nil:
		return nil, fmt.Errorf("--days: %q is not a range such as 2026-11-01..2026-11-30", s)
	case b.Before(a):
		return nil, fmt.Errorf("--days: %s ends before it begins", s)
	case b.Sub(a) > maxDays*24*time.Hour:
		return nil, fmt.Errorf("--days: %s is more than ten years", s)
	}
	var out []string
	for d := a; !d.After(b); d = d.AddDate(0, 0, 1) {
		out = append(out, d.Format(time.DateOnly))
	}
	return out, nil
}

// each runs do for every day that is this process's. A day that fails does not keep the next one from being done; a missing
// key and an interruption do.
func (f *dayRangeFlags) each(ctx context.Context, a *app, do func(day string) error) error {
	if len(f.mine) == 0 {
		a.note("no day of %s is left for shard %s", f.days, f.shard)
	}
	var errs []error
	for _, day := range f.mine {
		err := do(day)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if ctx.Err() != nil || fault.Of(err) == fault.Key {
			break
		}
	}
	return errors.Join(errs...)
}

// madeFrom tells whether a folder is finished and was made of the day as the lake has it now. One that was made of another
// build is taken for unfinished from here on.
func (a *app) madeFrom(ctx context.Context, dir, lake, day string) (bool, error) {
	m, err := schemas.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	live, err := a.dayManifest(ctx, lake, day)
	if err != nil {
		return false, err
	}
	if len(live.Files) == 1 && len(m.Inputs) == 1 && live.Files[0].SHA256 == m.Inputs[0].SHA256 {
		return true, nil
	}
	if err := os.Remove(filepath.Join(dir, schemas.ManifestName)); err != nil {
		return false, fmt.Errorf("making %s anew: %w", dir, err)
	}
	return false, nil
}

// dayManifest reads what publish wrote beside a day.
func (a *app) dayManifest(ctx context.Context, lake, day string) (*schemas.Manifest, error) {
	key := path.Join("day="+day, schemas.ManifestName)
	if !objstore.IsS3(lake) {
		return schemas.ReadManifest(filepath.Join(lake, filepath.Dir(filepath.FromSlash(key))))
	}
	bucket, err := a.openBucket(ctx, lake)
	if err != nil {
		return nil, err
	}
	data, err := objstore.ReadAll(ctx, bucket, key)
	if err != nil {
		return nil, err
	}
	return schemas.ParseManifest(bucket.String()+key, data)
}
