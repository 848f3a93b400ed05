package refresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// lakeDays makes the published days anew without the rows, and drops their earlier builds.
func (f *forgetting) lakeDays(ctx context.Context) error {
	days, err := f.published(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		if !f.days[day] {
			held, err := f.inBuild(ctx, path.Join("day="+day, lakeTable))
			if err != nil {
				return err
			}
			if !held {
				if err := f.mend(ctx, day); err != nil {
					return err
				}
				continue
			}
			f.days[day] = true // its segments are gone
		}
		done := ForgottenDay{Day: day, Done: DayToDo}
		if !f.o.DryRun {
			if done, err = f.day(ctx, day); err != nil {
				return err
			}
		}
		f.result.Days = append(f.result.Days, done)
	}
	return f.earlierBuilds(ctx)
}

// mend looks at the manifest of a day that has no row of him.
func (f *forgetting) mend(ctx context.Context, day string) error {
	m, err := f.lake.manifest(ctx, "day="+day)
	if err != nil || m == nil {
		return err
	}
	return f.mendDay(ctx, day, m)
}

// lakeTable is the table of a day.
const lakeTable = "requests.parquet"

// day makes one day anew: from its segments, or, where they are gone, from its build.
func (f *forgetting) day(ctx context.Context, day string) (ForgottenDay, error) {
	done := ForgottenDay{Day: day, Done: DayRebuilt}
	m, err := f.lake.manifest(ctx, "day="+day)
	if err != nil {
		return done, err
	}
	if m == nil {
		m = &schemas.Manifest{Settings: map[string]any{}}
	}
	o := publishAgain(day, m)
	o.Lake, o.Bucket, o.Tool, o.Logger = f.o.Lake, f.o.Bucket, f.o.Tool, f.o.Logger
	if keys, err := f.o.Keys.Load(ctx, m.Epoch); err == nil && m.Epoch != "" {
		o.Keys = func(string) (ingest.Keyer, error) { return anonymize.NewHasher(keys, anonymize.Options{}) }
	} else {
		f.note("%s: its block key is gone: blocks that few tenants share are left out of the day from now on", day)
	}
	var report *ingest.PublishReport
	err = f.guarded(ctx, "publish-"+day, func() error { return nil })
	if err == nil {
		report, err = ingest.Publish(ctx, o)
	}
	switch {
	case errors.Is(err, ingest.ErrNoRequests):
		return f.withoutSegments(ctx, day, m)
	case errors.Is(err, ingest.ErrDropped):
		done.Done = DayFiltered
		done.Rows, err = f.filterDay(ctx, day, m)
		return done, err
	case err != nil:
		return done, err
	}
	done.Rows = report.Rows
	return done, nil
}

// withoutSegments handles a day of which the segments have no row: all were his, or retention has taken them.
func (f *forgetting) withoutSegments(ctx context.Context, day string, m *schemas.Manifest) (ForgottenDay, error) {
	done := ForgottenDay{Day: day, Done: DayFiltered}
	named, err := f.segmentsThere(ctx, m)
	if err != nil {
		return done, err
	}
	if !named {
		done.Rows, err = f.filterDay(ctx, day, m)
		if err != nil || done.Rows > 0 {
			return done, err
		}
	}
	done.Done, done.Rows = DayRemoved, 0
	folder := "day=" + day
	list, err := f.lake.List(ctx, folder)
	if err != nil {
		return done, fmt.Errorf("listing %s: %w", f.lake.Path(folder), err)
	}
	return done, f.guarded(ctx, "remove-"+folder, func() error {
		for _, o := range sortedForRemoval(list, folder) {
			if err := f.lake.Remove(ctx, o.Key); err != nil {
				return err
			}
		}
		if f.lake.bucket == nil {
			return removeEmpty(f.lake.Path(folder))
		}
		return nil
	})
}

// segmentsThere tells whether all segments are there that a build was made of.
func (f *forgetting) segmentsThere(ctx context.Context, m *schemas.Manifest) (bool, error) {
	for _, in := range m.Inputs {
		tag, err := f.lake.Tag(ctx, in.Name)
		if err != nil || tag == "" {
			return false, err
		}
	}
	return len(m.Inputs) > 0, nil
}

// publishAgain are the options that a day was published with, as far as its manifest tells.
func publishAgain(day string, m *schemas.Manifest) ingest.PublishOptions {
	o := ingest.PublishOptions{Day: day, KeepBuilds: -1, ExpiresAt: m.ExpiresAt, K: numberIn(m, "k"), MinRequests: numberIn(m, "min_requests")}
	until, _ := m.Settings["open_until"].(string)
	if at, err := time.Parse(time.RFC3339, until); err == nil {
		if end, err := endOfDay(day); err == nil {
			o.MaxDuration = max(at.Sub(end), 0)
		}
	}
	return o
}

func numberIn(m *schemas.Manifest, key string) int {
	n, _ := m.Settings[key].(float64)
	return int(n)
}

func (f *forgetting) note(format string, args ...any) {
	f.result.Notes = append(f.result.Notes, fmt.Sprintf(format, args...))
}

// inBuild tells whether a table of requests has rows of him.
func (f *forgetting) inBuild(ctx context.Context, key string) (bool, error) {
	type who struct {
		Tenant  *string `parquet:"tenant,optional,dict"`
		Session *string `parquet:"session,optional,dict"`
	}
	file, err := f.lake.Open(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	r, err := parquetio.OpenAt[who](file, file.Size(), f.lake.Path(key))
	if err != nil {
		return false, err
	}
	defer r.Close()
	batch := make([]who, 4096)
	for {
		n, err := r.Read(batch)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for i := range batch[:n] {
			if f.rows.has(batch[i].Tenant, batch[i].Session) {
				return true, nil
			}
		}
	}
}

// earlierBuilds drops the earlier builds of the days that had rows.
func (f *forgetting) earlierBuilds(ctx context.Context) error {
	list, err := f.lake.List(ctx, "_builds")
	if err != nil {
		return fmt.Errorf("listing earlier builds: %w", err)
	}
	for _, o := range list {
		if !strings.HasSuffix(o.Key, ".parquet") {
			continue
		}
		if !f.days[path.Base(path.Dir(o.Key))] {
			held, err := f.inBuild(ctx, o.Key)
			if err != nil {
				return err
			}
			if !held {
				continue
			}
		}
		if f.o.DryRun {
			continue
		}
		if err := f.guarded(ctx, "remove-"+o.Key, func() error { return f.lake.Remove(ctx, o.Key) }); err != nil {
			return err
		}
	}
	return nil
}

// sortedForRemoval puts the table before the manifest: a day without its table is none.
func sortedForRemoval(list []object, folder string) []object {
	var first, last []object
	for _, o := range list {
		switch {
		case !strings.HasPrefix(o.Key, folder+"/"):
		case path.Base(o.Key) == schemas.ManifestName:
			last = append(last, o)
		default:
			first = append(first, o)
		}
	}
	return append(first, last...)
}
