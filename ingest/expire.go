package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"regexp"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/schemas"
)

// ExpireOptions of [Expire].
type ExpireOptions struct {
	Lake   string       // folder of the lake
	Bucket *objstore.S3 // lake on an object store, instead of Lake
	Before string       // YYYY-MM-DD, UTC: what belongs to earlier days goes
	// Live tells whether a day has a build that may be made again: its rows stay in segments that stay. nil = none has.
	Live   func(day string) bool
	DryRun bool
	Logger *slog.Logger // nil = discard

	hook func(point string) error // failpoints of the tests; nil = none
}

// Validate reports every fault of o.
func (o *ExpireOptions) Validate() error {
	var errs []error
	if o.Lake == "" && o.Bucket == nil {
		errs = append(errs, errors.New("lake folder is missing"))
	}
	if _, err := time.Parse(time.DateOnly, o.Before); err != nil {
		errs = append(errs, fmt.Errorf("day must be YYYY-MM-DD, not %q", o.Before))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// ExpireReport is what [Expire] took away, or would.
type ExpireReport struct {
	Segments int      `json:"segments"` // dropped whole, with their dead letters and reprocessed rows
	Letters  int64    `json:"letters"`  // dead letters in them, by what the segments say
	Files    []string `json:"files"`    // removed, as keys of the lake
	Bytes    int64    `json:"bytes"`    // of these
	Rows     int64    `json:"rows"`     // taken out of segments that stay
	Kept     []string `json:"kept"`     // segments that hold the place of their log, and rows of days that live, with the reason
}

// Expire drops the segments of days before one, from the start of each log, with their dead letters and reprocessed
// rows. The last segment of a log stays: by it the log goes on where it ends, so nothing is read twice. Rows of such
// days in segments that stay become skips ([SkipExpired]), unless the day is live.
//
// A run that was killed is finished by the next, and a log is whole for every reader meanwhile. Where the segments of
// a live day are gone, rows that come late for it are refused by Publish.
func Expire(ctx context.Context, o ExpireOptions) (*ExpireReport, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.hook == nil {
		o.hook = func(string) error { return nil }
	}
	if o.Live == nil {
		o.Live = func(string) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &expirer{o: &o, s: storeOf(o.Lake, o.Bucket), report: &ExpireReport{Files: []string{}, Kept: []string{}}}
	if !o.DryRun {
		unlock, err := lockAmendments(ctx, e.s)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	logs, err := logsIn(ctx, e.s)
	if err != nil {
		return nil, err
	}
	for _, id := range logs {
		if err := e.log(ctx, id); err != nil {
			return e.report, err
		}
	}
	return e.report, nil
}

type expirer struct {
	o      *ExpireOptions
	s      dayStore
	report *ExpireReport
}

// log drops what is old of one log.
func (e *expirer) log(ctx context.Context, id logID) error {
	segments, err := recoverIn(ctx, e.s, id)
	if err != nil {
		return err
	}
	n := 0
	for n < len(segments)-1 && lastDay(&segments[n].facts) < e.o.Before {
		e.report.Letters += segments[n].facts.deadRecords()
		n++
	}
	e.report.Segments += n
	if err := e.drop(ctx, id, segments, n); err != nil {
		return err
	}
	for i := range segments[n:] {
		seg := &segments[n+i]
		if err := e.strip(ctx, seg); err != nil {
			return err
		}
		later, err := reprocessedFiles(ctx, e.s, id, &seg.facts)
		if err != nil {
			return err
		}
		for j := range later {
			if err := e.strip(ctx, &later[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastDay is the day that a segment belongs to: that of its newest record, or of its newest row where the log gives no
// times; "9999" where nothing tells.
func lastDay(f *segmentFacts) string {
	if f.LoggedUs > 0 {
		return dayOf(time.UnixMicro(f.LoggedUs))
	}
	last := ""
	for day := range f.Days {
		last = max(last, day)
	}
	if last == "" {
		return "9999"
	}
	return last
}

// drop notes that the log begins behind its first n segments, and removes what lies before.
func (e *expirer) drop(ctx context.Context, id logID, segments []segmentFile, n int) error {
	dir := id.folder(segmentsFolder)
	a, err := readAmendment(ctx, e.s, dir)
	if err != nil {
		return err
	}
	before := a.Dropped.Next
	if n > 0 {
		before = segments[n].facts.First
		found, err := listSegments(ctx, e.s, dir, &a)
		if err != nil {
			return err
		}
		if !e.o.DryRun {
			if err := amend(ctx, e.s, dir, func(a *amendment) { a.drop(found, before) }); err != nil {
				return err
			}
			if err := e.o.hook("after-note"); err != nil {
				return err
			}
		}
	}
	return e.clean(ctx, id, before)
}

// drop notes that the log begins at an offset; found are its segments as they count.
func (a *amendment) drop(found []objstore.Object, next int64) {
	for _, o := range found {
		if first := firstOffset(o.Key); first >= a.Dropped.Next && first < next {
			a.Dropped.Segments++
			a.Dropped.Bytes += o.Size
			delete(a.Sizes, first)
		}
	}
	a.Dropped.Next = max(a.Dropped.Next, next)
}

var offsetName = regexp.MustCompile(`^\d{20}[.-].*parquet$`)

// clean removes all files of a log that belong to segments before an offset, also those that an earlier run left.
func (e *expirer) clean(ctx context.Context, id logID, before int64) error {
	if before == 0 {
		return nil
	}
	for _, folder := range []string{reprocessedFolder, deadFolder, segmentsFolder} {
		dir := id.folder(folder)
		list, err := e.s.List(ctx, dir)
		if err != nil {
			return err
		}
		for _, o := range list {
			if path.Dir(o.Key) != dir || !offsetName.MatchString(path.Base(o.Key)) || firstOffset(o.Key) >= before {
				continue
			}
			e.report.Files = append(e.report.Files, o.Key)
			e.report.Bytes += o.Size
			if e.o.DryRun {
				continue
			}
			if err := e.s.Remove(ctx, o.Key); err != nil {
				return err
			}
			if err := e.o.hook("after-remove"); err != nil {
				return err
			}
		}
	}
	return nil
}

// strip takes the rows of old days out of a segment that stays.
func (e *expirer) strip(ctx context.Context, seg *segmentFile) error {
	old := map[string]bool{}
	for day, n := range seg.facts.Days {
		if n == 0 || day >= e.o.Before {
			continue
		}
		if e.o.Live(day) {
			e.report.Kept = append(e.report.Kept, fmt.Sprintf("%s: %d rows of %s, which is live", seg.key, n, day))
			continue
		}
		old[day] = true
		if e.o.DryRun {
			e.report.Rows += n
		}
	}
	if len(old) == 0 || e.o.DryRun {
		return nil
	}
	w := rewriter{s: e.s, reason: SkipExpired, hook: e.o.hook, drop: func(r *schemas.Request) bool { return old[dayOf(r.ArrivedAt)] }}
	n, err := w.segment(ctx, seg)
	e.report.Rows += n
	if n > 0 {
		e.o.Logger.Info("rewritten", "segment", seg.key, "rows", n)
	}
	return err
}
