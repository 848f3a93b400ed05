package ingest

import (
	"context"
	"errors"
	"fmt"

	"tailgate/internal/fault"
)

// plan finds out where each partition goes on. It writes no data, and reports the faults of all partitions.
func (r *runner) plan(ctx context.Context, parts []Partition) error {
	byTopic := map[string][]Partition{}
	var topics []string
	for _, p := range parts {
		if byTopic[p.Topic] == nil {
			topics = append(topics, p.Topic)
		}
		byTopic[p.Topic] = append(byTopic[p.Topic], p)
	}
	var errs []error
	for _, topic := range topics {
		workers, err := r.planTopic(ctx, byTopic[topic])
		if err != nil {
			errs = append(errs, err)
		}
		r.workers = append(r.workers, workers...)
	}
	return errors.Join(errs...)
}

// planTopic plans the partitions of one topic, which share their generation.
func (r *runner) planTopic(ctx context.Context, parts []Partition) ([]*worker, error) {
	token := r.opts.topicToken(parts[0].Topic)
	if !topicPattern.MatchString(token) {
		return nil, errors.New("naming a topic: the anonymizer's token is not one letter, _ and 13 lower-case base32 characters")
	}
	generation, known, err := currentGeneration(ctx, r.store, token)
	if err != nil {
		return nil, err
	}
	if parts[0].Transient {
		generation, err = claimGeneration(ctx, r.store, token, generation, known)
		if err != nil {
			return nil, err
		}
	}
	workers, err := r.planGeneration(ctx, parts, logID{topic: token, generation: generation})
	var reset *resetFault
	if errors.As(err, &reset) && r.opts.AcceptReset {
		r.note(parts[0], token, fmt.Sprintf("it was recreated: generation %d begins", generation+1))
		return r.planGeneration(ctx, parts, logID{topic: token, generation: generation + 1})
	}
	return workers, err
}

func (r *runner) planGeneration(ctx context.Context, parts []Partition, id logID) ([]*worker, error) {
	var errs []error
	workers := make([]*worker, 0, len(parts))
	for _, p := range parts {
		id.partition = p.ID
		w, err := r.planPartition(ctx, p, id)
		errs = append(errs, err)
		workers = append(workers, w)
	}
	return workers, errors.Join(errs...)
}

// note keeps something to tell about a partition: under its token in the report, which may be stored, and
// under its name in the log.
func (r *runner) note(p Partition, token, what string) {
	r.notes = append(r.notes, fmt.Sprintf("%s partition %d: %s", token, p.ID, what))
	r.opts.Logger.Warn(what, "partition", p.name())
}

// planPartition takes the position from the segment files and holds it against what the source has.
func (r *runner) planPartition(ctx context.Context, p Partition, id logID) (*worker, error) {
	tip, err := readTip(ctx, r.store, id, r.opts.Deep)
	if err != nil {
		return nil, err
	}
	decode, join := r.opts.workerDecoder()
	w := &worker{
		src: r.src, store: r.store, opts: r.opts, part: p, id: id, rows: newRowMaker(r.opts), decode: decode, join: join,
		meter: &r.meter, pos: p.First, logFirst: -1,
		unwrap: unwrapper{codec: r.opts.ValueCodec, limit: r.opts.MaxRecordBytes},
	}
	if _, err := w.forget(ctx); err != nil {
		return nil, err
	}
	if p.Note != "" {
		r.note(p, id.topic, p.Note)
	}
	if len(p.Identity) > 0 {
		w.identity = r.opts.Anonymizer.Token("topic", p.Identity)
	}
	if tip.last == nil && !r.opts.From.IsZero() {
		if w.pos, err = r.startAt(ctx, p); err != nil {
			return nil, err
		}
	}
	if last := tip.last; last != nil {
		w.pos, w.logFirst, w.before = last.Next, tip.first, tip.before
		if p.End >= 0 && p.End < last.Next || w.identity != last.Identity && last.Identity != "" {
			return nil, resetError(p, last.Next)
		}
		if err := w.knownAgain(ctx, last); err != nil {
			return nil, err
		}
		if p.First > last.Next {
			if !r.opts.AllowGap {
				return nil, gapError(p, last.Next)
			}
			r.note(p, id.topic, fmt.Sprintf("offsets %d to %d are lost", last.Next, p.First-1))
		}
	}
	w.told = w.pos
	w.report = PartitionReport{
		Topic: id.topic, Partition: p.ID, Generation: id.generation, First: w.pos, Last: -1, Next: w.pos, Mark: p.End,
		Counts: newCounts(),
	}
	return w, nil
}

