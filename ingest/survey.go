package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"tailgate/internal/spill"
	"tailgate/schemas"
)

// survey is what has to be known of all rows of a day before one of them can be written. Rows are numbered in
// the day's order.
type survey struct {
	combo   []uint32          // of each row, its place in combos
	combos  []combo           // combinations of labels
	places  map[[3]uint32]int // of a combination in combos
	turns   []int32           // of each row; −1 without a session
	keep    []int32           // leading ids that the row keeps
	foreign []int32           // the first position whose id too few tenants hold; math.MaxInt32 = none
	damaged []bool            // the prompt was not logged whole: what it shares is not known
	ids     int64             // block ids of all rows that are not damaged
	odd     map[uint32]int    // first row of a suspicious request id → rows of the id

	sessions, requests, blocks *spill.Buckets
}

// combo is a combination of tenant, class and model (codes plus 1, 0 = null) and how many rows have it.
type combo struct {
	labels [3]uint32
	rows   int64
	loners int64 // rows without a session: each counts as a session of its own
}

// survey goes over the rows for the first time.
func (b *build) survey(ctx context.Context) error {
	if b.in.rows > maxDayRows {
		return fmt.Errorf("publishing %s: more than %d rows", b.o.Day, int64(maxDayRows))
	}
	share := b.o.Memory / bucketShare
	f := &survey{
		combo: make([]uint32, 0, b.in.rows), turns: make([]int32, 0, b.in.rows), places: map[[3]uint32]int{},
		sessions: spill.NewBuckets(b.scratch, b.in.rows, share), requests: spill.NewBuckets(b.scratch, b.in.rows, share),
		blocks: spill.NewBuckets(b.scratch, b.in.ids, share), odd: map[uint32]int{},
	}
	b.found = f
	midnight, err := time.Parse(time.DateOnly, b.o.Day)
	if err != nil {
		return fmt.Errorf("publishing: %w", err)
	}
	dayEnd := midnight.Add(24 * time.Hour).UnixMicro()
	d, err := b.stream(ctx, func(batch []slot) error {
		for i := range batch {
			s := &batch[i]
			if s.row.DurationUs != nil && s.row.ArrivedAt.UnixMicro()+*s.row.DurationUs > dayEnd {
				b.report.InFlight++
			}
			if s.row.HashIDs == nil {
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
	b.report.Duplicates, b.report.Conflicts, b.report.Rows = d.duplicates, d.conflicts, int64(len(f.combo))
	f.keep = make([]int32, len(f.combo))
	for _, s := range []*spill.Buckets{f.sessions, f.requests, f.blocks} {
		if err := s.Seal(); err != nil {
			return err
		}
	}
	return nil
}

// add takes the next row.
func (f *survey) add(s *slot) error {
	row := uint32(len(f.combo))
	at, ok := f.places[s.labels]
	if !ok {
		at = len(f.combos)
		f.places[s.labels] = at
		f.combos = append(f.combos, combo{labels: s.labels})
	}
	f.combo = append(f.combo, uint32(at))
	f.combos[at].rows++
	turn := int32(0)
	if s.texts[2] == nil {
		f.combos[at].loners++
		turn = -1
	} else if err := f.sessions.Add(spill.Entry{Key: textKey(s.texts[2]), Row: row, Pos: uint32(at)}); err != nil {
		return err
	}
	f.turns = append(f.turns, turn)
	if s.texts[0] != nil {
		if err := f.requests.Add(spill.Entry{Key: textKey(s.texts[0]), Row: row}); err != nil {
			return err
		}
	}
	for pos, id := range s.row.HashIDs {
		if err := f.blocks.Add(spill.Entry{Key: uint64(id), Row: row, Pos: uint32(pos)}); err != nil {
			return err
		}
	}
	f.damaged = append(f.damaged, s.row.PromptState != schemas.PromptFull && s.row.PromptState != schemas.PromptPrehashed)
	if !f.damaged[row] {
		f.ids += int64(len(s.row.HashIDs))
	}
	return nil
}

// textKey stands for a token of a session or request: 64 bits, of which ten million tokens have two alike with
// a chance of 3 in a million.
func textKey(text []byte) uint64 {
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:])
}

// suspiciousRows is how many different starts or sessions one request id may have: attempts and fallbacks of a
// request have a few, a gateway that logs a constant has thousands.
const suspiciousRows = 16

// numberTurns numbers the rows of each session from 0, and finds the request ids that stand for more than one
// request.
func (f *survey) numberTurns(ctx context.Context) error {
	err := f.sessions.Each(ctx, func(group []spill.Entry) error {
		for i, e := range group {
			f.turns[e.Row] = int32(i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return f.requests.Each(ctx, func(group []spill.Entry) error {
		if len(group) > suspiciousRows {
			f.odd[group[0].Row] = len(group)
		}
		return nil
	})
}
