package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/internal/spill"
	"tailgate/schemas"
)

// lakeRow is a trace row in the making; ScheduledUs is wall time until it is given out.
type lakeRow struct {
	schemas.TraceRow
	key          uint64 // of the request and attempt
	resolutionUs int64
	turn         *int32
	noInput      bool
}

// exporter makes a trace of the requests of a day: ordered on disk by arrival, resolution and place in the day.
type exporter struct {
	o        ExportOptions
	strings  *intern
	privates privateIDs
	inputs   classMedians
	sorter   *spill.Sorter
	enc      rowEncoder
	rec      []byte

	inView, first, last int64 // rows of the view, their first and last arrival
	probes, otherOps, unreached, retries, medianInputs,
	sampled, spread, damaged int64
}

func newExporter(o ExportOptions) *exporter {
	return &exporter{o: o, strings: newIntern(), privates: privateIDs{size: o.BlockSize}, first: math.MaxInt64, last: math.MinInt64,
		inputs: classMedians{}, sorter: spill.NewSorter(os.TempDir(), sortBudget)}
}

func (e *exporter) close() { e.sorter.Close() }

// classMedians counts lengths by class, "" for none, and those of all rows under allClasses.
type classMedians map[string]map[int32]int64

const allClasses = "\x00all"

func (c classMedians) add(class *string, n int32) {
	for _, k := range [...]string{allClasses, label(class)} {
		if c[k] == nil {
			c[k] = map[int32]int64{}
		}
		c[k][n]++
	}
}

// lakeHead is the part of a record that orders it: arrival, resolution, place.
const lakeHead = 24

// add puts a row on disk.
func (e *exporter) add(l *lakeRow) error {
	e.inView++
	e.first, e.last = min(e.first, l.ScheduledUs), max(e.last, l.ScheduledUs)
	rec := binary.BigEndian.AppendUint64(e.rec[:0], uint64(l.ScheduledUs)^1<<63)
	rec = binary.BigEndian.AppendUint64(rec, uint64(l.resolutionUs)^1<<63)
	rec = binary.BigEndian.AppendUint64(rec, uint64(l.SourceRow))
	flags, turn := byte(0), int64(0)
	if l.noInput {
		flags |= 1
	}
	if l.turn != nil {
		flags |= 2
		turn = int64(*l.turn)
	}
	rec = binary.LittleEndian.AppendUint64(append(rec, flags), l.key)
	rec = binary.AppendVarint(rec, turn)
	e.enc.start()
	e.rec = e.enc.row(rec, &l.TraceRow, 0, false, nil)
	e.strings.trim()
	return e.sorter.Add(e.rec)
}

// each visits the rows of the view in order. A row is valid until visit returns.
func (e *exporter) each(ctx context.Context, visit func(l *lakeRow) error) error {
	m, err := spill.Merge(e.sorter)
	if err != nil {
		return err
	}
	defer m.Close()
	d := newRowDecoder()
	for n := 0; ; n++ {
		rec, err := m.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l := lakeRow{resolutionUs: int64(binary.BigEndian.Uint64(rec[8:]) ^ 1<<63), noInput: rec[lakeHead]&1 != 0,
			key: binary.LittleEndian.Uint64(rec[lakeHead+1:])}
		d.start(frame{}, rec[lakeHead+9:])
		turn := int32(d.varint())
		if rec[lakeHead]&2 != 0 {
			l.turn = &turn
		}
		if err := d.next(); err != nil {
			return err
		}
		l.TraceRow = d.row
		if err := visit(&l); err != nil {
			return err
		}
	}
}

// kept is what a first look at the rows tells of those that become the trace.
type kept struct {
	rows, inWindow int64
	classes        map[string]bool // in the window
	ids            bool
	coarse         bool
	used           idSet // ids of all blocks that are not private
}

// finish makes the trace.
func (e *exporter) finish(ctx context.Context, m Meta) (*Stream, error) {
	if len(e.inputs) == 0 {
		return nil, fault.Mark(errors.New("no request has a known input length"), fault.Data, "")
	}
	if err := e.sorter.Seal(); err != nil {
		return nil, err
	}
	zero, length := e.span()
	m.StartedAt, m.LengthUs = time.UnixMicro(zero).UTC(), max(length, 0)
	k, err := e.survey(ctx)
	if err != nil {
		return nil, err
	}
	if k.ids {
		m.BlockSize = e.o.BlockSize
	}
	out := newDayWriter(e, k, zero)
	defer out.close()
	if err := e.each(ctx, out.row); err != nil {
		return nil, err
	}
	return out.stream(ctx, m)
}

