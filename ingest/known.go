package ingest

import (
	"context"
	"errors"
	"fmt"

	"tailgate/internal/fault"
)

// knownAgain looks at the last message that was read, by the time that the log gave it: a topic that was
// recreated and has grown beyond its old end shows in nothing else. What is not there any more proves nothing.
func (w *worker) knownAgain(ctx context.Context, last *segmentFacts) error {
	if last.LastAt == 0 || last.Last < w.part.First {
		return nil
	}
	next := w.pos
	defer func() { w.pos = next }()
	w.pos = last.Last
	b, err := w.fetch(ctx)
	if errors.Is(err, ErrOutOfRange) {
		return nil
	}
	if err != nil {
		return err
	}
	defer b.release()
	for i := range b.Records {
		r := &b.Records[i]
		if r.Offset == last.Last && !r.Time.IsZero() && r.Time.UnixMilli() != last.LastAt {
			return fault.Mark(&resetFault{msg: fmt.Sprintf(
				"reading %s: it was recreated: the record at offset %d is not the one read before", w.part.name(), last.Last)},
				fault.Data, resetHint)
		}
	}
	return nil
}
