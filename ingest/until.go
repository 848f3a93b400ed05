package ingest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"tailgate/internal/fault"
)

// timedSource finds offsets by the time at which the log took the records.
type timedSource interface {
	// OffsetsAt returns, by partition, the first offset at or after t; partitions without one are missing.
	OffsetsAt(ctx context.Context, t time.Time) (map[int32]int64, error)
}

// setMarks moves the marks from where the log ends to where the run is to end.
func (r *runner) setMarks(ctx context.Context) error {
	o := r.opts
	switch {
	case o.Follow:
		if _, ok := r.src.(*Files); ok {
			return fault.Mark(errors.New("only a Kafka topic can be followed"), fault.Usage, "")
		}
		for _, w := range r.workers {
			w.part.End = -1
			w.report.Mark = -1
		}
	case !o.Until.IsZero():
		src, ok := r.src.(timedSource)
		if !ok {
			return fault.Mark(errors.New("only a Kafka topic can be read until a time"), fault.Usage, "")
		}
		at, err := src.OffsetsAt(ctx, o.Until)
		if err != nil {
			return err
		}
		for _, w := range r.workers {
			if mark, ok := at[w.part.ID]; ok {
				if o.Proof {
					mark++
				}
				w.part.End = max(w.pos, min(w.part.End, mark))
				w.report.Mark = w.part.End
			}
		}
	}
	return nil
}

// more looks for records that came while the run was under way, and moves the mark behind them.
func (w *worker) more(ctx context.Context) (bool, error) {
	if !w.opts.UntilEnd || w.part.End < 0 || w.part.Err != nil {
		return false, nil
	}
	now, there, err := w.partitionNow(ctx)
	if err != nil || !there || now.End <= w.pos {
		return false, err
	}
	w.meter.behind.Add(now.End - w.part.End)
	w.part.End, w.part.Err = now.End, now.Err
	w.report.Mark = w.part.End
	return true, nil
}

// partitionNow lists the worker's partition again; there is false when it is gone. Of files no other one is read for
// it.
func (w *worker) partitionNow(ctx context.Context) (p Partition, there bool, err error) {
	if files, ok := w.src.(*Files); ok {
		p, err = files.partition(ctx, w.part.Topic)
		return p, true, err
	}
	all, err := w.src.Partitions(ctx)
	if err != nil {
		return p, false, err
	}
	i := slices.IndexFunc(all, func(p Partition) bool { return p.Topic == w.part.Topic && p.ID == w.part.ID })
	if i < 0 {
		return p, false, nil
	}
	return all[i], true, nil
}

// ownPartitions are those of worker i of n.
func ownPartitions(parts []Partition, i, n int) []Partition {
	if n <= 1 {
		return parts
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p Partition) bool {
		h := fnv.New32a()
		h.Write([]byte(p.Topic))
		return (int64(h.Sum32())+int64(p.ID))%int64(n) != int64(i)
	})
}

// CheckLimits reports the faults of the limits of a run: sizes, codec, where it ends, and which part of it is
// ours. [Options.Validate] includes it.
func (o *Options) CheckLimits() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.RotateRows < 0 || o.RotateBytes < 0 || o.RotateAge < 0 || o.Stall < 0 || o.Memory < 0 {
		add("rotation, memory and stall limits must not be negative")
	}
	errs = append(errs, checkCodec(o.ValueCodec))
	if o.MaxRecordBytes < 0 || o.MaxRecordBytes > maxRecordBytes {
		add("max-record-bytes must lie in (0, 32 MiB], not %d", o.MaxRecordBytes)
	}
	ends := 0
	for _, set := range []bool{o.UntilEnd, o.Follow, !o.Until.IsZero()} {
		if set {
			ends++
		}
	}
	if ends > 1 {
		add("until and follow exclude each other")
	}
	if o.Distribute && o.Group == "" {
		add("distributing partitions needs a group")
	}
	if o.Distribute && o.Workers > 0 {
		add("worker and distribute exclude each other: a fixed part of the partitions, or those that the group gives")
	}
	if o.Workers < 0 || o.Worker < 0 || o.Worker >= max(1, o.Workers) {
		add("worker %d of %d does not exist; they are counted from 0", o.Worker, o.Workers)
	}
	return errors.Join(errs...)
}
