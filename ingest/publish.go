package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// PublishOptions of [Publish].
type PublishOptions struct {
	Lake string
	Day  string // YYYY-MM-DD, UTC
	// K and MinRequests are what a tenant, class or model needs to keep its name: distinct sessions, and
	// requests. 0 = 20 sessions and 100 requests; 1 keeps every name.
	K           int
	MinRequests int
	Tool        string       // version for the footer
	Logger      *slog.Logger // nil = discard
}

// Validate reports every fault of o.
func (o *PublishOptions) Validate() error {
	var errs []error
	if o.Lake == "" {
		errs = append(errs, errors.New("lake folder is missing"))
	}
	if _, err := time.Parse(time.DateOnly, o.Day); err != nil {
		errs = append(errs, fmt.Errorf("day must be YYYY-MM-DD, not %q", o.Day))
	}
	if o.K < 0 || o.MinRequests < 0 {
		errs = append(errs, errors.New("k and min-requests must not be negative"))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// lakeFile is the one Parquet file of a day.
const lakeFile = "requests.parquet"

// Publish builds LAKE/day=D/requests.parquet from all segments with arrivals on that UTC day: exact
// duplicates merged, sorted by arrival, turns numbered, labels of small groups suppressed, hash_ids cut after
// the last block that another request of the day shares. The file appears by one rename and replaces an
// earlier build; the same segments give the same bytes.
//
// Turns count the requests of a session on that day, from 0. A label of a small group becomes "other"; when
// "other" is itself too small it becomes null (model, which has no null, becomes ""). Rows are never dropped
// for it.
//
// Errors: fault.Data when a segment is missing or broken, or when the day's segments come from different
// epochs, whose ids cannot be compared; a plain failure when nothing arrived on that day.
//
// The rows of the day are held in memory: about 700 bytes and 8 for each block id. Three million requests of
// 2,000 input tokens need some 5 GB.
func Publish(ctx context.Context, o PublishOptions) (*PublishReport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.K, o.MinRequests = or(o.K, 20), or(o.MinRequests, 100)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	started := time.Now()
	in, err := readDay(ctx, o.Lake, o.Day)
	if err != nil {
		return nil, err
	}
	r := &PublishReport{Day: o.Day, Segments: len(in.inputs), Epoch: in.footer.Epoch, Read: int64(len(in.rows))}
	sortRows(in.rows)
	rows := dedupe(in.rows, r)
	sessions := numberTurns(rows)
	suppressLabels(rows, sessions, o.K, o.MinRequests, r)
	if err := trimPrivate(rows, r); err != nil {
		return nil, err
	}
	r.Rows = int64(len(rows))
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("publishing %s: %w", o.Day, context.Cause(ctx))
	}
	in.footer.Tool, in.footer.Inputs = o.Tool, schemas.InputsDigest(in.inputs)
	file, err := replaceDay(&o, in.footer, rows)
	if err != nil {
		return nil, err
	}
	r.File = file
	m := &schemas.Manifest{
		Kind: "lake_day", Tool: o.Tool, StartedAt: started.UTC(), EndedAt: time.Now().UTC(), Epoch: r.Epoch,
		Settings: map[string]any{"day": o.Day, "k": o.K, "min_requests": o.MinRequests},
		Inputs:   in.inputs, Files: []schemas.FileDigest{file}, Notes: r.notes(),
	}
	if err := m.Write(dayFolder(o.Lake, o.Day)); err != nil {
		return nil, err
	}
	o.Logger.Info("published", "day", o.Day, "rows", r.Rows, "duplicates", r.Duplicates)
	return r, nil
}

func dayFolder(lake, day string) string { return filepath.Join(lake, "day="+day) }

// replaceDay writes the day's file beside the lake's days and moves it into place.
func replaceDay(o *PublishOptions, footer schemas.Footer, rows []schemas.Request) (schemas.FileDigest, error) {
	var none schemas.FileDigest
	builds, folder := filepath.Join(o.Lake, buildsFolder), dayFolder(o.Lake, o.Day)
	for _, dir := range []string{builds, folder} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return none, fmt.Errorf("making a folder of the lake: %w", err)
		}
	}
	build, err := os.MkdirTemp(builds, o.Day+"-")
	if err != nil {
		return none, fmt.Errorf("making the build's folder: %w", err)
	}
	defer os.RemoveAll(build)
	path, final := filepath.Join(build, lakeFile), filepath.Join(folder, lakeFile)
	if err := parquetio.WriteFile(path, footer.Map(), rows); err != nil {
		return none, err
	}
	digest, err := schemas.DigestFile(build, path)
	if err != nil {
		return none, err
	}
	digest.Rows = int64(len(rows))
	if err := os.Rename(path, final); err != nil {
		return none, fmt.Errorf("publishing %s: %w", o.Day, err)
	}
	return digest, atomicfile.SyncDir(folder)
}
