package trace

import (
	"context"
	"math/rand/v2"

	"github.com/zeebo/xxh3"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// isCoarse tells a clock too coarse for a trace.
func isCoarse(resolutionUs int64) bool { return resolutionUs >= quantumUnits*1000 }

// dayWriter gives the rows of one trace their place inside the tick of a coarse clock, and their turns.
type dayWriter struct {
	e       *exporter
	zero    int64
	quantum int64
	spreads int64 // rows that were spread
	draws   *rand.Rand
	tick    []schemas.TraceRow // rows of one tick of a coarse clock
	turns   []*int32           // what the lake tells of them
	step    int64
	keep    rowKeeper

	spread *Spool // rows that were spread, to be ordered anew; nil where no clock is coarse
	out    *Spool
	links  linker
}

func newDayWriter(e *exporter, coarse bool, zero int64) *dayWriter {
	w := &dayWriter{e: e, zero: zero, out: NewSpool(true), links: linker{last: map[xxh3.Uint128]sessionState{}}, draws: rng.New(e.o.Seed, "spread")}
	if coarse {
		w.spread = NewSpool(false)
	}
	return w
}

func (w *dayWriter) close() {
	w.out.Close()
	if w.spread != nil {
		w.spread.Close()
	}
}

// row takes the next row by arrival, and leaves l as it is.
func (w *dayWriter) row(l *lakeRow) error {
	row := l.TraceRow
	row.ScheduledUs -= w.zero
	if w.spread == nil {
		return w.put(&row, l.turn)
	}
	if len(w.tick) > 0 && (w.tick[0].ScheduledUs != row.ScheduledUs || w.step != l.resolutionUs) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.step = l.resolutionUs
	w.tick = append(w.tick, w.keep.clone(&row))
	turn := l.turn
	if turn != nil {
		turn = new(*turn)
	}
	w.turns = append(w.turns, turn)
	return nil
}

// flush spreads the rows of one tick over it.
func (w *dayWriter) flush() error {
	if n := len(w.tick); n > 0 && isCoarse(w.step) {
		for i, at := range drawIn(n, w.tick[0].ScheduledUs, w.step, w.draws) {
			w.tick[i].ScheduledUs = at
		}
		w.quantum = max(w.quantum, w.step)
		w.spreads += int64(n)
	}
	for i := range w.tick {
		// The spool has no place for a turn that is not told: −1 stands for it.
		if w.tick[i].Turn = -1; w.turns[i] != nil {
			w.tick[i].Turn = *w.turns[i]
		}
		if err := w.spread.Add(&w.tick[i]); err != nil {
			return err
		}
	}
	w.tick, w.turns = w.tick[:0], w.turns[:0]
	return nil
}

// put gives a row out, tied to its session.
func (w *dayWriter) put(row *schemas.TraceRow, turn *int32) error {
	w.links.link(row, turn)
	return w.out.Add(row)
}

// stream is the trace of all rows.
func (w *dayWriter) stream(ctx context.Context, m Meta) (*Stream, error) {
	if w.spread != nil {
		if err := w.flush(); err != nil {
			return nil, err
		}
		s, err := w.spread.Stream(m, nil)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		err = s.Each(ctx, func(row *schemas.TraceRow) error {
			if turn := row.Turn; turn >= 0 {
				return w.put(row, &turn)
			}
			return w.put(row, nil)
		})
		if err != nil {
			return nil, err
		}
	}
	if w.quantum > 0 {
		m.QuantumUs, m.Spread, m.Seed = w.quantum, true, w.e.o.Seed
	}
	return w.out.Stream(m, w.e.notes(w.spreads))
}

// linker ties the turns of each session: the parent is the latest earlier row of a lower turn. A session whose turns
// the lake does not tell is numbered by arrival.
type linker struct {
	rows  int64
	last  map[xxh3.Uint128]sessionState
	nodes []linkNode
}

// sessionState is a session so far: its number of rows, and 1 + the newest row that may still become a parent.
type sessionState struct{ rows, top int32 }

// linkNode is a row that may become a parent, and 1 + the one of a lower turn before it.
type linkNode struct {
	row    int64
	turn   int32
	before int32
}

func (k *linker) link(row *schemas.TraceRow, told *int32) {
	at := k.rows
	k.rows++
	row.Turn, row.Parent = 0, nil
	if row.Session == nil {
		return
	}
	key := xxh3.HashString128(*row.Session)
	s := k.last[key]
	if row.Turn = s.rows; told != nil {
		row.Turn = *told
	}
	for s.top > 0 && k.nodes[s.top-1].turn >= row.Turn {
		s.top = k.nodes[s.top-1].before
	}
	if s.top > 0 {
		row.Parent = &k.nodes[s.top-1].row
	}
	k.nodes = append(k.nodes, linkNode{row: at, turn: row.Turn, before: s.top})
	k.last[key] = sessionState{rows: s.rows + 1, top: int32(len(k.nodes))}
}