func (e *exporter) midnight() int64 {
	day, _ := time.Parse(dayLayout, e.o.Day) // validated
	return day.UnixMicro()
}

// span is the wall time of the trace's zero, and its length.
func (e *exporter) span() (zero, length int64) {
	if e.o.Window == (Window{}) {
		return e.first, e.last - e.first
	}
	end := e.o.Window.To
	if end == 0 {
		end = 24 * time.Hour
	}
	return e.midnight() + e.o.Window.From.Microseconds(), (end - e.o.Window.From).Microseconds()
}

func (e *exporter) inWindow(l *lakeRow) bool {
	return e.o.Window == (Window{}) || e.o.Window.holds(l.ScheduledUs-e.midnight())
}

func (e *exporter) inClasses(l *lakeRow) bool {
	return len(e.o.Classes) == 0 || l.Class != nil && slices.Contains(e.o.Classes, *l.Class)
}

// survey looks at the rows that become the trace, and refuses a window or class without any.
func (e *exporter) survey(ctx context.Context) (*kept, error) {
	k := &kept{classes: map[string]bool{}}
	err := e.each(ctx, func(l *lakeRow) error {
		if !e.inWindow(l) {
			return nil
		}
		k.inWindow++
		if l.Class != nil {
			k.classes[*l.Class] = true
		}
		if !e.inClasses(l) {
			return nil
		}
		k.rows++
		k.ids = k.ids || l.HashIDs != nil
		k.coarse = k.coarse || isCoarse(l.resolutionUs)
		for _, id := range l.HashIDs {
			if id != private {
				k.used.add(id)
			}
		}
		return nil
	})
	if err == nil && k.inWindow == 0 {
		midnight := e.midnight()
		return nil, fault.Mark(fmt.Errorf("window %v holds no request: the day has them from %v to %v after midnight", e.o.Window,
			micros(e.first-midnight), micros(e.last-midnight)), fault.Usage, "")
	}
	if err == nil && len(e.o.Classes) > 0 {
		err = knownClasses(e.o.Classes, k.classes)
	}
	return k, err
}

// isCoarse tells a clock too coarse for a trace.
func isCoarse(resolutionUs int64) bool { return resolutionUs >= quantumUnits*1000 }

// dayWriter gives the rows their ids, their place inside the tick of a coarse clock, and their turns.
type dayWriter struct {
	e       *exporter
	k       *kept
	zero    int64
	quantum int64
	medians map[string]int32
	draws   *rand.Rand
	tick    []schemas.TraceRow // rows of one tick of a coarse clock
	turns   []*int32           // what the lake tells of them
	step    int64
	keep    rowKeeper

	spread *Spool // rows that were spread, to be ordered anew; nil where no clock is coarse
	out    *Spool
	links  linker
}

func newDayWriter(e *exporter, k *kept, zero int64) *dayWriter {
	w := &dayWriter{e: e, k: k, zero: zero, medians: map[string]int32{}, out: NewSpool(true), links: linker{last: map[xxh3.Uint128]sessionState{}},
		draws: rng.New(e.o.Seed, "spread")}
	for class, n := range e.inputs {
		w.medians[class] = newRanks(n).at(.5)
	}
	if k.coarse {
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

// row takes the next row by arrival.
func (w *dayWriter) row(l *lakeRow) error {
	if !w.e.inWindow(l) || !w.e.inClasses(l) {
		return nil
	}
	if l.noInput {
		n, ok := w.medians[label(l.Class)]
		if !ok {
			n = w.medians[allClasses]
		}
		l.InputTokens = n
	}
	w.e.privates.fill(l, &w.k.used)
	l.ScheduledUs -= w.zero
	if w.spread == nil {
		return w.put(&l.TraceRow, l.turn)
	}
	if len(w.tick) > 0 && (w.tick[0].ScheduledUs != l.ScheduledUs || w.step != l.resolutionUs) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.step = l.resolutionUs
	w.tick = append(w.tick, w.keep.clone(&l.TraceRow))
	w.turns = append(w.turns, l.turn)
	return nil
}

// flush spreads the rows of one tick over it.
func (w *dayWriter) flush() error {
	if n := len(w.tick); n > 0 && isCoarse(w.step) {
		for i, at := range drawIn(n, w.tick[0].ScheduledUs, w.step, w.draws) {
			w.tick[i].ScheduledUs = at
		}
		w.quantum = max(w.quantum, w.step)
		w.e.spread += int64(n)
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
	return w.out.Stream(m, w.e.notes())
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
