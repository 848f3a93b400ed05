package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// Implausible: at least this many rows at a mean rate of at least this many per second, in a unit that nobody
// declared, are taken for stamps in another unit.
const (
	implausibleRows = 10
	implausibleRate = 1000.0
)

// source is what is known of a trace beside its rows.
type source struct {
	Options
	name    string
	format  string
	unit    string
	assumed bool // the unit is the format's, not declared
	side    *sidecar

	transient bool // nobody keeps a batch of rows: what it holds is used again
}

// arrange turns the rows of a file into a trace: sorted, counted from zero, spread, numbered.
func (r *raw) arrange(s source) (*Trace, error) {
	if err := notEmpty(s, int64(len(r.rows)), r.skipped); err != nil {
		return nil, err
	}
	r.sayRead()
	r.remapBig()
	r.sort()
	if err := r.placeParents(s); err != nil {
		return nil, err
	}
	t := &Trace{Rows: r.rows, Unread: r.skipped, Meta: Meta{Name: s.name, Format: s.format, Unit: s.unit, Convention: ConventionCumulative,
		Lines: r.lines}}
	s.side.describe(&t.Meta)
	if err := r.rebase(t, s); err != nil {
		return nil, err
	}
	if err := r.checkUnit(s, int64(len(r.rows)), r.rows[len(r.rows)-1].ScheduledUs-r.rows[0].ScheduledUs); err != nil {
		return nil, err
	}
	r.dequantise(t, s)
	r.fillTurns()
	if r.zeroOut > 0 {
		r.note("%d rows have output length 0: read as unknown", r.zeroOut)
	}
	t.Meta.BlockSize = r.blockSize(s)
	t.Notes = r.notes
	if s.convention() == ConventionDelta {
		return t, t.cumulate()
	}
	return t, nil
}

// notEmpty refuses files without rows, and those that have more or fewer than their sidecar says.
func notEmpty(s source, rows int64, skipped []Fault) error {
	switch {
	case rows == 0 && len(skipped) > 0:
		return fault.Mark(fmt.Errorf("reading trace %s: no row can be read; line %d: %s", s.name, skipped[0].Line, skipped[0].Detail), fault.Data, "")
	case rows == 0:
		return fault.Mark(fmt.Errorf("reading trace %s: the file holds no rows", s.name), fault.Data, "")
	case s.side != nil && s.side.Rows >= 0 && !s.Lenient && s.side.Rows != rows:
		return fault.Mark(fmt.Errorf("reading trace %s: the file holds %d rows, its sidecar says %d", s.name, rows, s.side.Rows),
			fault.Data, "the file is cut or was edited: fetch it again, or remove "+SidecarSuffix)
	}
	return nil
}

// remapBig gives every id outside int64 a dense id that no other row uses.
func (r *raw) remapBig() {
	if len(r.big) == 0 {
		return
	}
	isBig := map[[2]int]bool{}
	for _, b := range r.big {
		isBig[[2]int{b.row, b.at}] = true
	}
	used := map[int64]bool{}
	for i := range r.rows {
		for j, id := range r.rows[i].HashIDs {
			if !isBig[[2]int{i, j}] {
				used[id] = true
			}
		}
	}
	dense := map[string]int64{}
	next := int64(0)
	for _, b := range r.big {
		id, ok := dense[b.text]
		if !ok {
			for used[next] {
				next++
			}
			id = next
			next++
			dense[b.text] = id
		}
		r.rows[b.row].HashIDs[b.at] = id
	}
	r.note("%d hash ids do not fit 63 bits: remapped densely", len(dense))
}

// sort orders rows by stamp, ties in file order.
func (r *raw) sort() {
	late, newest := 0, int64(math.MinInt64)
	for i := range r.rows {
		if r.rows[i].ScheduledUs < newest {
			late++
		}
		newest = max(newest, r.rows[i].ScheduledUs)
	}
	if late == 0 {
		return
	}
	r.note("%d of %d rows were out of order by timestamp: sorted, ties in file order", late, len(r.rows))
	slices.SortStableFunc(r.rows, func(a, b schemas.TraceRow) int { return cmp.Compare(a.ScheduledUs, b.ScheduledUs) })
	lines, told := r.lines, r.told
	r.lines, r.told = permute(lines, r.rows), permute(told, r.rows)
}

// permute orders what lies beside the rows as the rows were ordered; nil stays nil.
func permute[T any](beside []T, rows []schemas.TraceRow) []T {
	if beside == nil {
		return nil
	}
	out := make([]T, len(beside))
	for i := range rows {
		out[i] = beside[rows[i].Row]
	}
	return out
}

// placeParents numbers the rows and turns parents from places in the file into places in the trace.
func (r *raw) placeParents(s source) error {
	place := make([]int64, len(r.rows))
	for i := range r.rows {
		place[r.rows[i].Row] = int64(i)
	}
	for i := range r.rows {
		row := &r.rows[i]
		row.Row = int64(i)
		if row.Parent == nil {
			continue
		}
		if *row.Parent < 0 || *row.Parent >= int64(len(place)) {
			return badParent(s, row, int64(len(place)))
		}
		row.Parent = &place[*row.Parent]
	}
	return nil
}

