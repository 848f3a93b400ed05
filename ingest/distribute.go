package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"tailgate/internal/fault"
)

// memberPoll is how often a member that is done looks whether the others are.
const memberPoll = time.Second

// member is one run among others that share the partitions of a topic. The group hands them out and may take them
// back at any moment: then the open segments are dropped, and whoever has a partition next goes on where its files
// end. Two members with the same partition are two writers of one log, as ever: one gives way.
type member struct {
	*runner
	src      distributor
	marks    map[int32]int64 // by partition, taken at the start
	finished map[int32]bool  // partitions that have come to their marks
	done     []PartitionReport
	counted  qualityCounter
}

// runMember runs as a member of the group until its partitions, and those of all others, have come to their marks.
func runMember(ctx context.Context, r *runner) (*Report, error) {
	src, ok := r.src.(distributor)
	if !ok {
		return nil, fault.Mark(errors.New("only the partitions of a Kafka topic can be distributed"), fault.Usage, "")
	}
	m := &member{runner: r, src: src, marks: map[int32]int64{}, finished: map[int32]bool{}}
	all, err := src.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		m.marks[p.ID] = p.End
	}
	place, err := src.join(r.opts.Group)
	if err != nil {
		return nil, err
	}
	defer place.leave()
	var errs []error
	for over := false; !over; {
		a, err := place.next(ctx)
		if err != nil {
			errs = append(errs, err)
			break
		}
		over, errs = m.serve(ctx, a)
		a.end()
	}
	report := newReport(r.opts.gateway(), m.done, r.meter.clocks.report(), r.notes)
	report.Quality = m.counted.report()
	errs = append(errs, tooBad(report, r.opts.MaxBad))
	return report, errors.Join(errs...)
}

// serve reads what an assignment gives; over is false when it was taken back.
func (m *member) serve(ctx context.Context, a *assignment) (over bool, errs []error) {
	m.runner.src = committing{Source: m.src, to: a}
	m.workers = nil
	m.meter.behind.Store(0)
	parts, err := m.parts(a.ctx, a)
	if err == nil {
		err = m.plan(a.ctx, parts)
	}
	if err == nil {
		err = m.setMarks(a.ctx)
	}
	if err == nil {
		errs = m.checkFormat(a.ctx)
		m.consume(a.ctx, &errs)
		m.keep(m.reports())
		for _, w := range m.workers {
			m.counted.merge(&w.quality)
		}
		err = errors.Join(errs...)
	}
	if err == nil {
		err = m.others(a)
	}
	if revoked(a.ctx) && ctx.Err() == nil && fault.Of(err) != fault.Data {
		return false, nil
	}
	return true, []error{err}
}

// revoked tells whether the group took an assignment back.
func revoked(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errRevoked) }

// parts are the partitions of an assignment, with the marks that were taken at the start.
func (m *member) parts(ctx context.Context, a *assignment) ([]Partition, error) {
	all, err := m.src.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p Partition) bool { return !a.partitions[p.ID] })
	for i := range all {
		all[i].End, _ = m.mark(&all[i])
	}
	return all, nil
}

// others waits until every partition has come to its mark, also those of members that may still fail: as long as
// one member is left, everything is read.
func (m *member) others(a *assignment) error {
	if m.opts.Follow { // a member without partitions: there is no mark to come to
		<-a.ctx.Done()
		return context.Cause(a.ctx)
	}
	for told := false; ; told = true {
		behind, err := m.unfinished(a.ctx)
		if err != nil || behind == 0 {
			return err
		}
		if !told {
			m.opts.Logger.Info("waiting for the other members", "partitions", behind)
		}
		select {
		case <-a.ctx.Done():
			return context.Cause(a.ctx)
		case <-time.After(memberPoll):
		}
	}
}

// unfinished counts the partitions that have not come to their marks.
func (m *member) unfinished(ctx context.Context) (n int, err error) {
	all, err := m.src.Partitions(ctx)
	if err != nil {
		return 0, err
	}
	var byTime map[int32]int64
	if src, ok := m.src.(timedSource); ok && !m.opts.Until.IsZero() {
		if byTime, err = src.OffsetsAt(ctx, m.opts.Until); err != nil {
			return 0, err
		}
	}
	for _, p := range all {
		if m.finished[p.ID] {
			continue
		}
		end, known := m.mark(&p)
		if at, ok := byTime[p.ID]; ok {
			end = min(end, at)
		}
		if !known {
			continue // it came after the start
		}
		next, err := m.nextOf(ctx, &p)
		if err != nil {
			return 0, err
		}
		if max(p.First, next) < end {
			n++
		} else if !m.opts.UntilEnd {
			m.finished[p.ID] = true
		}
	}
	return n, nil
}

// mark is where a partition ends for this run; known is false when it was not there at the start.
func (m *member) mark(p *Partition) (end int64, known bool) {
	if m.opts.UntilEnd {
		return p.End, true
	}
	mark, known := m.marks[p.ID]
	if !known {
		return p.End, false
	}
	return min(p.End, mark), true
}

// nextOf is how far the files of a partition go, whoever wrote them.
func (m *member) nextOf(ctx context.Context, p *Partition) (int64, error) {
	id := logID{topic: m.opts.topicToken(p.Topic), partition: p.ID}
	var err error
	if id.generation, _, err = currentGeneration(ctx, m.store, id.topic); err != nil {
		return 0, err
	}
	tip, err := readTip(ctx, m.store, id, false)
	return tip.next(), err
}

// keep adds the reports of an assignment to those of the earlier ones.
func (m *member) keep(reports []PartitionReport) {
	for _, r := range reports {
		i := slices.IndexFunc(m.done, func(d PartitionReport) bool {
			return d.Topic == r.Topic && d.Generation == r.Generation && d.Partition == r.Partition
		})
		if i < 0 {
			m.done = append(m.done, r)
			continue
		}
		d := &m.done[i]
		d.Next, d.Mark, d.Last = r.Next, r.Mark, max(d.Last, r.Last)
		d.Segments, d.Conflicts = d.Segments+r.Segments, d.Conflicts+r.Conflicts
		d.add(r.Counts)
		for _, h := range r.HoleRanges {
			d.HoleRanges = addRange(d.HoleRanges, h)
		}
	}
}

// committing tells the group positions as one of its members, which is all that a group with members takes.
type committing struct {
	Source
	to *assignment
}

func (c committing) Commit(_ context.Context, _ string, p Partition, next int64) error {
	return c.to.commit(p, next)
}

// OffsetsAt implements timedSource.
func (c committing) OffsetsAt(ctx context.Context, t time.Time) (map[int32]int64, error) {
	src, ok := c.Source.(timedSource)
	if !ok {
		return nil, fault.Mark(errors.New("only a Kafka topic can be read until a time"), fault.Usage, "")
	}
	return src.OffsetsAt(ctx, t)
}
