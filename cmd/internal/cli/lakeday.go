package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
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
		paths, err := filepath.Glob(filepath.Join(lake, "day=*"))
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

// exportDay makes a trace of a day of a lake, in memory.
func (a *app) exportDay(ctx context.Context, lake string, o trace.ExportOptions) (*trace.Trace, error) {
	s, err := a.exportStream(ctx, lake, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Load(ctx)
}

// exportStream makes a trace of a day of a lake, on disk. The day of a bucket is fetched first, by one request: it may
// be replaced at any time.
func (a *app) exportStream(ctx context.Context, lake string, o trace.ExportOptions) (*trace.Stream, error) {
	if !objstore.IsS3(lake) {
		return trace.ExportStream(ctx, lake, o)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	bucket, err := a.openBucket(ctx, lake)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tailgate-day-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)
	day := "day=" + o.Day
	list, err := bucket.List(ctx, day)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(f objstore.Object) bool { return !strings.HasSuffix(f.Key, ".parquet") })
	if len(list) == 0 {
		return nil, fault.Mark(fmt.Errorf("exporting %s: no such day in %s", o.Day, bucket), fault.Usage, "publish it first")
	}
	for _, f := range list {
		if err := fetchObject(ctx, bucket, f.Key, filepath.Join(dir, filepath.FromSlash(f.Key))); err != nil {
			return nil, err
		}
	}
	s, err := trace.ExportStream(ctx, dir, o)
	if err != nil {
		return nil, &renamedError{error: err, from: dir, to: strings.TrimSuffix(bucket.String(), "/")}
	}
	s.Meta.Name = bucket.String() + day
	return s, nil
}

// renamedError names the bucket where an error names the folder that the day was fetched into.
type renamedError struct {
	error
	from, to string
}

func (e *renamedError) Error() string { return strings.ReplaceAll(e.error.Error(), e.from, e.to) }
func (e *renamedError) Unwrap() error { return e.error }

// fetchObject copies an object to a file.
func fetchObject(ctx context.Context, bucket *objstore.S3, key, to string) error {
	body, err := bucket.Stream(ctx, key)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("fetching %s: %w", path.Base(key), err)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(0o600))
	if err != nil {
		return fmt.Errorf("fetching %s: %w", path.Base(key), err)
	}
	_, err = io.Copy(f, body)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("fetching %s%s: %w", bucket, key, err)
	}
	return nil
}
