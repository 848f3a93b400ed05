package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"tailgate/internal/fault"
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
		turn := int32(d.in.Varint())
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
