package ingest

import (
	"bytes"
	"errors"
)

// message brings one message to its end: rows, skips or dead letters. Its text is cleared before it returns.
func (w *worker) message(r *Record) error {
	defer clear(r.Value)
	facts := &w.seg.facts
	rows, dead := facts.Rows, len(w.seg.dead)
	from := &origin{offset: r.Offset, time: r.Time, open: true}
	switch {
	case r.Mark == markControl:
		facts.Skips[SkipControl]++
	case r.Mark == markAborted:
		facts.Skips[SkipAborted]++
	case r.Mark == markBomb:
		w.bury(r, 0, DeadBomb, nil)
		from.dead = true
	case r.Mark == markBroken:
		w.bury(r, 0, DeadBatch, nil)
		from.dead = true
	case r.Mark == markTooBig || r.Size > w.opts.MaxRecordBytes:
		w.bury(r, 0, DeadTooBig, nil)
		from.dead = true
	case r.Value == nil:
		facts.Skips[SkipTombstone]++
	case len(bytes.TrimSpace(r.Value)) == 0:
		facts.Skips[SkipEmpty]++
	default:
		if err := w.records(r, from); err != nil {
			return err
		}
	}
	from.count(facts)
	if !r.Time.IsZero() {
		facts.LoggedUs = max(facts.LoggedUs, r.Time.UnixMicro())
	}
	if r.Mark != markControl {
		facts.Last, facts.LastAt = r.Offset, 0
		if !r.Time.IsZero() {
			facts.LastAt = r.Time.UnixMilli()
		}
	}
	w.meter.rows.Add(facts.Rows - rows)
	w.meter.dead.Add(int64(len(w.seg.dead) - dead))
	return nil
}

// keptText is the size of a text after which a decoder is not kept: it may hold as much memory, for each partition.
const keptText = 4 << 20

// records decodes a message and makes the rows of its records.
func (w *worker) records(r *Record, from *origin) error {
	text, dead := w.opened(r.Value)
	defer w.unwrap.forget()
	if dead != "" {
		w.bury(r, 0, dead, r.Value)
		from.dead = true
		return nil
	}
	if len(bytes.TrimSpace(text)) == 0 {
		w.seg.facts.Skips[SkipEmpty]++
		return nil
	}
	defer w.decode(nil) // it forgets what it kept of the message
	items := w.decode(text)
	defer func() {
		for i := range items {
			if items[i].rec != nil {
				items[i].rec.clear()
			}
		}
		if len(text) > keptText {
			w.decode = w.opts.decoder() // and the room that the old one took goes
		}
	}()
	for i := range items {
		var err error
		if items[i].piece != nil && w.join != nil {
			err = w.hold(r, from, int32(i), &items[i])
		} else {
			rows, dead := w.seg.facts.Rows, len(w.seg.dead)
			err = w.record(r, int32(i), &items[i])
			from.rows, from.dead = from.rows || w.seg.facts.Rows > rows, from.dead || len(w.seg.dead) > dead
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) record(r *Record, index int32, it *item) error {
	switch {
	case it.skip != "":
		w.seg.facts.Skips[it.skip]++
		return nil
	case it.dead != "":
		w.bury(r, index, it.dead, it.raw)
		return nil
	case w.opts.Exclude.has(it.rec):
		w.seg.facts.Skips[SkipExcluded]++
		return nil
	case w.forgotten.hasRecord(w.opts.Anonymizer, it.rec):
		w.seg.facts.Skips[SkipForgotten]++
		return nil
	case !plausibleTime(it.rec.arrived, r.Time):
		w.bury(r, index, DeadBadTime, it.raw)
		return nil
	}
	if day := w.opts.OnlyDay; day != "" && dayOf(it.rec.arrived) != day {
		w.seg.facts.Skips[SkipOtherDay]++
		return nil
	}
	row, err := w.rows.row(it.rec, place{
		topic: w.id.topic, generation: w.id.generation, partition: w.id.partition, offset: r.Offset, index: index,
	})
	if errors.Is(err, errDayKeys) {
		return err
	}
	if err != nil {
		w.bury(r, index, rowReason(err), it.raw)
		return nil
	}
	if it.rec.duration != nil && it.rec.quality == "" && it.rec.resolutionUs <= 1000 {
		clock := ""
		if row.ClockID != nil {
			clock = *row.ClockID
		}
		w.meter.clocks.add(clock, it.rec.arrived.Add(*it.rec.duration), r.Time)
	}
	w.seg.facts.noteEpoch(w.rows.day, w.rows.epoch)
	return w.seg.addRow(row)
}

// rowReason is the reason of a dead letter whose row could not be made.
func rowReason(err error) string {
	if errors.Is(err, errFault) {
		return DeadFault
	}
	return DeadHash
}

// opened takes compression and frames off a value; a panic of a decompressor is a dead letter.
func (w *worker) opened(value []byte) (text []byte, dead string) {
	var err error
	defer func() {
		if err != nil {
			text, dead = nil, DeadFault
		}
	}()
	defer guard(w.opts.Logger, &err)
	return w.unwrap.open(value)
}

// bury writes a dead letter: a pointer and a keyed fingerprint, never the record.
func (w *worker) bury(r *Record, index int32, reason string, raw []byte) {
	size := r.Size
	fingerprint := ""
	if raw != nil {
		size = int64(len(raw))
		fingerprint = w.fingerprint(raw)
	}
	w.seg.facts.Dead[reason]++
	w.seg.dead = append(w.seg.dead, DeadLetter{
		Topic: w.id.topic, Generation: int32(w.id.generation), Partition: w.id.partition, Offset: r.Offset,
		Index: index, Reason: reason, Gateway: w.opts.gateway(), SizeBytesLog2: sizeBucket(size), Fingerprint: fingerprint,
	})
}

// fingerprint keys the bytes of a record. Many records of one message may share their bytes (the spans of an
// export): those are hashed once.
func (w *worker) fingerprint(raw []byte) string {
	if len(raw) == 0 {
		return w.opts.Anonymizer.Token("record", nil)
	}
	if p := &w.printed; p.at != &raw[0] || p.size != len(raw) || p.seen != w.pos {
		*p = printed{at: &raw[0], size: len(raw), seen: w.pos, token: w.opts.Anonymizer.Token("record", raw)}
	}
	return w.printed.token
}

// printed is the last fingerprint and what it was of.
type printed struct {
	at    *byte
	size  int
	seen  int64
	token string
}
