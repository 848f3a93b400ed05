package ingest

import (
	"context"
	"fmt"
	"time"

	"tailgate/internal/fault"
)

// topicToken names the log of a topic in the lake.
func (o *Options) topicToken(topic string) string {
	if o.Log != "" {
		topic += "\x00" + o.Log
	}
	return o.Anonymizer.Token("topic", []byte(topic))
}

// startAt is where a new log begins that starts at a time. A source that does not find times is read from its start.
func (r *runner) startAt(ctx context.Context, p Partition) (int64, error) {
	src, ok := r.src.(timedSource)
	if !ok {
		return p.First, nil
	}
	if r.starts == nil {
		starts, err := src.OffsetsAt(ctx, r.opts.From)
		if err != nil {
			return 0, err
		}
		r.starts = starts
	}
	from, ok := r.starts[p.ID]
	switch {
	case !ok:
		return max(p.First, p.End), nil // nothing came since
	case p.First > 0 && from <= p.First && !r.opts.AllowGap:
		return 0, fault.Mark(fmt.Errorf("reading %s from %s: retention has removed what came before offset %d, which may be of that time",
			p.name(), r.opts.From.Format(time.RFC3339), p.First), fault.Data, "--allow-gap reads what is left")
	}
	return max(p.First, from), nil
}
