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

// fill adds the next rows to b until it is full; none at the end.
func (d *deduper) fill(b *batch) error {
	for !b.full() {
		if len(d.queue) > 0 {
			b.add(d.queue[0])
			d.queue = d.queue[1:]
			continue
		}
		if d.peek == nil {
			return nil
		}
		b.add(d.peek)
		if err := d.advance(); err != nil {
			return err
		}
		if d.peek != nil && sameKey(d.peek, b.last()) {
			first := bytes.Clone(b.last())
			b.drop()
			if err := d.resolve(first); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameKey compares arrival and request key.
func sameKey(a, b []byte) bool { return bytes.Equal(a[:packedKey], b[:packedKey]) }

// resolve merges the rows that have the key of the packed row first, and queues those that stay.
func (d *deduper) resolve(first []byte) error {
	row := &slot{}
	if err := row.unpack(first, d.words); err != nil {
		return err
	}
	kept := []*slot{row}
	for d.peek != nil && sameKey(d.peek, first) {
		row := &slot{}
		if err := row.unpack(bytes.Clone(d.peek), d.words); err != nil {
			return err
		}
		if !d.merge(kept, row) {
			kept = append(kept, row)
		}
		if err := d.advance(); err != nil {
			return err
		}
	}
	for _, k := range kept {
		d.queue = append(d.queue, k.rec)
	}
	return nil
}

// merge tells whether one of kept is the same request as row; the richer of the two stays.
func (d *deduper) merge(kept []*slot, row *slot) bool {
	for i, k := range kept {
		if !k.hasText(textRequest) || !row.hasText(textRequest) || !bytes.Equal(k.texts[textRequest], row.texts[textRequest]) {
			continue
		}
		d.duplicates++
		if conflict(k, row) {
			d.conflicts++
		}
		if d.richness(row) > d.richness(k) {
			kept[i] = row
		}
		return true
	}
	return false
}

// richness ranks duplicates: usage before none, a full prompt before a damaged one before none, then the
// number of further facts.
func (d *deduper) richness(s *slot) int {
	score := 0
	for _, source := range s.words[wordSources : wordSources+2] {
		switch d.words.text(source) {
		case schemas.TokensProvider:
			score += 300
		case schemas.TokensGateway:
			score += 200
		case schemas.TokensTokenizer:
			score += 100
		}
	}
	switch d.words.text(s.words[wordPrompt]) {
	case schemas.PromptFull:
		score += 30
	case schemas.PromptTruncated:
		score += 20
	case schemas.PromptRedacted, schemas.PromptPrehashed:
		score += 10
	}
	for _, known := range []bool{s.hasInt(intCached), s.hasInt(intReasoning), s.hasLong(longTTFT), s.hasLong(longDuration),
		s.hasInt(intHTTP), s.flags&hasStream != 0, s.words[wordTenant] != 0, s.words[wordModel] != wordEmpty} {
		if known {
			score++
		}
	}
	return score
}

// conflict tells whether two records of one request contradict each other in counts or outcome.
func conflict(a, b *slot) bool {
	differ := func(i int) bool { return a.hasInt(i) && b.hasInt(i) && a.ints[i] != b.ints[i] }
	return differ(intInput) || differ(intOutput) || a.words[wordStatus] != b.words[wordStatus]
}
