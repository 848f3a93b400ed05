package trace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// maxLine bounds a line of JSONL in bytes: 5 million hash ids.
const maxLine = 64 << 20

// raw is what a format's reader hands on: rows in file order with the stamps of the file. Row is the place in
// the file, Parent too; SourceRow is told by the file or equal to Row.
type raw struct {
	rows      []schemas.TraceRow
	lines     []int64
	told      []bool   // the file told turn or parent of the row; nil = of no row
	allTold   bool     // the format tells turn and parent of every row
	big       []bigRef // ids outside int64
	unitUs    int64    // the step in which the format writes its stamps
	quantumUs int64    // step of the clock, where the format declares one
	wall      bool     // stamps are wall time
	notes     []string
	zeroOut   int64   // rows whose output length 0 was read as unknown
	skipped   []Fault // rows that could not be read, where the reader goes on
	lenient   bool    // go on after a row that cannot be read
}

// bigRef is an id of a row that must be remapped.
type bigRef struct {
	row int
	bigID
}

// note adds a sentence to the trace's notes.
func (r *raw) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// shiftOf is the power of ten from a unit to microseconds.
func shiftOf(unit string) int {
	switch unit {
	case UnitSeconds:
		return 6
	case UnitMillis:
		return 3
	}
	return 0
}

// unreadable takes the error of a row: an error again, or one row less where the reader goes on.
func (r *raw) unreadable(name string, line int64, whole bool, err error) error {
	if !r.lenient {
		return lineError(name, line, whole, err)
	}
	if !whole {
		err = fmt.Errorf("the last line is cut: %w", err)
	}
	r.skipped = append(r.skipped, Fault{Name: name, Line: line, Row: -1, Rule: RuleReadable, Detail: err.Error()})
	return nil
}

// readJSONL reads Mooncake JSONL.
func readJSONL(ctx context.Context, in *bufio.Reader, s source) (*raw, error) {
	build := newRowBuilder(s, &keyNames)
	if s.unit == UnitMicros {
		build.out.unitUs = 1
	}
	return build.out, build.readLines(ctx, in, s, nil)
}

func newRowBuilder(s source, names *names) *rowBuilder {
	return &rowBuilder{fields: fields{names: names}, out: &raw{unitUs: 1000, lenient: s.Lenient}, strings: newIntern()}
}

// readLines adds a row for every line; after is called for each of them, nil = nothing.
func (b *rowBuilder) readLines(ctx context.Context, in *bufio.Reader, s source, after func() error) error {
	lines := lineReader{r: in}
	shift := shiftOf(s.unit)
	blank, firstBlank := int64(0), int64(0)
	for {
		line, whole, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return streamError(s.name, lines.n, err)
		}
		if skipSpace(line, 0) == len(line) {
			if blank++; blank == 1 {
				firstBlank = lines.n
			}
			continue
		}
		if !b.readFast(line, shift) {
			err = b.readSlow(line, shift)
		}
		if err == nil {
			err = b.add(lines.n)
		}
		if err == nil && after != nil {
			err = after()
		}
		if err != nil {
			if err := b.out.unreadable(s.name, lines.n, whole, err); err != nil {
				return err
			}
		}
		if lines.n%4096 == 0 && ctx.Err() != nil {
			return fmt.Errorf("reading trace %s: %w", s.name, ctx.Err())
		}
	}
	if blank > 0 {
		b.out.note("%d blank lines were skipped, the first at line %d", blank, firstBlank)
	}
	return nil
}

// lineError names the line of a broken row.
func lineError(name string, line int64, whole bool, err error) error {
	hint := "mend or remove the line"
	if !whole {
		err = fmt.Errorf("the last line is cut: %w", err)
		hint = "the file was not written to its end: fetch it again, or remove the last line"
	}
	return fault.Mark(fmt.Errorf("reading trace %s:%d: %w", name, line, err), fault.Data, hint)
}

// streamError tells a broken stream from one that could not be read; line is the last line that was read.
func streamError(name string, line int64, err error) error {
	if errors.Is(err, errLongLine) || errors.Is(err, errBrokenStream) {
		return fault.Mark(fmt.Errorf("reading trace %s: after line %d: %w", name, line, err), fault.Data, "")
	}
	return fmt.Errorf("reading trace %s: %w", name, err)
}

// rowBuilder turns fields into rows, with few allocations.
type rowBuilder struct {
	fields
	out     *raw
	strings *intern
	blocks  arena[int64]
	counts  arena[int32]
	places  arena[int64]
}