// gapError says that retention deleted offsets that were not read yet.
func gapError(p Partition, next int64) error {
	return fault.Mark(
		fmt.Errorf("reading %s: offsets %d to %d were deleted by retention before they were read", p.name(), next, p.First-1),
		fault.Data, "--allow-gap goes on behind the gap and counts what is lost")
}

// resetFault marks a topic or file that is not the one that was read before.
type resetFault struct{ msg string }

func (e *resetFault) Error() string { return e.msg }

const resetHint = "--accept-reset reads it anew, beside what was read before"

func resetError(p Partition, next int64) error {
	msg := fmt.Sprintf("reading %s: it was recreated or cut: %d offsets were read, now it ends at %d", p.name(), next, p.End)
	if p.Identity != nil && p.End >= next {
		msg = fmt.Sprintf("reading %s: it was replaced: its first record is not the one read before", p.name())
	}
	return fault.Mark(&resetFault{msg: msg}, fault.Data, resetHint)
}

// sampled is how many records of a new partition are looked at before the first is consumed.
const sampled = 200

// checkFormat looks at the first records of topics that the lake has never seen and drops those in which
// nothing is of the declared format: consuming them would only fill the ledger. It returns their errors.
func (r *runner) checkFormat(ctx context.Context) []error {
	type look struct {
		name      string
		fresh, ok bool
		dead      map[string]int64
	}
	topics := map[string]*look{}
	var errs []error
	for _, w := range r.workers {
		t := topics[w.id.topic]
		if t == nil {
			t = &look{name: w.part.Topic, fresh: true, dead: map[string]int64{}}
			topics[w.id.topic] = t
		}
		t.fresh = t.fresh && w.logFirst < 0 && !w.part.Transient
	}
	for _, w := range r.workers {
		if t := topics[w.id.topic]; t.fresh && !t.ok {
			t.ok = w.sample(ctx, t.dead)
		}
	}
	kept := r.workers[:0]
	for _, w := range r.workers {
		t := topics[w.id.topic]
		if !t.fresh || t.ok || len(t.dead) == 0 {
			kept = append(kept, w)
			continue
		}
		if t.name != "" {
			errs = append(errs, fault.Mark(fmt.Errorf("reading %s: none of its first %d records is of format %s (%s)",
				t.name, sum(t.dead), r.opts.gateway(), reasonsText(t.dead)), fault.Failure, "is --format right?"))
			t.name = "" // once per topic
		}
	}
	r.workers = kept
	return errs
}

// sample decodes the first records of the partition and tells whether one of them is of the format; the
// reasons of the others are added to dead. What cannot be read now is left for the run to report.
func (w *worker) sample(ctx context.Context, dead map[string]int64) bool {
	if w.part.End == w.pos {
		return false
	}
	b, err := w.src.Fetch(ctx, w.part, w.pos)
	if err != nil {
		return false
	}
	defer func() {
		w.decode(nil)
		w.unwrap.forget()
		b.release()
	}()
	for i := range b.Records[:min(len(b.Records), sampled)] {
		r := &b.Records[i]
		if r.Mark != "" || len(r.Value) == 0 {
			continue
		}
		text, reason := w.opened(r.Value)
		if reason != "" {
			dead[reason]++
			continue
		}
		for _, it := range w.decode(text) {
			if it.dead == "" && it.skip != SkipEmpty {
				return true
			}
			if it.dead != "" {
				dead[it.dead]++
			}
		}
	}
	return false
}
