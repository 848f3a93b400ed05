package trace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

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

// readJSONL reads Mooncake JSONL.
func readJSONL(ctx context.Context, in *bufio.Reader, s source, to taker) error {
	return readLines(ctx, in, s, func() *rowBuilder {
		b := newRowBuilder(s, &keyNames)
		if s.unit == UnitMicros {
			b.out.unitUs = 1
		}
		return b
	}, to)
}

func newRowBuilder(s source, names *names) *rowBuilder {
	return &rowBuilder{fields: fields{names: names}, out: &raw{facts: facts{unitUs: 1000, lenient: s.Lenient}}, strings: newIntern()}
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
	after   func() error // called for every row that was added; nil = nothing
}

// next makes b ready for the next batch; transient = nobody keeps the rows of the last one.
func (b *rowBuilder) next(transient bool) {
	b.out.reset()
	if transient {
		b.blocks.rewind()
		b.counts.rewind()
		b.places.rewind()
		b.strings.trim()
	}
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
		Row: place, SourceRow: -1, ScheduledUs: b.num[keyTimestamp], InputTokens: int32(b.num[keyInput]),
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
		if b.flag[keyStream] {
			row.Stream = &streamed
		}
	}
	row.Damaged = b.has[keyDamaged] && b.flag[keyDamaged]
	if b.has[keySource] {
		row.SourceRow = b.num[keySource]
	}
	if b.has[keyCopy] {
		row.Copy = int32(b.num[keyCopy])
	}
	b.addTurn(&row)
	b.out.rows = append(b.out.rows, row)
	b.out.lines = append(b.out.lines, line)
	if b.after != nil {
		return b.after()
	}
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

// trim forgets all strings when there are many.
func (in *intern) trim() {
	const many = 1 << 16
	if len(in.known) > many {
		in.known = map[string]*string{}
	}
}

// arena hands out values and slices from large blocks.
type arena[T any] struct{ block, free []T }

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
		a.block = make([]T, arenaBlock)
		a.free = a.block
	}
	out := a.free[:len(src):len(src)]
	a.free = a.free[len(src):]
	copy(out, src)
	return out
}

// rewind gives the last block out anew: nothing that the arena gave may be in use.
func (a *arena[T]) rewind() { a.free = a.block }

func (a *arena[T]) one(v T) *T { return &a.copyOf([]T{v})[0] }
