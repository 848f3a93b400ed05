package ingest

import (
	"bytes"
	"errors"
	"io"

	"tailgate/internal/spill"
	"tailgate/schemas"
)

// deduper hands out the rows of a merged order without duplicates: rows of equal request key (which is keyed
// by request id, session and start) and arrival that have the same request id. The richest record wins, the
// first in the order among equals. Rows without a request id never merge.
type deduper struct {
	merged *spill.Merger
	words  *words
	peek   []byte // the next packed row, nil at the end
	queue  [][]byte

	duplicates, conflicts int64
}

func newDeduper(m *spill.Merger, w *words) (*deduper, error) {
	d := &deduper{merged: m, words: w}
	return d, d.advance()
}

func (d *deduper) advance() (err error) {
	d.peek, err = d.merged.Next()
	if errors.Is(err, io.EOF) {
		d.peek, err = nil, nil
	}
	return err
}

// next fills s with the next row; io.EOF after the last.
func (d *deduper) next(s *slot) error {
	if len(d.queue) > 0 {
		rec := d.queue[0]
		d.queue = d.queue[1:]
		return s.load(rec, d.words)
	}
	if d.peek == nil {
		return io.EOF
	}
	if err := s.load(d.peek, d.words); err != nil {
		return err
	}
	if err := d.advance(); err != nil {
		return err
	}
	if d.peek == nil || !sameKey(d.peek, s.rec) {
		return nil
	}
	return d.resolve(s)
}

// sameKey compares arrival and request key.
func sameKey(a, b []byte) bool { return bytes.Equal(a[:packedTopic], b[:packedTopic]) }

// resolve merges the rows that have the key of s, and leaves the first survivor in s.
func (d *deduper) resolve(s *slot) error {
	first := &slot{}
	if err := first.load(s.rec, d.words); err != nil {
		return err
	}
	kept := []*slot{first}
	for d.peek != nil && sameKey(d.peek, first.rec) {
		row := &slot{}
		if err := row.load(d.peek, d.words); err != nil {
			return err
		}
		if !d.merge(kept, row) {
			kept = append(kept, row)
		}
		if err := d.advance(); err != nil {
			return err
		}
	}
	for _, k := range kept[1:] {
		d.queue = append(d.queue, k.rec)
	}
	return s.load(kept[0].rec, d.words)
}

// merge tells whether one of kept is the same request as row; the richer of the two stays.
func (d *deduper) merge(kept []*slot, row *slot) bool {
	for i, k := range kept {
		if k.texts[0] == nil || row.texts[0] == nil || !bytes.Equal(k.texts[0], row.texts[0]) {
			continue
		}
		d.duplicates++
		if conflict(&k.row, &row.row) {
			d.conflicts++
		}
		if richness(&row.row) > richness(&k.row) {
			kept[i] = row
		}
		return true
	}
	return false
}

// load copies a packed row into s and unpacks it.
func (s *slot) load(rec []byte, w *words) error {
	s.rec = append(s.rec[:0], rec...)
	return s.unpack(s.rec, w)
}

// richness ranks duplicates: usage before none, a full prompt before a damaged one before none, then the
// number of further facts.
func richness(r *schemas.Request) int {
	score := 0
	for _, source := range []string{r.InputTokensSource, r.OutputTokensSource} {
		switch source {
		case schemas.TokensProvider:
			score += 300
		case schemas.TokensGateway:
			score += 200
		case schemas.TokensTokenizer:
			score += 100
		}
	}
	switch r.PromptState {
	case schemas.PromptFull:
		score += 30
	case schemas.PromptTruncated:
		score += 20
	case schemas.PromptRedacted, schemas.PromptPrehashed:
		score += 10
	}
	for _, known := range []bool{r.CachedTokens != nil, r.ReasoningTokens != nil, r.TTFTUs != nil, r.DurationUs != nil,
		r.HTTPStatus != nil, r.Stream != nil, r.Tenant != nil, r.Model != ""} {
		if known {
			score++
		}
	}
	return score
}

// conflict tells whether two records of one request contradict each other in counts or outcome.
func conflict(a, b *schemas.Request) bool {
	differ := func(x, y *int32) bool { return x != nil && y != nil && *x != *y }
	return differ(a.InputTokens, b.InputTokens) || differ(a.OutputTokens, b.OutputTokens) || a.Status != b.Status
}
