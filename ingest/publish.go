package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"runtime"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/schemas"
)

// PublishOptions of [Publish].
type PublishOptions struct {
	Lake   string       // folder of the lake
	Bucket *objstore.S3 // lake on an object store, instead of Lake
	Day    string       // YYYY-MM-DD, UTC
	// K and MinRequests are what a tenant, class or model needs to keep its name: distinct sessions, and
	// requests. K is also how many tenants must hold a block id that is shared across tenants. 0 = 20 and 100
	// requests; 1 keeps every name and every id.
	K           int
	MinRequests int
	// Keys returns the keys of an epoch; it is asked when ids must be keyed per tenant. nil = those ids are
	// left out.
	Keys func(epoch string) (Keyer, error)
	// MaxDuration is how long after its arrival a request may still be logged: the longest request and the
	// gateway's flush. 0 = 32 minutes. Complete refuses a day whose records may not all have come.
	MaxDuration time.Duration
	Complete    bool
	// Unnoted says that the live build was made by a run that was killed before it could tell of it: what was late for
	// that build is late for this one.
	Unnoted bool
	// Backfill builds the day from its newest epoch alone, which must hold the whole day again.
	Backfill   bool
	Epoch      string       // with Backfill: build from this epoch instead; "" = the newest
	Parts      int          // segments that are read and sorted side by side; 0 = one for each processor
	Memory     int          // bytes of rows and ids in memory at a time, beside 16 for each row; 0 = 512 MiB
	KeepBuilds int          // earlier builds of the day that stay under _builds; 0 = 1, negative = none
	ExpiresAt  *time.Time   // for the manifest; nil = none
	Tool       string       // version for the footer
	Logger     *slog.Logger // nil = discard

	hook  func(point string) error // failpoints of the tests; nil = none
	wrap  func(dayStore) dayStore  // what tests put around the store; nil = nothing
	group int                      // bytes of a row group; 0 = groupBytes
}