func badParent(s source, row *schemas.TraceRow, rows int64) error {
	return fault.Mark(fmt.Errorf("reading trace %s: row %d has parent %d, the file has %d rows", s.name, row.SourceRow, *row.Parent, rows), fault.Data, "")
}

// rebase subtracts the earliest stamp, unless the file counts from its own zero.
func (r *raw) rebase(t *Trace, s source) error {
	base, err := r.zero(&t.Meta, s, r.rows[0].ScheduledUs)
	for i := range r.rows {
		r.rows[i].ScheduledUs -= base
	}
	return err
}

// zero is the stamp of the schedule's zero; first is the earliest stamp.
func (f *facts) zero(m *Meta, s source, first int64) (int64, error) {
	if s.side != nil && s.side.ZeroBased {
		if first < 0 {
			return 0, fault.Mark(fmt.Errorf("reading trace %s: a timestamp lies before the trace's zero", s.name), fault.Data, "")
		}
		return 0, nil
	}
	if year := time.UnixMicro(first).UTC().Year(); f.wall || year >= 2000 && year < 2100 {
		m.StartedAt = time.UnixMicro(first).UTC()
	}
	return first, nil
}

// checkUnit says the unit aloud, and stops where it is assumed and gives a rate that no log has.
func (f *facts) checkUnit(s source, rows, span int64) error {
	if !s.assumed || span == 0 {
		return nil
	}
	rate := float64(rows-1) / (float64(span) / 1e6)
	length := micros(span)
	if rows >= implausibleRows && rate >= implausibleRate {
		err := fmt.Errorf("reading trace %s: timestamps read as %s give %.4g requests/s over %v (%d rows)", s.name,
			s.unit, rate, length, rows)
		hint := "--timestamp-unit s where they are seconds, --timestamp-unit " + s.unit + " where the rate is right"
		return fault.Mark(err, fault.Usage, hint)
	}
	f.note("timestamps are read as %s: %.4g requests/s over %v", s.unit, rate, length)
	return nil
}

// fillTurns numbers the turns of sessions that the file names without telling turn or parent of any row.
func (r *raw) fillTurns() {
	if r.allTold {
		return
	}
	told := map[string]bool{}
	for i := range r.told {
		if r.told[i] && r.rows[i].Session != nil {
			told[*r.rows[i].Session] = true
		}
	}
	var places arena[int64]
	last := map[string]*schemas.TraceRow{}
	for i := range r.rows {
		row := &r.rows[i]
		if row.Session == nil || told[*row.Session] {
			continue
		}
		if before := last[*row.Session]; before != nil {
			row.Turn, row.Parent = before.Turn+1, places.one(before.Row)
		}
		last[*row.Session] = row
	}
}

// blockSize settles the block size.
func (r *raw) blockSize(s source) int {
	misfit, with := int64(0), int64(0)
	size := s.declaredBlockSize()
	for i := range r.rows {
		if r.rows[i].HashIDs != nil {
			with++
			if len(r.rows[i].HashIDs) != blocks(r.rows[i].InputTokens, size) {
				misfit++
			}
		}
	}
	return r.settleBlockSize(size, with, misfit, func() int { return fittingSize(r.rows) })
}

// settleBlockSize is size, or 0 where no row has ids. It notes when the ids fit another usual size.
func (f *facts) settleBlockSize(size int, with, misfit int64, fitting func() int) int {
	if with == 0 {
		return 0
	}
	if 2*misfit > with {
		if fits := fitting(); fits > 0 {
			f.note("%d of %d rows break block size %d, and all fit %d: give --block-size %d", misfit, with, size, fits, fits)
		}
	}
	return size
}

// convention is what the options say, else the sidecar, else cumulative.
func (s source) convention() string {
	switch {
	case s.Convention != "":
		return s.Convention
	case s.side != nil && s.side.Convention != "":
		return s.side.Convention
	}
	return ConventionCumulative
}

// declaredBlockSize is the option, else the sidecar's, else the format's.
func (s source) declaredBlockSize() int {
	switch {
	case s.BlockSize > 0:
		return s.BlockSize
	case s.side != nil && s.side.BlockSize > 0:
		return s.side.BlockSize
	case s.format == FormatVLLM || s.format == FormatBailian:
		return 16
	}
	return 512
}

// fittingSize is the usual block size that all rows fit; 0 = none.
func fittingSize(rows []schemas.TraceRow) int {
	for _, size := range usualSizes {
		if !slices.ContainsFunc(rows, func(r schemas.TraceRow) bool {
			return r.HashIDs != nil && len(r.HashIDs) != blocks(r.InputTokens, size)
		}) {
			return size
		}
	}
	return 0
}

// blocks is the number of blocks that hold tokens: ⌈tokens/size⌉.
func blocks(tokens int32, size int) int { return (int(tokens) + size - 1) / size }
