package ingest

import (
	"context"
	"errors"
	"time"
)

// worker brings one partition from its position to its mark.
type worker struct {
	src    Source
	store  store
	opts   *Options
	part   Partition
	id     logID
	rows   *rowMaker
	unwrap unwrapper
	decode decoder
	join   *joiner // nil where a record is never spread over several
	meter  *meter

	identity string    // token of the partition's identity
	logFirst int64     // where the log begins, -1 when it has no segment yet
	before   logBefore // what lies before the open segment
	pos      int64
	told     int64    // position that the meter knows
	high     int64    // end of a followed log that the meter knows
	seg      *segment // nil between segments
	report   PartitionReport
	quality  qualityCounter // of the published segments
	printed  printed
	warned   bool // a commit failed

	forgotten forgotten
	again     bool // the open segment was dropped: read it again

	ahead *ahead // fetch under way beside the work; nil = none
	turns *turns
	turn  turn
	idle  time.Duration // how long a followed log that has nothing is left alone
}

// run consumes the partition up to its mark. What was good before an error is published all the same.
func (w *worker) run(ctx context.Context) error {
	defer w.unwrap.close()
	defer w.drop()
	for {
		err := w.consume(ctx)
		var crash *crashError
		if errors.As(err, &crash) {
			return err
		}
		if revoked(ctx) { // the partition is another member's now: the files say where it goes on
			w.drop()
			w.report.Next = w.pos
			w.tell()
			return errRevoked
		}
		conflicts := w.report.Conflicts
		w.again = false
		if flushErr := w.flush(ctx); err == nil {
			err = flushErr
		}
		w.report.Next = w.pos
		w.tell()
		if err != nil {
			return err
		}
		if w.report.Conflicts != conflicts || w.again {
			continue
		}
		more, err := w.more(ctx)
		if err != nil {
			return err
		}
		if !more {
			w.commit(ctx)
			return w.part.Err
		}
	}
}

func (w *worker) consume(ctx context.Context) error {
	defer w.giveUp()
	if w.part.First > w.pos { // allowed by Options.AllowGap
		if err := w.lose(w.part.First); err != nil {
			return err
		}
	}
	for w.part.End < 0 || w.pos < w.part.End {
		b, err := w.fetch(ctx)
		if errors.Is(err, ErrOutOfRange) {
			err = w.jump(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		w.begin(ctx, &b)
		err = w.take(ctx, b)
		w.idle = w.idleAfter(&b)
		b.release()
		w.leave()
		if err != nil {
			return err
		}
		if w.seg != nil && w.full() { // by age, where few records come
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
		w.follow(b.High)
		w.tell()
		if b.Done {
			return nil
		}
		w.pause(ctx, w.idle)
	}
	return nil
}

// follow notes how far the end of a log without a mark is.
func (w *worker) follow(high int64) {
	if w.opts.Follow && high > w.high {
		w.meter.behind.Add(high - max(w.high, 0))
		w.high = high
	}
}

// drop gives the open segment up: the position is where it began.
func (w *worker) drop() {
	w.join.drop()
	if w.seg != nil {
		w.seg.discard()
		w.pos, w.seg = w.seg.facts.First, nil
	}
}

// tell lets the meter know how far the position has come.
func (w *worker) tell() {
	w.meter.behind.Add(w.told - w.pos)
	w.told = w.pos
}

// lose counts the offsets before to as deleted by retention.
func (w *worker) lose(to int64) error {
	if err := w.open(); err != nil {
		return err
	}
	w.seg.facts.Lost += to - w.pos
	w.advance(to)
	return nil
}

// open makes sure that there is a segment.
func (w *worker) open() (err error) {
	if w.seg != nil {
		return nil
	}
	if err := w.opts.roomFor(w.store); err != nil {
		return err
	}
	w.seg, err = newSegment(w.store, w.id, w.opts.Footer, w.pos, &w.meter.memory, w.opts.now())
	return err
}

// advance moves the position over offsets without a message.
func (w *worker) advance(to int64) {
	if to > w.pos {
		w.seg.skipTo(to)
		w.pos = to
	}
}

// take consumes a batch, but nothing from the mark on: a later run begins there.
func (w *worker) take(ctx context.Context, b Batch) error {
	for i := range b.Records {
		r := &b.Records[i]
		if r.Offset < w.pos {
			continue // a broker returns whole batches, also their part before the offset asked for
		}
		if w.part.End >= 0 && r.Offset >= w.part.End {
			break
		}
		if err := w.open(); err != nil {
			return err
		}
		w.advance(r.Offset)
		if err := w.message(r); err != nil {
			w.drop() // it may hold some rows of this message
			return err
		}
		w.pos = r.Offset + 1
		w.seg.facts.Next = w.pos
		w.seg.facts.High = max(w.seg.facts.High, b.High)
		w.seg.weigh()
		w.meter.records.Add(1)
		if r.Mark != markBomb { // nobody knows how large it is
			w.meter.bytes.Add(r.Size)
		}
		if w.full() {
			if err := w.flush(ctx); err != nil || w.pos != r.Offset+1 {
				return err // after a lost race the position is another one: fetch from there
			}
		}
	}
	to := b.Next
	if w.part.End >= 0 {
		to = min(to, w.part.End)
	}
	if to > w.pos {
		if err := w.open(); err != nil {
			return err
		}
		w.advance(to)
	}
	return nil
}

// full tells whether the open segment is to be published. A clock that went back says nothing about its age:
// then it counts as old.
func (w *worker) full() bool {
	s, o := w.seg, w.opts
	age := o.now().Sub(s.opened)
	return s.facts.Rows+int64(len(s.dead)) >= o.RotateRows || s.bytes >= o.RotateBytes ||
		age >= o.RotateAge || age < 0 || w.meter.memory.spent(s.held)
}
