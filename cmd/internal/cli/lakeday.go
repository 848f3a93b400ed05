package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/version"
	"tailgate/internal/wildcard"
	"tailgate/trace"
)

// lakeDays lists the published days of a lake in a folder or bucket, in order.
func (a *app) lakeDays(ctx context.Context, lake string) ([]string, error) {
	var keys []string
	if objstore.IsS3(lake) {
		bucket, err := a.openBucket(ctx, lake)
		if err != nil {
			return nil, err
		}
		if keys, err = bucket.Folders(ctx, "day="); err != nil {
			return nil, err
		}
	} else {
		paths, err := wildcard.Paths(lake, "day=*")
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", lake, err)
		}
		for _, p := range paths {
			keys = append(keys, filepath.Base(p))
		}
	}
	for i, key := range keys {
		keys[i] = strings.TrimPrefix(key, "day=")
	}
	slices.Sort(keys)
	return keys, nil
}

// exportStream makes a trace of a day of a lake, on disk.
func (a *app) exportStream(ctx context.Context, lake string, o trace.ExportOptions) (*trace.Stream, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	day, err := a.fetchDay(ctx, lake, o.Day)
	if err != nil {
		return nil, fmt.Errorf("exporting %s: %w", o.Day, err)
	}
	defer day.drop()
	s, err := trace.ExportStream(ctx, day.dir, o)
	if err != nil {
		return nil, day.renamed(err)
	}
	s.Meta.Name = day.name
	return s, nil
}

// exportSplit writes one trace for each class into a folder, two and more at a time. A class that the day does not have is
// noted.
func (a *app) exportSplit(ctx context.Context, lake string, o trace.ExportOptions, split []string, dir, format string) error {
	lists := make([][]string, len(split))
	for i, class := range split {
		if class != allClasses {
			lists[i] = []string{class}
		}
		if class == "" || strings.ContainsAny(class, `/\`) || slices.Contains(split[:i], class) {
			return usage(fmt.Errorf("--split: %q cannot name a file, or stands twice", class), "")
		}
	}
	if err := o.Validate(); err != nil {
		return err
	}
	day, err := a.fetchDay(ctx, lake, o.Day)
	if err != nil {
		return fmt.Errorf("exporting %s: %w", o.Day, err)
	}
	defer day.drop()
	streams, err := trace.ExportStreams(ctx, day.dir, o, lists...)
	if err != nil {
		return day.renamed(err)
	}
	for _, s := range streams {
		if s != nil {
			defer s.Close()
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	ending := ".jsonl.zst"
	if format == trace.FormatParquet {
		ending = ".parquet"
	}
	all, writing := errgroup.WithContext(ctx)
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range streams {
		if s == nil {
			a.note("%s has no request of class %s: no trace", o.Day, split[i])
			continue
		}
		s.Meta.Name = day.name
		all.Go(func() error {
			return s.WriteFile(writing, filepath.Join(dir, split[i]+ending), format, version.String())
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for i, s := range streams {
		if s != nil {
			a.note("%s: %d rows", filepath.Join(dir, split[i]+ending), s.Len())
		}
	}
	return nil
}

// allClasses stands for every class in --split.
const allClasses = "all"

// lakeDay is a day of a lake in a folder. The day of a bucket is fetched first, by one request: it may be replaced at
// any time.
type lakeDay struct {
	dir    string // a lake that has the day
	name   string
	bucket string // where the day was fetched from; "" = nowhere
}

func (a *app) fetchDay(ctx context.Context, lake, day string) (*lakeDay, error) {
	d := &lakeDay{dir: lake, name: filepath.ToSlash(filepath.Join(lake, "day="+day))}
	if !objstore.IsS3(lake) {
		return d, nil
	}
	bucket, err := a.openBucket(ctx, lake)
	if err != nil {
		return nil, err
	}
	d.bucket, d.name = bucket.String(), bucket.String()+"day="+day
	list, err := bucket.List(ctx, "day="+day)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(f objstore.Object) bool { return !strings.HasSuffix(f.Key, ".parquet") })
	if len(list) == 0 {
		return nil, fault.Mark(fmt.Errorf("no such day in %s", bucket), fault.Usage, "publish it first")
	}
	if d.dir, err = os.MkdirTemp("", "tailgate-day-"); err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	for _, f := range list {
		if err := objstore.Fetch(ctx, bucket, f.Key, filepath.Join(d.dir, filepath.FromSlash(f.Key))); err != nil {
			d.drop()
			return nil, fmt.Errorf("fetching %s%s: %w", bucket, f.Key, err)
		}
	}
	return d, nil
}

// drop removes what was fetched.
func (d *lakeDay) drop() {
	if d.bucket != "" {
		os.RemoveAll(d.dir)
	}
}

// renamed makes an error name the bucket.
func (d *lakeDay) renamed(err error) error {
	if d.bucket == "" {
		return err
	}
	return &renamedError{error: err, from: d.dir, to: strings.TrimSuffix(d.bucket, "/")}
}

// renamedError names the bucket where an error names the folder that the day was fetched into.
type renamedError struct {
	error
	from, to string
}

func (e *renamedError) Error() string { return strings.ReplaceAll(e.error.Error(), e.from, e.to) }
func (e *renamedError) Unwrap() error { return e.error }
