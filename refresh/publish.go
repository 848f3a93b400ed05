package refresh

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"tailgate/ingest"
)

// publishOptions are those of the file for a day of this root.
func (n *Night) publishOptions(day string) ingest.PublishOptions {
	o := n.o.Publish
	o.Lake, o.Bucket, o.Day = n.Root.Path(LakeFolder), n.o.Bucket, day
	o.MaxDuration, o.Tool, o.Logger = n.Config.Lateness, n.Tool, n.Log
	o.ExpiresAt = n.expiry(day)
	o.Keys = func(epoch string) (ingest.Keyer, error) {
		x, err := n.hash.of(epoch)
		if err != nil {
			return nil, err
		}
		return x, nil
	}
	return o
}

// expiry is when a day and all that is made of it goes; nil = never.
func (n *Night) expiry(day string) *time.Time {
	at := after(day, n.Config.Retention.Days)
	if at.IsZero() {
		return nil
	}
	return &at
}

// publish builds the day of the lake.
func (n *Night) publish(ctx context.Context, j *journal, s *ingest.DayState, epoch string) (did bool, err error) {
	o := n.publishOptions(s.Day)
	o.Backfill, o.Epoch = epoch != "", epoch
	return n.run(ctx, j, work{day: s.Day, step: StepPublish,
		inputs: digestOf(s.Inputs, o.K, o.MinRequests, o.MaxDuration, n.Tool, o.ExpiresAt),
		output: func() (string, error) { return n.folderDigest(ctx, lakeFolderOf(s.Day)) },
		do: func(r *StepReport) (any, error) {
			if err := n.Guard(ctx, "publish", func() error { return nil }); err != nil {
				return nil, err
			}
			if j.Good { // until all that is made of the new build is there: a run that is killed behind the publish goes on
				j.Good = false
				if err := n.replaceJournal(ctx, "reopen", j); err != nil {
					return nil, err
				}
			} else if o.Unnoted, err = n.unnoted(ctx, j, s.Day); err != nil {
				return nil, err
			}
			report, err := ingest.Publish(ctx, o)
			if err != nil {
				return nil, err
			}
			r.Rows, r.Bytes = report.Rows, report.File.Bytes
			return report, nil
		}})
}

// unnoted tells whether the live build of a day that is not good is that of a run which was killed before its journal had
// it.
func (n *Night) unnoted(ctx context.Context, j *journal, day string) (bool, error) {
	live, err := n.folderDigest(ctx, lakeFolderOf(day))
	if err != nil || live == "" {
		return false, err
	}
	noted := j.Steps[StepPublish]
	return noted == nil || noted.Output != live, nil
}

// PublishReport is what the last build of a day did; nil when the job has not built it.
func (n *Night) PublishReport(ctx context.Context, day string) (*ingest.PublishReport, error) {
	j, err := n.journal(ctx, day)
	if err != nil {
		return nil, err
	}
	report := &ingest.PublishReport{}
	if !j.result(StepPublish, report) {
		return nil, nil
	}
	return report, nil
}

// goodBefore is the newest good day before day that has a profile; "" = none.
func (n *Night) goodBefore(ctx context.Context, before string) (string, error) {
	list, err := n.Root.List(ctx, StateFolder)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", n.Root.Path(StateFolder), err)
	}
	var days []string
	for _, o := range list {
		var day string
		if _, err := fmt.Sscanf(path.Base(o.Key), "day=%10s.json", &day); err == nil && day < before {
			days = append(days, day)
		}
	}
	slices.Sort(days)
	for _, day := range slices.Backward(days) {
		j, err := n.journal(ctx, day)
		if err != nil {
			return "", err
		}
		if !j.Good {
			continue
		}
		whole, err := n.folderDigest(ctx, ProfileFolder(day))
		if err != nil || whole != "" {
			return day, err
		}
	}
	return "", nil
}
