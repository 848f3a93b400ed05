package trace

import (
	"fmt"
	"slices"

	"tailgate/schemas"
)

// raw is what a format's reader hands on: rows in file order with the stamps of the file. Row and Parent are
// places in the file; SourceRow is told by the file or, below 0, equal to Row. A batch is a raw that is a part of
// a file: there Row and lines count from the batch's own first one, Parent from the file's.
type raw struct {
	rows    []schemas.TraceRow
	lines   []int64
	told    []bool   // the file told turn or parent of the row; nil = of no row
	big     []bigRef // ids outside int64
	skipped []Fault  // rows that could not be read, where the reader goes on
	chats   []chat   // Bailian only
	bad     *badLine // the row that ended the reading
	blob    []byte   // the rows as a tape holds them
	nlines  int64    // lines that the batch covers; 0 where lines count from the file's first
	facts
}

// facts are what a reader knows of a file apart from its rows.
type facts struct {
	lenient    bool  // go on after a row that cannot be read
	allTold    bool  // the format tells turn and parent of every row
	wall       bool  // stamps are wall time
	unitUs     int64 // the step in which the format writes its stamps
	quantumUs  int64 // step of the clock, where the format declares one
	finer      bool  // a stamp lies off the clock that the format declares
	zeroOut    int64 // rows whose output length 0 was read as unknown
	failed     int64 // rows without response tokens, in formats where that is a failure
	blank      int64
	firstBlank int64
	notes      []string
}

// bigRef is an id of a row that must be remapped.
type bigRef struct {
	row int
	bigID
}

// badLine is a row that cannot be read.
type badLine struct {
	line  int64
	whole bool // the line has an end
	err   error
}

// note adds a sentence to the trace's notes.
func (f *facts) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// add takes the counts of a later part of the file, whose lines come after the first line0.
func (f *facts) add(b *facts, line0 int64) {
	if f.blank == 0 && b.blank > 0 {
		f.firstBlank = line0 + b.firstBlank
	}
	f.blank, f.zeroOut, f.failed = f.blank+b.blank, f.zeroOut+b.zeroOut, f.failed+b.failed
	f.finer = f.finer || b.finer
	f.lenient, f.allTold, f.wall, f.unitUs, f.quantumUs = b.lenient, b.allTold, b.wall, b.unitUs, b.quantumUs
	f.notes = append(f.notes, b.notes...)
}

// sayRead notes what the reader did, before all other notes.
func (f *facts) sayRead() {
	if f.failed > 0 {
		f.note("%d rows have no response tokens: failed requests, kept as arrivals", f.failed)
	}
	if f.blank > 0 {
		f.note("%d blank lines were skipped, the first at line %d", f.blank, f.firstBlank)
	}
}

// taker takes the rows of a file, batch by batch.
type taker interface {
	// prepare works on a batch alone, at the same time as on others.
	prepare(b *raw) error
	// take takes the batches in file order. Where the source is transient nothing of b may be kept.
	take(b *raw) error
}

// gather takes all rows into memory.
type gather struct{ raw }

func (g *gather) prepare(*raw) error { return nil }

func (g *gather) take(b *raw) error {
	base, line0 := int64(len(g.rows)), g.nlines
	if b.told != nil && g.told == nil {
		g.told = make([]bool, base)
	}
	if g.told != nil {
		g.told = append(g.told, b.told...)
		g.told = append(g.told, make([]bool, int(base)+len(b.rows)-len(g.told))...)
	}
	for _, r := range b.big {
		r.row += int(base)
		g.big = append(g.big, r)
	}
	g.rows = append(g.rows, b.rows...)
	for i := range g.rows[base:] {
		row := &g.rows[base:][i]
		if row.Row += base; row.SourceRow < 0 {
			row.SourceRow = row.Row
		}
	}
	for _, l := range b.lines {
		g.lines = append(g.lines, line0+l)
	}
	g.skipped = appendSkipped(g.skipped, b.skipped, line0)
	g.chats = append(g.chats, b.chats...)
	g.nlines += b.nlines
	g.add(&b.facts, line0)
	return nil
}

func appendSkipped(all, more []Fault, line0 int64) []Fault {
	all = slices.Grow(all, len(more))
	for _, f := range more {
		f.Line += line0
		all = append(all, f)
	}
	return all
}

// reset empties a batch for the next one; what the format declares stays.
func (r *raw) reset() {
	f := r.facts
	*r = raw{rows: r.rows[:0], lines: r.lines[:0], big: r.big[:0], chats: r.chats[:0], blob: r.blob[:0],
		facts: facts{lenient: f.lenient, allTold: f.allTold, wall: f.wall, unitUs: f.unitUs, quantumUs: f.quantumUs}}
}

// unreadable takes the error of a row: true where the reader goes on without it.
func (r *raw) unreadable(name string, line int64, whole bool, err error) bool {
	if !r.lenient {
		r.bad = &badLine{line, whole, err}
		return false
	}
	if !whole {
		err = fmt.Errorf("the last line is cut: %w", err)
	}
	r.skipped = append(r.skipped, Fault{Name: name, Line: line, Row: -1, Rule: RuleReadable, Detail: err.Error()})
	return true
}
