package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// ForgetOptions of [Forget].
type ForgetOptions struct {
	Lake   string       // folder of the lake
	Bucket *objstore.S3 // lake on an object store, instead of Lake
	// Who is to be forgotten: kind, token and pseudonyms. A tombstone that is there already is kept, with the pseudonyms of
	// both.
	Who    schemas.Tombstone
	DryRun bool         // look, and change nothing
	Logger *slog.Logger // nil = discard

	hook func(point string) error // failpoints of the tests; nil = none
}

// Validate reports every fault of o.
func (o *ForgetOptions) Validate() error {
	var errs []error
	if o.Lake == "" && o.Bucket == nil {
		errs = append(errs, errors.New("lake folder is missing"))
	}
	if k := o.Who.Kind; k != schemas.ForgetTenant && k != schemas.ForgetSession {
		errs = append(errs, fmt.Errorf("kind %q is neither tenant nor session", k))
	}
	if !schemas.IsToken(o.Who.Token, "f") {
		errs = append(errs, errors.New("the tombstone has no token"))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// ForgetReport is what was found of somebody in a lake, and what became of it.
type ForgetReport struct {
	Segments int   `json:"segments"` // files of the segment log that were looked at
	Files    int   `json:"files"`    // of these, rewritten (or, in a dry run, to be rewritten)
	Rows     int64 `json:"rows"`     // rows taken out of them
	// Days had rows of him, now or when the tombstone was set: their builds and all that was made of them are to be made
	// again. UTC, in order.
	Days []string `json:"days"`
	// Sessions are the tokens of a tenant's sessions, by which rows are known where its own name was suppressed.
	Sessions []string `json:"-"`
	// Loners are a tenant's rows without a session.
	Loners int64 `json:"rows_without_session"`
}

// Forget sets a tombstone and takes the rows of who is named by it out of all segments. What is built of the segments
// is for the caller to make again: a Publish leaves such rows out from the moment at which the tombstone is there.
// [Forgotten] ends it.
//
// A run that is killed at any point is finished by the next: what was found is noted in the tombstone before anything
// is changed. Offsets stay accounted for ([SkipForgotten]).
func Forget(ctx context.Context, o ForgetOptions) (*ForgetReport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.hook == nil {
		o.hook = func(string) error { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &forgetter{o: &o, s: storeOf(o.Lake, o.Bucket), found: &ForgetReport{}}
	if !o.DryRun {
		unlock, err := lockAmendments(ctx, f.s)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	if err := f.merge(ctx); err != nil {
		return nil, err
	}
	if !o.DryRun { // from here on nothing new comes in
		if err := f.write(ctx, "tombstone"); err != nil {
			return nil, err
		}
	}
	hits, err := f.find(ctx)
	if err != nil || o.DryRun {
		return f.found, err
	}
	if err := f.write(ctx, "work"); err != nil {
		return nil, err
	}
	w := rewriter{s: f.s, reason: SkipForgotten, drop: f.has, hook: o.hook}
	f.found.Files = 0
	for _, seg := range hits {
		n, err := w.segment(ctx, seg)
		if err != nil {
			return f.found, err
		}
		f.found.Files++
		f.found.Rows += n
		o.Logger.Info("rewritten", "segment", seg.key, "rows", n)
	}
	return f.found, nil
}

// forgetter takes one tenant or session out of the segments.
type forgetter struct {
	o     *ForgetOptions
	s     dayStore
	t     schemas.Tombstone
	rows  forgotten
	found *ForgetReport
}

// merge joins what is asked for with the tombstone that is there.
func (f *forgetter) merge(ctx context.Context) error {
	f.t = f.o.Who
	f.t.Open = &schemas.ForgetWork{}
	old, err := readTombstone(ctx, f.s, tombstoneKey(f.t.Token))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if old != nil {
		f.t.At = old.At
		f.t.Pseudonyms = union(old.Pseudonyms, f.t.Pseudonyms)
		if old.Open != nil {
			f.t.Open = old.Open
		}
	}
	if f.t.At.IsZero() {
		f.t.At = time.Now().UTC().Truncate(time.Second)
	}
	f.rows.rows = map[string]bool{}
	for _, p := range f.t.Pseudonyms {
		f.rows.rows[p] = true
	}
	return nil
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

func (f *forgetter) write(ctx context.Context, point string) error {
	data, err := json.MarshalIndent(&f.t, "", "  ")
	if err == nil {
		err = f.s.Replace(ctx, tombstoneKey(f.t.Token), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("setting a tombstone: %w", err)
	}
	return f.o.hook("after-" + point)
}

func (f *forgetter) has(row *schemas.Request) bool { return f.rows.hasRow(row.Tenant, row.Session) }

// find looks for the rows in all segments, and notes days and sessions beside those that were noted before.
func (f *forgetter) find(ctx context.Context) (hits []*segmentFile, err error) {
	days, sessions := map[string]bool{}, map[string]bool{}
	for _, d := range f.t.Open.Days {
		days[d] = true
	}
	for _, s := range f.t.Open.Sessions {
		sessions[s] = true
	}
	err = eachSegment(ctx, f.s, func(seg *segmentFile) error {
		f.found.Segments++
		n, err := f.look(ctx, seg, days, sessions)
		if n > 0 {
			hits = append(hits, seg)
			if f.found.Files++; f.o.DryRun {
				f.found.Rows += n
			}
		}
		return err
	})
	f.t.Open.Days, f.t.Open.Sessions = slices.Sorted(maps.Keys(days)), slices.Sorted(maps.Keys(sessions))
	f.found.Days, f.found.Sessions, f.found.Loners = f.t.Open.Days, f.t.Open.Sessions, f.t.Open.Loners
	return hits, err
}

// look reads who a segment is about, and nothing else of it.
func (f *forgetter) look(ctx context.Context, seg *segmentFile, days, sessions map[string]bool) (n int64, err error) {
	type who struct {
		ArrivedAt time.Time `parquet:"arrived_at,timestamp(microsecond)"`
		Tenant    *string   `parquet:"tenant,optional,dict"`
		Session   *string   `parquet:"session,optional,dict"`
	}
	file, err := f.s.Open(ctx, seg.key)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	r, err := parquetio.OpenAt[who](file, file.Size(), seg.path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	batch := make([]who, batchRows)
	for {
		read, err := r.Read(batch)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		for i := range batch[:read] {
			row := &batch[i]
			if !f.rows.hasRow(row.Tenant, row.Session) {
				continue
			}
			n++
			days[dayOf(row.ArrivedAt)] = true
			switch {
			case f.t.Kind != schemas.ForgetTenant:
			case row.Session != nil:
				sessions[*row.Session] = true
			default:
				f.t.Open.Loners++ // again after a crash: all that matters is whether there are any
			}
		}
		if ctx.Err() != nil {
			return n, fmt.Errorf("looking for rows: %w", context.Cause(ctx))
		}
	}
}

// Forgotten notes that nothing is left to be done for a tombstone: days and sessions are dropped from it.
func Forgotten(ctx context.Context, o ForgetOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.hook == nil {
		o.hook = func(string) error { return nil }
	}
	f := &forgetter{o: &o, s: storeOf(o.Lake, o.Bucket)}
	if err := f.merge(ctx); err != nil {
		return err
	}
	f.t.Open = nil
	return f.write(ctx, "end")
}

// Tombstones lists who was forgotten in a lake, in the order of their tokens.
func Tombstones(ctx context.Context, lake string, bucket *objstore.S3) ([]schemas.Tombstone, error) {
	return readTombstones(ctx, storeOf(lake, bucket))
}
