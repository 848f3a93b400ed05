package refresh

import (
	"context"
	"fmt"
	"path"
	"time"

	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/schemas"
)

// lakeFolderOf is the folder of a published day.
func lakeFolderOf(day string) string { return path.Join(LakeFolder, "day="+day) }

// liveManifest reads the manifest of a published day; nil when there is none.
func (n *Night) liveManifest(ctx context.Context, day string) (*schemas.Manifest, error) {
	key := path.Join(lakeFolderOf(day), schemas.ManifestName)
	data, err := n.Root.Read(ctx, key)
	if err != nil || data == nil {
		return nil, err
	}
	m, err := schemas.ParseManifest(n.Root.Path(key), data)
	return m, fault.Mark(err, fault.Data, "move that file away: the day is then published anew from its segments")
}

// mark is when a day's log ends.
func (n *Night) mark(day string) (time.Time, error) {
	end, err := endOfDay(day)
	return end.Add(n.Config.Lateness), err
}

// timed is a source that finds records by the time at which the log took them.
type timed interface {
	OffsetsAt(ctx context.Context, t time.Time) (map[int32]int64, error)
}

// ingest brings the lake to the mark of the run's day. It tells whether there was anything new.
func (n *Night) ingest(ctx context.Context) (did bool, err error) {
	n.crash("step-" + string(StepIngest))
	n.o.Progress(StepIngest, n.Day)
	mark, err := n.mark(n.Day)
	if err != nil {
		return false, err
	}
	o := n.ingestOptions()
	o.Anonymizer, o.ByDay, o.Footer = n.hash.base, n.hash.day, footer(n.hash.base, n.Tool)
	return n.read(ctx, n.Day, o, mark)
}

// ingestOptions are those of the file for the lake of this root.
func (n *Night) ingestOptions() ingest.Options {
	o := n.o.Ingest
	o.Lake, o.Bucket = n.Root.Path(LakeFolder), n.o.Bucket
	o.Logger, o.OnProgress = n.Log, n.o.Working
	return o
}

// read runs one ingest up to a time, or to the end of a source that has no times.
func (n *Night) read(ctx context.Context, day string, o ingest.Options, until time.Time) (did bool, err error) {
	r := StepReport{Step: StepIngest, Day: day, State: StepFailed}
	defer func() {
		if err != nil {
			r.Reason = err.Error()
		}
		n.Status.Steps = append(n.Status.Steps, r)
	}()
	began, cpu := time.Now(), cpuSeconds()
	if err := n.Guard(ctx, "ingest", func() error { return nil }); err != nil { // a run that lost its lease reads nothing
		return false, err
	}
	before, err := n.segmentBytes(ctx)
	if err != nil {
		return false, err
	}
	src, err := n.o.Open(ctx)
	if err != nil {
		return false, err
	}
	if _, ok := src.(timed); ok && !until.After(n.Now()) {
		o.Until, o.Proof = until, true
	}
	report, err := ingest.Run(ctx, src, o)
	if c, ok := src.(interface{ Close() }); ok {
		c.Close()
	}
	if report != nil {
		n.Status.Ingest = ingestStatus(report)
		n.Status.Notes = append(n.Status.Notes, report.Notes...)
		r.Rows = report.Total.Rows
	}
	r.Seconds, r.CPUSeconds = time.Since(began).Seconds(), cpuSeconds()-cpu
	if err != nil {
		return false, err
	}
	after, err := n.segmentBytes(ctx)
	if err != nil {
		return false, err
	}
	r.State, r.Bytes = StepDone, after-before
	if report.Segments == 0 {
		r.State, r.Reason = StepSkipped, "nothing new in the log"
	}
	n.Log.Info("log read", "day", day, "records", n.Status.Ingest.Records, "rows", r.Rows, "segments", report.Segments)
	return report.Segments > 0, nil
}

// segmentBytes is what the lake's segments take.
func (n *Night) segmentBytes(ctx context.Context) (sum int64, err error) {
	list, err := n.Root.List(ctx, path.Join(LakeFolder, "_segments"))
	if err != nil {
		return 0, fmt.Errorf("listing the segments: %w", err)
	}
	for _, o := range list {
		sum += o.Size
	}
	return sum, nil
}

