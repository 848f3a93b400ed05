package refresh

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"tailgate/ingest"
)

// segments takes old segments off the logs. Their rows live as long as their days, unless the file says otherwise.
func (r *retainer) segments(ctx context.Context) error {
	keep := r.n.Config.Retention.Segments
	if keep == 0 {
		keep = r.n.Config.Retention.Days
	}
	if keep == 0 {
		return nil
	}
	before := r.now.Add(-keep).Format(time.DateOnly)
	if r.last != "" {
		before = min(before, r.last)
	}
	if !r.dry { // a run that has lost its lease ends here
		if err := r.n.Guard(ctx, "expire-segments", func() error { return nil }); err != nil {
			return err
		}
	}
	report, err := ingest.Expire(ctx, ingest.ExpireOptions{
		Lake: r.n.Root.Path(LakeFolder), Bucket: r.n.bucketOfLake(), Before: before, DryRun: r.dry, Logger: r.n.Log,
		Live: func(day string) bool {
			d := r.days[day]
			return d != nil && d.lake != nil && !r.removed[path.Join(LakeFolder, "day="+day)]
		},
	})
	if report != nil {
		for _, f := range report.Files {
			r.status.Removed = append(r.status.Removed, path.Join(LakeFolder, f))
		}
		r.status.RemovedBytes += report.Bytes
		r.status.SegmentRows, r.status.LettersGone = report.Rows, report.Letters
		r.status.Kept = append(r.status.Kept, report.Kept...)
	}
	if err != nil {
		return fmt.Errorf("dropping old segments: %w", err)
	}
	return nil
}

// named tells which of the removed things others were made of that stay.
func (r *retainer) named(ctx context.Context) error {
	if len(r.produced) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.days)) {
		for _, folder := range r.days[name].folders {
			if r.removed[folder] {
				continue
			}
			m, err := r.n.Root.manifest(ctx, folder)
			if err != nil {
				return err
			}
			if m == nil {
				continue
			}
			for _, in := range m.Inputs {
				if from := r.produced[in.SHA256]; from != "" && !slices.Contains(r.status.StillNamed, from+" is an input of "+folder) {
					r.status.StillNamed = append(r.status.StillNamed, from+" is an input of "+folder)
				}
			}
		}
	}
	return nil
}
