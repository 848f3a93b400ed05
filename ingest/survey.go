package ingest

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"tailgate/internal/spill"
	"tailgate/schemas"
)

// survey is what has to be known of all rows of a day before one of them can be written. Rows are numbered in
// the day's order.
type survey struct {
	rows   []fact
	combos []combo           // combinations of labels
	places map[[3]uint32]int // of a combination in combos
	ids    int64             // block ids of all rows that are not damaged
	intact []bool            // by word of prompt_state
	odd    map[uint32]int    // first row of a suspicious request id → rows of the id

	sessions, requests, blocks *spill.Buckets
}

// fact is what is known of one row: 16 bytes, so that one look brings all.
type fact struct {
	label   uint32 // twice its place in combos, plus 1 where it is damaged
	turn    int32  // −1 without a session
	keep    int32  // leading ids that the row keeps
	foreign int32  // the first position whose id too few tenants hold; math.MaxInt32 = none
}

// combo is the row's place in combos.
func (f *fact) combo() uint32 { return f.label >> 1 }

// damaged rows have a prompt that was not logged whole: what they share is not known.
func (f *fact) damaged() bool { return f.label&1 != 0 }

// combo is a combination of tenant, class and model, as slots hold words, and how many rows have it.
type combo struct {
	labels [3]uint32 // 0 = null
	rows   int64
	loners int64 // rows without a session: each counts as a session of its own
}

// labelled are the labels of a row.
func (s *slot) labelled() [3]uint32 {
	labels := [3]uint32{s.words[wordTenant], s.words[wordClass], s.words[wordModel]}
	if labels[2] == wordEmpty {
		labels[2] = 0
	}
	return labels
}

// survey goes over the rows for the first time.
func (b *build) survey(ctx context.Context) error {
	if b.in.rows > maxDayRows {
		return fmt.Errorf("publishing %s: more than %d rows", b.o.Day, int64(maxDayRows))
	}
	share := b.o.Memory / bucketShare
	f := &survey{
		rows: make([]fact, 0, b.in.rows), places: map[[3]uint32]int{}, odd: map[uint32]int{}, intact: b.words.intact(),
		sessions: spill.NewBuckets(b.scratch, b.in.rows, share, workers()),
		requests: spill.NewBuckets(b.scratch, b.in.rows, share, workers()),
		blocks:   spill.NewBuckets(b.scratch, b.in.ids, share, workers()),
	}
	b.found = f
	midnight, err := time.Parse(time.DateOnly, b.o.Day)
	if err != nil {
		return fmt.Errorf("publishing: %w", err)
	}
	dayEnd := midnight.Add(24 * time.Hour).UnixMicro()
	d, err := b.stream(ctx, func(rows *batch) error {
		defer rows.free()
		for i := range rows.rows {
			s := &rows.rows[i]
			if s.hasLong(longDuration) && s.arrived+s.longs[longDuration] > dayEnd {
				b.report.InFlight++
			}
			if !s.hasIDs() {
				b.report.UnknownPrompts++
			}
			if err := f.add(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.report.Duplicates, b.report.Conflicts, b.report.Rows = d.duplicates, d.conflicts, int64(len(f.rows))
	for _, s := range []*spill.Buckets{f.sessions, f.requests, f.blocks} {
		if err := s.Seal(); err != nil {
			return err
		}
	}
	return nil
}

// intact tells of each word, as slots hold it, whether as a prompt_state it says that the prompt is whole.
func (w *words) intact() []bool {
	out := make([]bool, len(w.list)+1)
	for i, word := range w.list {
		out[i+1] = word == schemas.PromptFull || word == schemas.PromptPrehashed
	}
	return out
}

// add takes the next row.
func (f *survey) add(s *slot) error {
	row, labels := uint32(len(f.rows)), s.labelled()
	at, ok := f.places[labels]
	if !ok {
		at = len(f.combos)
		f.places[labels] = at
		f.combos = append(f.combos, combo{labels: labels})
	}
	f.combos[at].rows++
	known := fact{label: uint32(at) << 1, foreign: math.MaxInt32}
	if !s.hasText(textSession) {
		f.combos[at].loners++
		known.turn = -1
	} else if err := f.sessions.Add(spill.Entry{Key: textKey(s.texts[textSession]), Row: row, Pos: uint32(at)}); err != nil {
		return err
	}
	if s.hasText(textRequest) {
		if err := f.requests.Add(spill.Entry{Key: textKey(s.texts[textRequest]), Row: row}); err != nil {
			return err
		}
	}
	for pos := range s.numIDs() {
		if err := f.blocks.Add(spill.Entry{Key: uint64(s.id(pos)), Row: row, Pos: uint32(pos)}); err != nil {
			return err
		}
	}
	if f.intact[s.words[wordPrompt]] {
		f.ids += int64(s.numIDs())
	} else {
		known.label |= 1
	}
	f.rows = append(f.rows, known)
	return nil
}

// textKey stands for a token of a session or request: 64 bits, of which ten million tokens have two alike with
// a chance of 3 in a million.
func textKey(text []byte) uint64 { return xxh3.Hash(text) }

// suspiciousRows is how many different starts or sessions one request id may have: attempts and fallbacks of a
// request have a few, a gateway that logs a constant has thousands.
const suspiciousRows = 16

// numberTurns numbers the rows of each session from 0, and finds the request ids that stand for more than one
// request.
func (f *survey) numberTurns(ctx context.Context) error {
	err := f.sessions.Each(ctx, workers(), func(_ int, group []spill.Entry) error {
		for i, e := range group {
			f.rows[e.Row].turn = int32(i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var found sync.Mutex
	return f.requests.Each(ctx, workers(), func(_ int, group []spill.Entry) error {
		if len(group) > suspiciousRows {
			found.Lock()
			f.odd[group[0].Row] = len(group)
			found.Unlock()
		}
		return nil
	})
}
