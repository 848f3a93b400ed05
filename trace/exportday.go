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
)

// exporter makes traces of the requests of a day: read once, on disk in the order of arrival, resolution and place in the
// day, and given out from there to each trace.
type exporter struct {
	o        ExportOptions
	cuts     []dayCut
	privates privateIDs
	inputs   classMedians
	used     idSet // ids of all blocks of the view that are not private; then also those that private ones got
	tape     tape
	out      frameWriter
	unsorted bool // the file has another order

	inView, first, last int64           // rows of the view, their first and last arrival
	lastStep            int64           // resolution of the last row
	inWindow            int64           // rows
	classes             map[string]bool // in the window
	probes, otherOps, unreached, retries, medianInputs,
	sampled, damaged int64
}

// dayCut is what a first look tells of the rows of one trace.
type dayCut struct {
	classes []string // empty = all
	rows    int64
	ids     bool
	coarse  bool
}

func newExporter(o ExportOptions, classes [][]string) *exporter {
	e := &exporter{o: o, privates: privateIDs{size: o.BlockSize}, first: math.MaxInt64, last: math.MinInt64, inputs: classMedians{}, classes: map[string]bool{}}
	for _, list := range classes {
		e.cuts = append(e.cuts, dayCut{classes: list})
	}
	e.out.tape = &e.tape
	return e
}

func (e *exporter) close() { e.tape.close() }

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

// put takes the next row of the view in the order of the file.
func (e *exporter) put(l *lakeRow) error {
	e.unsorted = e.unsorted || e.inView > 0 && (l.ScheduledUs < e.last || l.ScheduledUs == e.last && l.resolutionUs < e.lastStep)
	e.first, e.last, e.lastStep = min(e.first, l.ScheduledUs), max(e.last, l.ScheduledUs), l.resolutionUs
	e.inView++
	for _, id := range l.HashIDs {
		if id != private {
			e.used.add(id)
		}
	}
	if e.holds(l) {
		e.inWindow++
		if l.Class != nil && !e.classes[*l.Class] {
			e.classes[*l.Class] = true
		}
		for i := range e.cuts {
			if c := &e.cuts[i]; c.has(l) {
				c.rows++
				c.ids = c.ids || l.HashIDs != nil
				c.coarse = c.coarse || isCoarse(l.resolutionUs)
			}
		}
	}
	return e.out.addLake(l)
}

// holds tells whether the window holds a row.
func (e *exporter) holds(l *lakeRow) bool {
	return e.o.Window == (Window{}) || e.o.Window.holds(l.ScheduledUs-e.midnight())
}

func (c *dayCut) has(l *lakeRow) bool {
	return len(c.classes) == 0 || l.Class != nil && slices.Contains(c.classes, *l.Class)
}

// each visits the rows of the view in order. A row is valid until visit returns.
func (e *exporter) each(ctx context.Context, visit func(l *lakeRow) error) error {
	d := newRowDecoder()
	return e.tape.each(func(f frame, blob []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.start(f, blob)
		for range f.rows {
			l, err := d.nextLake()
			if err == nil {
				err = visit(&l)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// sort puts the rows in order, those of a file that has another one.
func (e *exporter) sort(ctx context.Context) error {
	sorter := spill.NewSorter(os.TempDir(), sortBudget)
	defer sorter.Close()
	var rec []byte
	var enc rowEncoder
	if err := e.each(ctx, func(l *lakeRow) error {
		rec = binary.BigEndian.AppendUint64(rec[:0], uint64(l.ScheduledUs)^1<<63)
		rec = binary.BigEndian.AppendUint64(rec, uint64(l.resolutionUs)^1<<63)
		rec = binary.BigEndian.AppendUint64(rec, uint64(l.SourceRow))
		enc.start()
		rec = enc.lakeRow(rec, l)
		return sorter.Add(rec)
	}); err != nil {
		return err
	}
	if err := sorter.Seal(); err != nil {
		return err
	}
	m, err := spill.Merge(sorter)
	if err != nil {
		return err
	}
	e.tape.close()
	e.tape = tape{}
	d := newRowDecoder()
	for {
		rec, err := m.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		d.start(frame{}, rec[24:]) // behind arrival, resolution and place
		l, err := d.nextLake()
		if err == nil {
			err = e.out.addLake(&l)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(e.out.flush(), e.tape.seal())
}

// finish makes the traces; absent says that a trace may have no row.
func (e *exporter) finish(ctx context.Context, m Meta, absent bool) (_ []*Stream, err error) {
	if len(e.inputs) == 0 {
		return nil, fault.Mark(errors.New("no request has a known input length"), fault.Data, "")
	}
	if err := e.tape.seal(); err != nil {
		return nil, err
	}
	if err := e.refuse(absent); err != nil {
		return nil, err
	}
	if e.unsorted {
		if err := e.sort(ctx); err != nil {
			return nil, err
		}
	}
	zero, length := e.span()
	m.StartedAt, m.LengthUs = time.UnixMicro(zero).UTC(), max(length, 0)
	out := make([]*dayWriter, len(e.cuts))
	for i := range e.cuts {
		out[i] = newDayWriter(e, e.cuts[i].coarse, zero)
		defer out[i].close()
	}
	if err := e.write(ctx, out); err != nil {
		return nil, err
	}
	list := make([]*Stream, len(out))
	defer func() {
		if err != nil {
			closeAll(list)
		}
	}()
	for i, w := range out {
		if e.cuts[i].rows == 0 {
			continue
		}
		m := m
		if e.cuts[i].ids {
			m.BlockSize = e.o.BlockSize
		}
		if list[i], err = w.stream(ctx, m); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func closeAll(list []*Stream) {
	for _, s := range list {
		if s != nil {
			s.Close()
		}
	}
}

// write gives each row its ids and length, and then to the traces that it belongs to.
func (e *exporter) write(ctx context.Context, out []*dayWriter) error {
	medians := map[string]int32{}
	for class, n := range e.inputs {
		medians[class] = newRanks(n).at(.5)
	}
	return e.each(ctx, func(l *lakeRow) error {
		e.privates.fill(l, &e.used)
		if !e.holds(l) {
			return nil
		}
		if l.noInput {
			n, ok := medians[label(l.Class)]
			if !ok {
				n = medians[allClasses]
			}
			l.InputTokens = n
		}
		for i, w := range out {
			if !e.cuts[i].has(l) {
				continue
			}
			if err := w.row(l); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *exporter) midnight() int64 {
	day, _ := time.Parse(dayLayout, e.o.Day) // validated
	return day.UnixMicro()
}

// span is the wall time of the traces' zero, and their length.
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

// refuse refuses a window without any request, and unless they may be absent classes without any.
func (e *exporter) refuse(absent bool) error {
	if e.inWindow == 0 {
		midnight := e.midnight()
		return fault.Mark(fmt.Errorf("window %v holds no request: the day has them from %v to %v after midnight", e.o.Window,
			micros(e.first-midnight), micros(e.last-midnight)), fault.Usage, "")
	}
	for _, c := range e.cuts {
		if len(c.classes) > 0 && !absent {
			return knownClasses(c.classes, e.classes)
		}
	}
	return nil
}
