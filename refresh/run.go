package refresh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/promfile"
)

// clockSlack is how far the clock may lie behind the end of the last run: servers of time correct such steps.
const clockSlack = 5 * time.Minute

// Run does the night's work for a day, or builds days again, and returns what it did. It writes status.json and the
// page also when a step fails; the status is null only when nothing was begun.
//
// A day is over before it is refreshed. Earlier days that a night has missed, and, unless the file says otherwise, days
// with late rows are built before it. Errors keep the marks of the stages: fault.Data for a gap or broken files,
// fault.Key for keys; fault.Usage for options and days that are not over; else a plain failure.
func Run(ctx context.Context, o Options) (*Status, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	last := o.Day
	if o.To != "" {
		last = o.To
	}
	began := o.Now().UTC()
	if err := overBy(last, began); err != nil {
		return nil, err
	}
	n := &Night{Config: o.Config, Root: o.Root, Keys: o.Keys, Day: o.Day, Tool: o.Tool, Now: o.Now, Log: o.Logger, o: &o, crash: o.Crash}
	n.Status = &Status{Schema: StatusSchema, Tool: o.Tool, Day: last, StartedAt: began, Days: []DayStatus{}, Keys: []KeyStatus{},
		Steps: []StepReport{}, Notes: []string{}}
	if err := n.previous(ctx, began); err != nil {
		return nil, err
	}
	var err error
	if n.lease, err = acquire(ctx, o.Root, o.Config.Lease, o.Now, o.Logger); err != nil {
		return nil, err
	}
	defer n.lease.release(context.WithoutCancel(ctx))
	n.Root = o.Root.under(n.lease)
	if o.Bucket != nil {
		o.Bucket = o.Bucket.Fenced(n.lease.check)
	}
	n.Status.Token = n.lease.mine.Token
	n.Log = n.Log.With("token", n.Status.Token)
	did, err := n.all(ctx)
	n.finish(did, err)
	if errors.Is(err, errLost) { // the other run tells how it went
		return n.Status, err
	}
	return n.Status, errors.Join(err, n.writeStatus(context.WithoutCancel(ctx)))
}

// overBy refuses a day that is not over.
func overBy(day string, now time.Time) error {
	end, err := endOfDay(day)
	if err != nil {
		return fault.Mark(fmt.Errorf("day must be YYYY-MM-DD, not %q", day), fault.Usage, "")
	}
	if now.Before(end) {
		return fault.Mark(fmt.Errorf("refreshing %s: the day ends at %s, the clock says %s", day, end.Format(time.RFC3339), now.Format(time.RFC3339)),
			fault.Usage, "name a day that is over; if it is, the clock is wrong")
	}
	return nil
}

// previous takes over what the last status knows. A clock that went back would end keys and days at the wrong time.
func (n *Night) previous(ctx context.Context, now time.Time) error {
	data, err := n.Root.Read(ctx, StatusFile)
	if err != nil || data == nil {
		return err
	}
	last, err := ParseStatus(data)
	if err != nil {
		n.note("%s: %v: it is written anew", n.Root.Path(StatusFile), err)
		return nil
	}
	if last.EndedAt.After(now.Add(clockSlack)) {
		return fault.Mark(fmt.Errorf("starting a refresh: the clock went back: it says %s, the last run ended at %s", now.Format(time.RFC3339),
			last.EndedAt.Format(time.RFC3339)), fault.Failure, "set the clock right; nothing was changed")
	}
	n.Status.LastGoodDay, n.Status.LastGoodAt = last.LastGoodDay, last.LastGoodAt
	n.Status.Keys = append(n.Status.Keys, last.Keys...)
	n.Status.Headroom, n.Status.Privacy = last.Headroom, last.Privacy
	return nil
}

// all does all the work, and tells whether anything was new.
func (n *Night) all(ctx context.Context) (did bool, err error) {
	if err := n.sweep(ctx); err != nil {
		return false, err
	}
	if n.hash, err = newHashers(ctx, n); err != nil {
		return false, err
	}
	defer func() { n.hash.close() }()
	if n.o.Backfill {
		did, err = n.backfill(ctx)
	} else {
		did, err = n.night(ctx)
	}
	if err != nil {
		return did, err
	}
	return did, n.closing(ctx)
}

// sweep removes what killed runs left in the work folder.
func (n *Night) sweep(ctx context.Context) error {
	if _, ok := n.Root.Folder(); !ok {
		return nil
	}
	return n.Guard(ctx, "sweep", func() error {
		if err := os.RemoveAll(n.Root.Path(workFolder)); err != nil {
			return fmt.Errorf("removing what a killed run left: %w", err)
		}
		return nil
	})
}

// night reads the log and builds what is to be built.
func (n *Night) night(ctx context.Context) (did bool, err error) {
	if did, err = n.ingest(ctx); err != nil {
		return did, err
	}
	if err := n.measure(ctx); err != nil {
		return did, err
	}
	days, err := n.daysToBuild(ctx)
	if err != nil {
		return did, err
	}
	for _, day := range days {
		built, err := n.build(ctx, day, "")
		did = did || built
		if err != nil {
			return did, err
		}
	}
	return did, nil
}

