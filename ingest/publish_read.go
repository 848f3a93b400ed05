package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// dayInput is what the segments hold of one day.
type dayInput struct {
	rows   []schemas.Request
	footer schemas.Footer // of the file to come
	inputs []schemas.FileDigest
}

// Days lists the UTC days on which requests of the lake's segments arrived, in order.
func Days(lake string) ([]string, error) {
	days := map[string]bool{}
	err := eachSegment(lake, func(s *segmentFile) error {
		for day, n := range s.facts.Days {
			if n > 0 {
				days[day] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(days)), nil
}

// eachSegment calls f for every segment of the lake, in the order of topic, generation, partition and offset,
// after their contiguity was proved.
func eachSegment(lake string, f func(*segmentFile) error) error {
	logs, err := listLogs(lake)
	if err != nil {
		return err
	}
	for _, id := range logs {
		segments, err := recoverLog(lake, id)
		if err != nil {
			return err
		}
		for i := range segments {
			if err := f(&segments[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// readDay reads the rows that arrived on day from all segments that have some.
func readDay(ctx context.Context, lake, day string) (*dayInput, error) {
	var segments []*segmentFile
	var total int64
	err := eachSegment(lake, func(s *segmentFile) error {
		if n := s.facts.Days[day]; n > 0 {
			segments = append(segments, s)
			total += n
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if total == 0 {
		return nil, fmt.Errorf("publishing %s: no request of this lake arrived on that day", day)
	}
	in := &dayInput{rows: make([]schemas.Request, 0, total)}
	if in.footer, err = commonFooter(day, segments); err != nil {
		return nil, err
	}
	names := interner{}
	for _, s := range segments {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("publishing %s: %w", day, context.Cause(ctx))
		}
		digest, err := schemas.DigestFile(lake, s.path)
		if err != nil {
			return nil, err
		}
		digest.Rows = s.facts.Rows
		in.inputs = append(in.inputs, digest)
		if err := in.read(s, day, names); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// commonFooter is the footer that all segments of the day agree on.
func commonFooter(day string, segments []*segmentFile) (schemas.Footer, error) {
	first := segments[0].footer
	for _, s := range segments[1:] {
		for _, key := range []string{schemas.KeyEpoch, schemas.KeyTokenizer, schemas.KeyBlockSize} {
			if s.footer[key] != first[key] {
				return schemas.Footer{}, fault.Mark(
					fmt.Errorf("publishing %s: %s and %s differ in %s", day, segments[0].path, s.path, key),
					fault.Data, "ids of two epochs cannot be compared: ingest the day again under one epoch")
			}
		}
	}
	return schemas.Footer{
		Schema: schemas.TableRequests, Epoch: first[schemas.KeyEpoch], Tokenizer: first[schemas.KeyTokenizer],
		BlockSize: first[schemas.KeyBlockSize],
	}, nil
}

// read appends the segment's rows of the day.
func (in *dayInput) read(s *segmentFile, day string, names interner) error {
	r, err := parquetio.Open[schemas.Request](s.path)
	if err != nil {
		return fault.Mark(err, fault.Data, "")
	}
	defer r.Close()
	before := len(in.rows)
	batch := make([]schemas.Request, 1024)
	for {
		n, err := r.Read(batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fault.Mark(err, fault.Data, "")
		}
		for i := range batch[:n] {
			if row := &batch[i]; dayOf(row.ArrivedAt) == day {
				names.row(row)
				in.rows = append(in.rows, *row)
			}
		}
	}
	if got := int64(len(in.rows) - before); got != s.facts.Days[day] {
		return fault.Mark(fmt.Errorf("reading %s: %d rows of %s, its footer says %d", s.path, got, day, s.facts.Days[day]),
			fault.Data, "")
	}
	return nil
}

// interner keeps one copy of each repeated string.
type interner map[string]string

func (n interner) get(s string) string {
	if kept, ok := n[s]; ok {
		return kept
	}
	n[s] = s
	return s
}

func (n interner) row(r *schemas.Request) {
	for _, s := range []*string{
		&r.TQuality, &r.Gateway, &r.Op, &r.Status, &r.Model, &r.InputTokensSource, &r.OutputTokensSource,
		&r.CachedTokensSource, &r.ReasoningTokensSource, &r.Reconciled, &r.PromptState, &r.Topic,
		r.ClockID, r.Class, r.Tenant, r.Session,
	} {
		if s != nil {
			*s = n.get(*s)
		}
	}
}