func ingestStatus(r *ingest.Report) *IngestStatus {
	t := &r.Total
	s := &IngestStatus{Rows: t.Rows, Skipped: t.Skips, Dead: t.Dead, Segments: r.Segments, Lost: t.Lost,
		Records: t.Messages + t.SkippedMessages + t.DeadMessages + t.Holes, Partitions: []PartitionStatus{}}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		waiting := int64(-1)
		if p.Mark >= 0 {
			waiting = p.Mark - p.Next
		}
		s.Partitions = append(s.Partitions, PartitionStatus{Topic: p.Topic, Partition: p.Partition, Next: p.Next, Waiting: waiting})
	}
	return s
}

// look tells what the lake holds of some days.
func (n *Night) look(ctx context.Context, days ...string) ([]ingest.DayState, error) {
	return n.lookFor(ctx, "", days...)
}

// lookFor tells what a build would take: of the day's epoch, or of the one that is named. Rows that a second reading has
// replaced are not counted as refused.
func (n *Night) lookFor(ctx context.Context, epoch string, days ...string) ([]ingest.DayState, error) {
	o := n.publishOptions("")
	o.Backfill, o.Epoch = epoch != "", epoch
	states, err := ingest.LookAt(ctx, o, days)
	if err != nil && fault.Of(err) == fault.Data && fault.Hint(err) == "" {
		err = fault.Mark(err, fault.Data, "if it is a manifest, move it away: the day is then published anew from its segments")
	}
	if err != nil {
		return nil, err
	}
	for i := range states {
		s := &states[i]
		if s.Refused == 0 {
			continue
		}
		j, err := n.journal(ctx, s.Day)
		if err != nil {
			return nil, err
		}
		if j.Again != nil && j.Again.Done {
			s.Refused = max(0, s.Refused-j.Again.Replaced)
		}
	}
	return states, nil
}

// daysToBuild are the run's day and earlier ones that have to be built before it: days that a night has missed, and
// days with late rows.
func (n *Night) daysToBuild(ctx context.Context) ([]string, error) {
	all, err := n.lakeDays(ctx)
	if err != nil {
		return nil, err
	}
	after := n.Status.LastGoodDay
	var earlier []string
	for _, d := range all {
		if d < n.Day && after != "" {
			earlier = append(earlier, d)
		}
	}
	states, err := n.look(ctx, earlier...)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range states {
		s := &states[i]
		switch {
		case s.Fault != nil:
			n.Status.Days = append(n.Status.Days, dayStatus(s))
			n.note("%s has rows that no build takes: %v", s.Day, s.Fault)
		case s.Live == nil && s.Day > after && s.Rows > 0: // a night was missed
			out = append(out, s.Day)
		case s.Live != nil && s.Waiting > 0 && n.Config.Late == LateRebuild:
			out = append(out, s.Day)
		case s.Live != nil && s.Waiting > 0, s.Refused > 0:
			n.Status.Days = append(n.Status.Days, dayStatus(s))
		case s.Live != nil:
			j, err := n.journal(ctx, s.Day)
			if err != nil {
				return nil, err
			}
			if !j.Good { // a run was killed within it
				out = append(out, s.Day)
			}
		}
	}
	return append(out, n.Day), nil
}

// lakeDays lists the days on which requests of the lake's segments arrived.
func (n *Night) lakeDays(ctx context.Context) ([]string, error) {
	if n.o.Bucket != nil {
		return ingest.DaysIn(ctx, n.o.Bucket)
	}
	return ingest.Days(n.Root.Path(LakeFolder))
}

func dayStatus(s *ingest.DayState) DayStatus {
	d := DayStatus{Day: s.Day, Epoch: s.Epoch, Rows: s.Rows, Complete: s.IsComplete, Refused: s.Refused, Waiting: s.Waiting, OpenUntil: s.OpenUntil}
	if s.IsComplete {
		d.OpenUntil = ""
	}
	return d
}