// Validate reports every fault of o.
func (o *PublishOptions) Validate() error {
	var errs []error
	if o.Lake == "" && o.Bucket == nil {
		errs = append(errs, errors.New("lake folder is missing"))
	}
	if _, err := time.Parse(time.DateOnly, o.Day); err != nil {
		errs = append(errs, fmt.Errorf("day must be YYYY-MM-DD, not %q", o.Day))
	}
	if o.K < 0 || o.MinRequests < 0 {
		errs = append(errs, errors.New("k and min-requests must not be negative"))
	}
	if o.MaxDuration < 0 {
		errs = append(errs, errors.New("the longest duration must not be negative"))
	}
	if o.Parts < 0 || o.Parts > maxParts {
		errs = append(errs, fmt.Errorf("parts must lie between 1 and %d, not %d", maxParts, o.Parts))
	}
	if o.Memory < 0 {
		errs = append(errs, errors.New("memory must not be negative"))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// maxParts bounds the segments that are read side by side, and the sorters.
const maxParts = 256

func (o PublishOptions) withDefaults() PublishOptions {
	o.K, o.MinRequests = or(o.K, 20), or(o.MinRequests, 100)
	o.MaxDuration = or(o.MaxDuration, 32*time.Minute)
	o.Parts, o.Memory = or(o.Parts, runtime.GOMAXPROCS(0)), or(o.Memory, 512<<20)
	o.KeepBuilds, o.group = max(or(o.KeepBuilds, 1), 0), or(o.group, groupBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.hook == nil {
		o.hook = func(string) error { return nil }
	}
	return o
}

// lake is the store that the options name.
func (o *PublishOptions) lake() dayStore {
	s := storeOf(o.Lake, o.Bucket)
	if o.wrap != nil {
		s = o.wrap(s)
	}
	return s
}

// Publish builds LAKE/day=D/requests.parquet from all segments with arrivals on that UTC day: exact
// duplicates merged, sorted by arrival, turns numbered, labels of small groups suppressed, hash_ids cut after
// the last block that another request of the day shares. The file appears by one rename and replaces an
// earlier build; the same segments, options, keys and version give the same bytes, whatever Parts, Memory and the
// number of processors.
// On an object store it is replaced by one PUT or one completed upload of parts.
//
// Turns count the requests of a session on that day, from 0. A label of a small group becomes "other"; when
// "other" is itself too small it becomes null (model, which has no null, becomes ""). Rows are never dropped
// for it.
//
// A block id that at least two tenants hold, but fewer than K, is keyed for each of them when there are Keys;
// without, the rows that have it end before it. The report says how much of the prefix reuse that costs.
//
// A day belongs to one epoch, whose ids cannot be compared with those of another. Rows of a later epoch that
// come after the day was published are late: they are counted and left out until Backfill.
//
// Rows and ids beyond Memory are spilled to files without a name, of which a crash leaves nothing: in LAKE/_builds,
// or in the temporary folder when the lake is a bucket. One Publish of a day runs at a time; of two on an object
// store, one fails at its end when the other was faster.
//
// Errors: fault.Data when a segment is missing or broken, when a day that was never published has segments of
// different epochs, and with Complete when the day is open; a plain failure when nothing arrived on that day.
func Publish(ctx context.Context, o PublishOptions) (*PublishReport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	started, s := time.Now(), o.lake()
	at, err := openSite(ctx, &o, s)
	if err != nil {
		return nil, err
	}
	in, err := selectDay(ctx, at)
	if err != nil {
		return nil, err
	}
	r := in.report(&o)
	if !r.IsComplete && o.Complete {
		return nil, fault.Mark(fmt.Errorf("publishing %s: the day is open until the logs have come to %s", o.Day, r.OpenUntil),
			fault.Data, "ingest more, or publish without --complete")
	}
	defer at.close()
	if err := at.lock(ctx); err != nil {
		return nil, err
	}
	d, err := s.Draft(path.Join(at.builds, lakeFile))
	if err != nil {
		return nil, err
	}
	defer d.Discard()
	b := &build{o: &o, in: in, s: s, scratch: s.Scratch(), report: r, words: newWords()}
	if !s.Far() {
		b.scratch = filepath.Join(s.String(), filepath.FromSlash(at.builds)) // the file system of the lake, which has the room
	}
	defer b.close()
	footer := in.footer
	if err := b.prepare(ctx); err != nil {
		return nil, publishing(ctx, o.Day, err)
	}
	footer.Tool, footer.Inputs = o.Tool, schemas.InputsDigest(in.inputs)
	if r.File, err = b.write(ctx, d, footer); err != nil {
		return nil, publishing(ctx, o.Day, err)
	}
	m := &schemas.Manifest{
		Kind: "lake_day", Tool: o.Tool, StartedAt: started.UTC(), EndedAt: time.Now().UTC(), Epoch: r.Epoch, ExpiresAt: o.ExpiresAt,
		Settings: map[string]any{
			"day": o.Day, "k": o.K, "min_requests": o.MinRequests, "complete": r.IsComplete, "open_until": r.OpenUntil, lateSetting: r.Late,
		},
		Inputs: in.inputs, Files: []schemas.FileDigest{r.File}, Notes: r.notes(),
	}
	if err := at.replace(ctx, d, m); err != nil {
		return nil, publishing(ctx, o.Day, err)
	}
	o.Logger.Info("published", "day", o.Day, "rows", r.Rows, "duplicates", r.Duplicates)
	return r, nil
}

// publishing says that a build was interrupted, or what failed.
func publishing(ctx context.Context, day string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("publishing %s: %w", day, context.Cause(ctx))
	}
	return err
}

// prepare does all that comes before the first row is written.
func (b *build) prepare(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"scan", b.scan}, {"survey", b.survey}, {"turns", func(ctx context.Context) error { return b.found.numberTurns(ctx) }},
		{"share", b.share}, {"suppress", b.suppress},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return err
		}
		b.o.Logger.Debug("publishing", "step", step.name, "took", time.Since(began).Round(time.Millisecond))
		if err := b.o.hook("after-" + step.name); err != nil {
			return err
		}
	}
	return nil
}
