package trace

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/zeebo/xxh3"

	"tailgate/internal/spill"
	"tailgate/schemas"
)

// sortBudget is the memory in which rows are sorted, in bytes.
const sortBudget = 256 << 20

// Scan reads the trace at path, "-" for stdin, as Load does, but keeps its rows on disk: in the folder for
// temporaries (TMPDIR), up to about the size of the file's text. When it returns the whole file has been read and
// held to its sidecar; Meta, Notes and Unread are those of Load, and so are the rows. Close the stream.
//
// Memory does not grow with the rows, apart from 8 bytes a row where the clock's step is not told (twice that while
// it is looked for), 8 where rows have parents in a file that is not in order, 48 for each session that is named
// without turns, 64 for each distinct id of 2^63 and above, and the rows that a lenient reader leaves out. Bailian
// files and those in the delta convention are read into memory whole.
func Scan(ctx context.Context, path string, o Options) (*Stream, error) {
	if path == "-" {
		return ScanReader(ctx, os.Stdin, "stdin", o)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	f, isParquet, err := openTrace(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if isParquet {
		return scanParquet(ctx, path, path, o)
	}
	side, err := readSidecar(path)
	if err != nil {
		return nil, err
	}
	return scan(ctx, f, path, o, side)
}

// ScanReader is Scan for the bytes of r; name is what errors call it. There is no sidecar.
func ScanReader(ctx context.Context, r io.Reader, name string, o Options) (*Stream, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return scan(ctx, r, name, o, nil)
}

func scan(ctx context.Context, r io.Reader, name string, o Options, side *sidecar) (*Stream, error) {
	disk := &digestReader{r: r, sum: sha256.New()}
	in := bufio.NewReaderSize(disk, readBuffer)
	magic, _ := in.Peek(4)
	if string(magic) == parquetMagic {
		return viaFile(in, name, func(path string) (*Stream, error) { return scanParquet(ctx, path, name, o) })
	}
	var out *Stream
	err := readText(ctx, in, magic, disk, name, o, side, func(s source, text *bufio.Reader) (err error) {
		if s.format == FormatBailian || s.convention() == ConventionDelta {
			t, err := gatherText(ctx, text, s)
			if err == nil {
				out = t.Stream()
			}
			return err
		}
		out, err = scanRows(ctx, s, func(to taker) error { return readRows(ctx, text, s, to) })
		return err
	})
	if err != nil {
		if out != nil {
			out.Close()
		}
		return nil, err
	}
	out.Meta.Bytes, out.Meta.SHA256 = disk.n, disk.digest()
	return out, nil
}

func scanParquet(ctx context.Context, path, name string, o Options) (*Stream, error) {
	s, err := parquetSource(name, o)
	if err != nil {
		return nil, err
	}
	if s.side, err = parquetFooter(path, name); err != nil {
		return nil, err
	}
	if s.convention() == ConventionDelta {
		t, err := readParquet(ctx, path, name, o)
		if err != nil {
			return nil, err
		}
		return t.Stream(), nil
	}
	out, err := scanRows(ctx, s, func(to taker) error {
		_, err := parquetRows(ctx, path, name, to)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := digestFile(path, &out.Meta); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// scanRows puts the rows that read reads on a tape, and settles how they are to be read from there.
func scanRows(ctx context.Context, s source, read func(taker) error) (*Stream, error) {
	s.transient = true
	v := newSurvey(s)
	tp := &taped{survey: v}
	err := read(v)
	if err == nil {
		err = v.tape.seal()
	}
	var out *Stream
	if err == nil {
		out, err = tp.settle(ctx, s)
	}
	if err != nil {
		v.tape.close()
		return nil, err
	}
	return out, nil
}

// taped is a trace on a tape, and what its rows need to become those of the trace.
type taped struct {
	*survey
	ids    map[string]int64 // of ids outside int64
	place  []int64          // of each row of the file; nil = in order
	base   int64            // subtracted from the stamps
	spread []int64          // the stamps instead; nil = as they are on the tape
	fill   bool             // turns of sessions are to be numbered
	told   map[xxh3.Uint128]bool
}

// settle does with the rows on the tape what arrange does with rows in memory.
func (t *taped) settle(ctx context.Context, s source) (*Stream, error) {
	if err := notEmpty(s, t.rows, t.skipped); err != nil {
		return nil, err
	}
	t.sayRead()
	if err := t.remapBig(ctx); err != nil {
		return nil, err
	}
	if err := t.order(ctx); err != nil {
		return nil, err
	}
	if err := t.checkParents(ctx, s); err != nil {
		return nil, err
	}
	out := &Stream{Meta: Meta{Name: s.name, Format: s.format, Unit: s.unit, Convention: ConventionCumulative}, Unread: t.skipped,
		rows: t.rows, walk: t.walk, close: t.tape.close}
	m := &out.Meta
	s.side.describe(m)
	var err error
	if t.base, err = t.zero(m, s, t.first); err != nil {
		return nil, err
	}
	if err := t.checkUnit(s, t.rows, t.newest-t.first); err != nil {
		return nil, err
	}
	out.first, out.last = t.first-t.base, t.newest-t.base
	if !m.Spread && t.keepStamps {
		for i := range t.stamps {
			t.stamps[i] -= t.base
		}
		if t.dequantise(m, t.stamps, s) {
			t.spread = t.stamps
			out.first, out.last = t.spread[0], t.spread[len(t.spread)-1]
		}
	}
	t.stamps = nil
	if t.fill = !t.allTold && t.named > t.namedTold; t.fill && t.namedTold > 0 {
		if err := t.findTold(ctx); err != nil {
			return nil, err
		}
	}
	if t.zeroOut > 0 {
		t.note("%d rows have output length 0: read as unknown", t.zeroOut)
	}
	m.BlockSize = t.settleBlockSize(t.blockSize, t.withIDs, t.misfit, t.fitting)
	out.Notes = t.notes
	return out, nil
}

// remapBig finds the dense ids of those outside int64: the least that no row has, in order of first sight.
func (t *taped) remapBig(ctx context.Context) error {
	n := int64(len(t.bigs))
	if n == 0 {
		return nil
	}
	free := make([]int64, 0, n)
	for room := 2*n + 1024; int64(len(free)) < n; room *= 2 {
		used := make([]uint64, room/64+1)
		err := t.each(ctx, func(d *rowDecoder) error {
			big := d.big
			for j, id := range d.row.HashIDs {
				if len(big) > 0 && big[0].at == j {
					big = big[1:]
				} else if id >= 0 && id < room {
					used[id/64] |= 1 << (id % 64)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		free = free[:0]
		for id := int64(0); id < room && int64(len(free)) < n; id++ {
			if used[id/64]&(1<<(id%64)) == 0 {
				free = append(free, id)
			}
		}
	}
	t.ids = t.bigs
	for text, i := range t.bigs {
		t.ids[text] = free[i]
	}
	t.note("%d hash ids do not fit 63 bits: remapped densely", n)
	return nil
}

// order sorts the rows by stamp, ties in file order.
func (t *taped) order(ctx context.Context) error {
	if t.late == 0 {
		return nil
	}
	t.note("%d of %d rows were out of order by timestamp: sorted, ties in file order", t.late, t.rows)
	slices.Sort(t.stamps)
	sorter := spill.NewSorter(os.TempDir(), sortBudget)
	defer sorter.Close()
	var e rowEncoder
	var rec []byte
	row := int64(0)
	err := t.each(ctx, func(d *rowDecoder) error {
		if d.row.SourceRow < 0 {
			d.row.SourceRow = row
		}
		rec = binary.BigEndian.AppendUint64(rec[:0], uint64(d.row.ScheduledUs)^1<<63)
		rec = binary.BigEndian.AppendUint64(rec, uint64(row))
		e.start()
		rec = e.row(rec, &d.row, d.line, d.told, d.bigRefs())
		row++
		return sorter.Add(rec)
	})
	if err != nil {
		return err
	}
	t.tape.close()
	if err := sorter.Seal(); err != nil {
		return err
	}
	return t.merge(sorter)
}

// merge puts sorted rows on a new tape.
func (t *taped) merge(sorter *spill.Sorter) error {
	m, err := spill.Merge(sorter)
	if err != nil {
		return err
	}
	defer m.Close()
	if t.parents {
		t.place = make([]int64, t.rows)
	}
	t.tape = tape{}
	out := frameWriter{tape: &t.tape}
	d := newRowDecoder()
	for at := int64(0); ; at++ {
		rec, err := m.Next()
		if errors.Is(err, io.EOF) {
			return errors.Join(out.flush(), t.tape.seal())
		}
		if err != nil {
			return err
		}
		if t.place != nil {
			t.place[binary.BigEndian.Uint64(rec[8:])] = at
		}
		d.start(frame{}, rec[16:])
		if err := d.next(); err != nil {
			return err
		}
		if err := out.add(d); err != nil {
			return err
		}
	}
}

// checkParents refuses parents that are no rows of the file.
func (t *taped) checkParents(ctx context.Context, s source) error {
	if !t.parents || t.least >= 0 && t.most < t.rows {
		return nil
	}
	row := int64(0)
	return t.each(ctx, func(d *rowDecoder) error {
		if p := d.row.Parent; p != nil && (*p < 0 || *p >= t.rows) {
			if d.row.SourceRow < 0 {
				d.row.SourceRow = row
			}
			return badParent(s, &d.row, t.rows)
		}
		row++
		return nil
	})
}

// findTold finds the sessions of which a row tells turn or parent: only they keep what the file says.
func (t *taped) findTold(ctx context.Context) error {
	t.told = map[xxh3.Uint128]bool{}
	return t.each(ctx, func(d *rowDecoder) error {
		if d.told && d.row.Session != nil {
			t.told[xxh3.HashString128(*d.row.Session)] = true
		}
		return nil
	})
}

// each visits the rows as they are on the tape.
func (t *taped) each(ctx context.Context, visit func(*rowDecoder) error) error {
	d := newRowDecoder()
	return t.tape.each(func(f frame, blob []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.start(f, blob)
		for range f.rows {
			if err := d.next(); err != nil {
				return err
			}
			if err := visit(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// turnState is the last turn of a session so far.
type turnState struct {
	row  int64
	turn int32
}

// walk visits the rows of the trace.
func (t *taped) walk(ctx context.Context, visit func(row *schemas.TraceRow, line int64) error) error {
	var last map[xxh3.Uint128]turnState
	if t.fill {
		last = map[xxh3.Uint128]turnState{}
	}
	at := int64(0)
	return t.each(ctx, func(d *rowDecoder) error {
		row := &d.row
		stamp := row.ScheduledUs // the next one on the tape is told from it
		row.Row = at
		if row.SourceRow < 0 {
			row.SourceRow = at
		}
		for _, b := range d.big {
			row.HashIDs[b.at] = t.ids[b.text]
		}
		if row.ScheduledUs -= t.base; t.spread != nil {
			row.ScheduledUs = t.spread[at]
		}
		if t.place != nil && row.Parent != nil {
			*row.Parent = t.place[*row.Parent]
		}
		if last != nil && row.Session != nil {
			t.number(d, last)
		}
		at++
		err := visit(row, d.line)
		row.ScheduledUs = stamp
		return err
	})
}

// number gives the turn of a session that the file names without turns its place.
func (t *taped) number(d *rowDecoder, last map[xxh3.Uint128]turnState) {
	key := xxh3.HashString128(*d.row.Session)
	if t.told[key] {
		return
	}
	turn := turnState{row: d.row.Row}
	if before, ok := last[key]; ok {
		d.parent = before.row
		turn.turn = before.turn + 1
		d.row.Turn, d.row.Parent = turn.turn, &d.parent
	}
	last[key] = turn
}