var streamed, notStreamed = true, false

// add appends the row that the fields hold.
func (b *rowBuilder) add(line int64) error {
	if !b.has[keyTimestamp] {
		return errors.New("timestamp is missing")
	}
	if !b.has[keyInput] {
		return errors.New("input_length is missing")
	}
	place := int64(len(b.out.rows))
	row := schemas.TraceRow{
		Row: place, SourceRow: place, ScheduledUs: b.num[keyTimestamp], InputTokens: int32(b.num[keyInput]),
		Session: b.str(keySession), Tenant: b.str(keyTenant), Class: b.str(keyClass), Model: b.str(keyModel),
		Status: b.str(keyStatus),
	}
	if b.has[keyOutput] {
		row.OutputTokens = b.output(b.num[keyOutput])
	}
	if b.has[keyHashIDs] {
		row.HashIDs = b.blocks.copyOf(b.ids)
		for _, id := range b.big {
			b.out.big = append(b.out.big, bigRef{row: int(place), bigID: id})
		}
	}
	if b.has[keyStream] {
		row.Stream = &notStreamed
		if b.stream {
			row.Stream = &streamed
		}
	}
	if b.has[keySource] {
		row.SourceRow = b.num[keySource]
	}
	if b.has[keyCopy] {
		row.Copy = int32(b.num[keyCopy])
	}
	b.addTurn(&row)
	b.out.rows = append(b.out.rows, row)
	b.out.lines = append(b.out.lines, line)
	return nil
}

// addTurn takes turn and parent, and marks the row where the file tells one of them.
func (b *rowBuilder) addTurn(row *schemas.TraceRow) {
	told := b.has[keyTurn] || b.has[keyParent]
	if told && b.out.told == nil {
		b.out.told = make([]bool, len(b.out.rows), cap(b.out.rows)+1)
	}
	if b.out.told != nil {
		b.out.told = append(b.out.told, told)
	}
	if b.has[keyTurn] {
		row.Turn = int32(b.num[keyTurn])
	}
	if b.has[keyParent] {
		row.Parent = b.places.one(b.num[keyParent])
	}
}

// output is a row's output length; 0 says nothing about a length.
func (b *rowBuilder) output(n int64) *int32 {
	if n == 0 {
		b.out.zeroOut++
		return nil
	}
	return b.counts.one(int32(n))
}

func (b *rowBuilder) str(k key) *string {
	if !b.has[k] {
		return nil
	}
	return b.strings.get(b.text[k])
}

// lineReader cuts a stream in lines.
type lineReader struct {
	r    *bufio.Reader
	long []byte
	n    int64 // lines handed out
}

var errLongLine = errors.New("a line is longer than 64 MiB")

// next returns the next line without its end, valid until the call after; whole is false for a last line that
// has no end. The error is io.EOF after the last line.
func (l *lineReader) next() (line []byte, whole bool, err error) {
	line, err = l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = l.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			if l.long = append(l.long, line...); len(l.long) > maxLine {
				return nil, false, errLongLine
			}
			line, err = l.r.ReadSlice('\n')
		}
		l.long = append(l.long, line...)
		line = l.long
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, false, err
	}
	l.n++
	return bytes.TrimSuffix(line, []byte{'\n'}), err == nil, nil
}

// intern keeps one copy of each string.
type intern struct{ known map[string]*string }

func newIntern() *intern { return &intern{known: map[string]*string{}} }

func (in *intern) get(b []byte) *string {
	if s, ok := in.known[string(b)]; ok {
		return s
	}
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	in.known[string(b)] = &s
	return &s
}

// ptr is get for a pointer; null stays null.
func (in *intern) ptr(s *string) *string {
	if s == nil {
		return nil
	}
	return in.get([]byte(*s))
}

// arena hands out values and slices from large blocks.
type arena[T any] struct{ free []T }

const arenaBlock = 1 << 13

// copyOf copies src; an empty src gives an empty slice that is not nil.
func (a *arena[T]) copyOf(src []T) []T {
	if len(src) == 0 {
		return []T{}
	}
	if len(src) > len(a.free) {
		if len(src) > arenaBlock/8 {
			return append(make([]T, 0, len(src)), src...)
		}
		a.free = make([]T, arenaBlock)
	}
	out := a.free[:len(src):len(src)]
	a.free = a.free[len(src):]
	copy(out, src)
	return out
}

func (a *arena[T]) one(v T) *T { return &a.copyOf([]T{v})[0] }