// build does the steps of one day behind the ingest; epoch is that of a second reading, "" = there is none.
func (n *Night) build(ctx context.Context, day, epoch string) (did bool, err error) {
	states, err := n.lookFor(ctx, epoch, day)
	if err != nil {
		return false, err
	}
	s := &states[0]
	if s.Fault != nil {
		return false, s.Fault
	}
	if s.Rows == 0 {
		n.Status.Days = append(n.Status.Days, dayStatus(s))
		n.note("no request arrived on %s", day)
		return false, nil
	}
	j, err := n.journal(ctx, day)
	if err != nil {
		return false, err
	}
	steps := []func() (bool, error){
		func() (bool, error) { return n.publish(ctx, j, s, epoch) },
		func() (bool, error) { return n.profile(ctx, j, day) },
		func() (bool, error) { return n.drift(ctx, j, day) },
		func() (bool, error) { return n.traces(ctx, j, day) },
	}
	for _, step := range steps {
		one, err := step()
		did = did || one
		if err == nil {
			err = n.measure(ctx)
		}
		if err != nil {
			return did, err
		}
	}
	n.crash("before-good")
	if !j.Good || epoch != "" && !j.Again.Done {
		j.Good = true
		if epoch != "" {
			j.Again.Done, j.Again.Replaced = true, s.Refused
		}
		if err := n.writeJournal(ctx, j); err != nil {
			return did, err
		}
		did = true
	}
	return did, n.tellDay(ctx, day, j)
}

// tellDay puts the state of a built day into the status.
func (n *Night) tellDay(ctx context.Context, day string, j *journal) error {
	states, err := n.look(ctx, day)
	if err != nil {
		return err
	}
	d := dayStatus(&states[0])
	if report, err := n.PublishReport(ctx, day); err == nil && report != nil {
		d.Late = report.Late
		d.Rows = report.Rows
	}
	n.Status.Days = append(n.Status.Days, d)
	if day > n.Status.LastGoodDay {
		n.Status.LastGoodDay = day
	}
	if day == n.Status.LastGoodDay {
		n.Status.LastGoodAt = n.Now().UTC()
	}
	if day == n.Status.Day {
		n.Status.Drift = &DriftStatus{}
		if !j.result(StepDrift, n.Status.Drift) {
			n.Status.Drift = nil
		}
	}
	return nil
}

// finish says how the run went.
func (n *Night) finish(did bool, err error) {
	s := n.Status
	s.EndedAt = n.Now().UTC()
	i := slices.IndexFunc(s.Days, func(d DayStatus) bool { return d.Day == s.Day })
	switch {
	case err != nil:
		s.Outcome, s.Error, s.Hint = OutcomeFailed, err.Error(), fault.Hint(err)
	case !did || i < 0 || s.Days[i].Rows == 0:
		s.Outcome = OutcomeNoNewData
	case s.Drift != nil && len(s.Drift.Drifted) > 0:
		s.Outcome = OutcomeDrift
	case slices.ContainsFunc(s.Days, func(d DayStatus) bool { return d.Waiting > 0 || d.Refused > 0 || !d.Complete }):
		s.Outcome = OutcomeLate
	default:
		s.Outcome = OutcomeDone
	}
	s.Exit = exitOf(s.Outcome, err)
	n.Log.Info("refresh ended", "day", s.Day, "outcome", s.Outcome, "exit", s.Exit, "last_good_day", s.LastGoodDay)
}

// exitOf is the exit code of an outcome.
func exitOf(outcome string, err error) int {
	switch outcome {
	case OutcomeFailed:
		return map[fault.Kind]int{fault.Failure: 1, fault.Usage: 2, fault.Data: 6, fault.Key: 7}[fault.Of(err)]
	case OutcomeDrift:
		return 3
	case OutcomeNoNewData:
		return 8
	case OutcomeLate:
		return 9
	}
	return 0
}

// writeStatus writes the status of the root and of the day, the page and the metrics.
func (n *Night) writeStatus(ctx context.Context) error {
	n.crash("step-" + string(StepStatus))
	data, err := n.Status.encode()
	if err != nil {
		return err
	}
	page, err := n.Status.page()
	if err != nil {
		return err
	}
	gathered, err := Metrics(n.Status)
	if err != nil {
		return err
	}
	metrics, err := promfile.Text(gathered)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		key  string
		data []byte
	}{{path.Join(ReportFolder(n.Status.Day), statusName), data}, {StatusPage, page}, {MetricsFile, metrics}, {StatusFile, data}} {
		if err := n.Replace(ctx, f.key, f.data); err != nil {
			return err
		}
	}
	n.Config.Metrics.deliver(ctx, metrics, n.Log)
	return nil
}
