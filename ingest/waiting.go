package ingest

import (
	"context"
	"errors"
	"time"
)

// Waiting is what one partition of a source holds that a lake has not.
type Waiting struct {
	Topic     string // token
	Name      string // for people: never stored
	Partition int32
	First     int64 // oldest offset that the source has
	Next      int64 // offset to go on from
	Mark      int64 // where a run would end; -1 when it cannot be known before reading
	End       int64 // where the source ends; -1 likewise
	// Oldest is when the log took the record at Next; zero when it does not tell, or there is none.
	Oldest time.Time
}

// LookAhead tells what a run with these options would read. It writes nothing. Errors are those that [Run] finds before it
// reads.
func LookAhead(ctx context.Context, src Source, o Options) ([]Waiting, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	o.AllowGap = true // a gap is told by First and Next
	r := &runner{src: src, store: o.lake(), opts: &o}
	parts, err := src.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	parts = ownPartitions(parts, o.Worker, o.Workers)
	for _, p := range parts {
		if p.Transient {
			return nil, errors.New("looking ahead: standard input cannot be looked into")
		}
	}
	if err := r.plan(ctx, parts); err != nil {
		return nil, err
	}
	ends := make([]int64, len(r.workers))
	for i, w := range r.workers {
		ends[i] = w.part.End
	}
	if err := r.setMarks(ctx); err != nil {
		return nil, err
	}
	out := make([]Waiting, 0, len(r.workers))
	for i, w := range r.workers {
		p := Waiting{Topic: w.id.topic, Name: w.part.name(), Partition: w.part.ID, First: w.part.First, Next: w.pos, Mark: w.part.End, End: ends[i]}
		if from := max(w.pos, w.part.First); from < ends[i] {
			if b, err := src.Fetch(ctx, w.part, from); err == nil {
				for _, rec := range b.Records {
					if rec.Offset >= from {
						p.Oldest = rec.Time
						break
					}
				}
				b.release()
			}
		}
		out = append(out, p)
	}
	return out, nil
}
