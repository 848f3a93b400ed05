package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"tailgate/internal/fault"
)

// ReprocessReport is what one run over the dead letters did.
type ReprocessReport struct {
	Letters     int64            `json:"letters"`     // open dead letters of the reasons asked for
	Resolved    int64            `json:"resolved"`    // of these, now rows or skips
	Dead        int64            `json:"dead"`        // still not readable
	Unreachable int64            `json:"unreachable"` // the source does not hold them any more, or was not given
	Rows        int64            `json:"rows"`
	Skips       map[string]int64 `json:"skips"`
	Files       int              `json:"files"`
}

// WriteText writes the report for people.
func (r *ReprocessReport) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d dead letters: %d resolved (%d rows), %d still dead, %d unreachable\n",
		r.Letters, r.Resolved, r.Rows, r.Dead, r.Unreachable)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	writeReasons(w, "skipped", r.Skips)
	return nil
}

// Reprocess fetches the dead letters of the given reasons (none = all) again from src and decodes them with o.
// What can be read now becomes rows beside the segment that it belongs to, in
// LAKE/_reprocessed/<topic>/g<generation>/p<partition>/; the segment itself is not touched. Each file names the
// letters that it resolves, and is published under a name that only one run can have, as segments are: a letter
// is resolved once, however often and by how many Reprocess runs.
//
// A message that gave no rows is taken whole, or, when a record of it cannot be read that the ledger does not
// have, not at all; of a message that gave some, only the records that were dead.
//
// Errors: fault.Usage for options; fault.Data for a broken lake; a plain failure of the source or the store.
// What was resolved before it stays.
func Reprocess(ctx context.Context, src Source, o Options, reasons []string) (*ReprocessReport, error) {
	errs := []error{o.Validate()}
	for _, r := range reasons {
		if !slices.Contains(DeadReasons(), r) {
			errs = append(errs, fault.Mark(fmt.Errorf("reason %q is not one of %v", r, DeadReasons()), fault.Usage, ""))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	parts, err := src.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	p := &reprocessor{src: src, store: o.lake(), opts: &o, reasons: reasons, parts: map[logID]Partition{},
		report: &ReprocessReport{Skips: map[string]int64{}}}
	for _, part := range parts {
		id := logID{topic: o.topicToken(part.Topic), partition: part.ID}
		p.parts[id] = part
	}
	logs, err := logsIn(ctx, p.store)
	if err != nil {
		return nil, err
	}
	for _, id := range logs {
		segments, err := recoverIn(ctx, p.store, id)
		if err != nil {
			return p.report, err
		}
		for i := range segments {
			if segments[i].facts.deadRecords() == 0 {
				continue
			}
			if err := p.segment(ctx, id, &segments[i]); err != nil {
				return p.report, err
			}
		}
	}
	return p.report, nil
}

// reprocessor is one run over the dead letters of a lake.
type reprocessor struct {
	src     Source
	store   store
	opts    *Options
	reasons []string
	parts   map[logID]Partition // by topic token and partition; generation 0
	report  *ReprocessReport
}

// segment reads the open letters of one segment again.
func (p *reprocessor) segment(ctx context.Context, id logID, s *segmentFile) error {
	letters, attempts, err := openLetters(ctx, p.store, id, &s.facts)
	if err != nil {
		return err
	}
	byOffset := map[int64][]DeadLetter{}
	for _, l := range letters {
		if len(p.reasons) == 0 || slices.Contains(p.reasons, l.Reason) {
			byOffset[l.Offset] = append(byOffset[l.Offset], l)
			p.report.Letters++
		}
	}
	if len(byOffset) == 0 {
		return nil
	}
	w, err := p.worker(ctx, id, s)
	if err != nil {
		return err
	}
	if w == nil {
		p.report.Unreachable += countLetters(byOffset)
		return nil
	}
	defer w.unwrap.close()
	taken, err := takenOffsets(ctx, p.store, id, s, attempts)
	if err != nil {
		return err
	}
	out := &resolution{facts: segmentFacts{First: s.facts.First, Last: -1, Next: s.facts.Next, Counts: newCounts(),
		Days: map[string]int64{}, Format: p.opts.gateway()}}
	log := logReader{w: w}
	defer log.batch.release()
	for _, offset := range slices.Sorted(maps.Keys(byOffset)) {
		record, err := log.at(ctx, offset)
		if err != nil {
			return err
		}
		if record == nil {
			p.report.Unreachable += int64(len(byOffset[offset]))
			continue
		}
		all := allOf(letters, offset)
		out.take(w, record, all, byOffset[offset], taken[offset])
	}
	return p.publish(ctx, id, out, attempts, countLetters(byOffset))
}

func countLetters(m map[int64][]DeadLetter) (n int64) {
	for _, l := range m {
		n += int64(len(l))
	}
	return n
}

// allOf returns the indexes of all open letters at an offset, also those of other reasons.
func allOf(letters []DeadLetter, offset int64) map[int32]bool {
	out := map[int32]bool{}
	for _, l := range letters {
		if l.Offset == offset {
			out[l.Index] = true
		}
	}
	return out
}

// worker returns a worker that can fetch and decode the segment's partition, nil when the source has another
// log now or none.
func (p *reprocessor) worker(ctx context.Context, id logID, s *segmentFile) (*worker, error) {
	part, ok := p.parts[logID{topic: id.topic, partition: id.partition}]
	newest, _, err := currentGeneration(ctx, p.store, id.topic)
	if err != nil || !ok || part.Transient || id.generation != newest {
		return nil, err
	}
	w := &worker{src: p.src, store: p.store, opts: p.opts, part: part, id: id, rows: newRowMaker(p.opts), decode: p.opts.decoder(), meter: &meter{},
		unwrap: unwrapper{codec: p.opts.ValueCodec, limit: p.opts.MaxRecordBytes}}
	if _, err := w.forget(ctx); err != nil {
		return nil, err
	}
	if len(part.Identity) > 0 && s.facts.Identity != "" && p.opts.Anonymizer.Token("topic", part.Identity) != s.facts.Identity {
		return nil, nil
	}
	return w, nil
}

// logReader reads records of a partition by their offsets, each once and in their order. What one fetch brought is kept
// for the next offsets.
type logReader struct {
	w     *worker
	from  int64
	batch Batch
}

// at returns the record at an offset, nil when the source does not hold it any more. It is valid until the next call.
func (l *logReader) at(ctx context.Context, offset int64) (*Record, error) {
	if offset < l.w.part.First || l.w.part.End >= 0 && offset >= l.w.part.End {
		return nil, nil
	}
	if offset < l.from || offset >= l.batch.Next {
		l.batch.release()
		l.w.pos = offset
		b, err := l.w.fetch(ctx)
		if errors.Is(err, ErrOutOfRange) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		l.from, l.batch = offset, b
	}
	i, ok := slices.BinarySearchFunc(l.batch.Records, offset, func(r Record, o int64) int { return cmp.Compare(r.Offset, o) })
	if !ok {
		return nil, nil
	}
	return &l.batch.Records[i], nil
}

// publish writes what was resolved of a segment.
func (p *reprocessor) publish(ctx context.Context, id logID, out *resolution, attempts int, letters int64) error {
	resolved := int64(len(out.facts.Resolved))
	if resolved > 0 {
		key := path.Join(id.folder(reprocessedFolder), reprocessedName(out.facts.First, out.facts.Next, attempts))
		if err := out.write(ctx, p.store, key, p.opts.Footer); err != nil {
			return err
		}
		p.report.Files++
	}
	p.report.Resolved += resolved
	p.report.Rows += out.facts.Rows
	p.report.Dead += out.dead
	for reason, n := range out.facts.Skips {
		p.report.Skips[reason] += n
	}
	return nil
}
