package ingest

import (
	"bytes"
	"strings"

	"tailgate/internal/jsonscan"
	"tailgate/prompt"
)

// litellmScanner decodes ordinary LiteLLM records in one pass and without allocating. What is odd goes to
// decodeLiteLLM, which decides what becomes of it; for every record that the scanner accepts, both give the same.
//
// Texts are unescaped into an arena that is reused for each message, and so are the records: they hold until the
// next message. Other values point into the message.
type litellmScanner struct {
	scan  jsonscan.Scanner
	arena []byte
	room  int // of the arena that this message may use
	names nameStore
	recs  []*record
	used  int // of recs
	items []item
	parts []prompt.Part
	calls []prompt.ToolCall

	// what is read of one record
	payload  litellmPayload
	params   litellmParameters
	answer   litellmAnswer
	usages   [2]litellmUsage // the answer's and the metadata's
	switches [3]bool         // what the payload's flags point to
}

// Bounds of what the scanner keeps between messages.
const (
	keepArena = 4 << 20
	keepItems = 4096
)

func newLiteLLMScanner() *litellmScanner { return &litellmScanner{} }

// decode reads a message: one record, an array of them, or one on each line. It is a decoder.
func (l *litellmScanner) decode(value []byte) []item {
	l.reset(len(value))
	if l.message(value) {
		return l.items
	}
	l.reset(len(value))
	return decodeEach(value, l.one)
}

// reset forgets the last message and makes room for the texts of one of size bytes, so that the arena never moves
// while something points into it: a text is at most as long as its JSON.
func (l *litellmScanner) reset(size int) {
	for _, rec := range l.recs[:l.used] {
		empty(rec)
	}
	clear(l.arena)
	l.arena, l.room = l.arena[:0], size
	if cap(l.arena) < size || cap(l.arena) > keepArena && size < keepArena {
		l.arena = make([]byte, 0, size+size/2)
	}
	if len(l.recs) > keepItems || cap(l.parts) > keepItems || cap(l.calls) > keepItems {
		l.recs, l.items, l.parts, l.calls = nil, nil, nil, nil
	}
	clear(l.items)
	clear(l.parts)
	clear(l.calls)
	l.items, l.parts, l.calls, l.used = l.items[:0], l.parts[:0], l.calls[:0], 0
}

// message reads a whole message into items; false if it is odd.
func (l *litellmScanner) message(value []byte) bool {
	s := &l.scan
	s.Reset(value)
	if s.Kind() != '[' {
		return l.lines(value)
	}
	for s.Enter('['); s.More(']'); {
		s.Kind() // up to the record
		if !l.item(value) {
			return false
		}
	}
	return s.OK() && s.AtEnd() && len(l.items) > 0
}

// lines reads a record, or several of which each has lines of its own.
func (l *litellmScanner) lines(value []byte) bool {
	s := &l.scan
	for end := 0; !s.AtEnd(); end = s.Pos() {
		apart := bytes.IndexByte(value[end:s.Pos()], '\n') >= 0
		if !l.item(value) {
			return false
		}
		if n := len(l.items); n > 1 && (!apart || bytes.IndexByte(l.items[n-1].raw, '\n') >= 0) {
			return false
		}
	}
	return len(l.items) == 1 || len(l.items) > 1 && bytes.IndexByte(l.items[0].raw, '\n') < 0
}

// item reads the record that begins at the scanner's position in value.
func (l *litellmScanner) item(value []byte) bool {
	start := l.scan.Pos()
	rec := l.record()
	if rec == nil {
		return false
	}
	l.items = append(l.items, item{rec: rec, raw: value[start:l.scan.Pos()]})
	return true
}

// one decodes a record of a message that was odd as a whole.
func (l *litellmScanner) one(raw []byte) []item {
	l.scan.Reset(raw)
	if rec := l.record(); rec != nil && l.scan.AtEnd() {
		return []item{{rec: rec, raw: raw}}
	}
	return decodeLiteLLM(raw)
}

// record reads one record; nil if it is odd.
func (l *litellmScanner) record() *record {
	if l.used == len(l.recs) {
		l.recs = append(l.recs, &record{})
	}
	rec := l.recs[l.used]
	texts, parts, calls := len(l.arena), len(l.parts), len(l.calls)
	*rec = record{prompt: rec.prompt, tags: rec.tags[:0]}
	l.payload, l.params, l.answer, l.usages = litellmPayload{}, litellmParameters{}, litellmAnswer{}, [2]litellmUsage{}
	l.members(rec)
	if l.scan.OK() && l.payload.arrival(rec) == "" && l.payload.fill(rec, &l.answer, &l.params, &l.names) {
		l.used++
		return rec
	}
	empty(rec)
	clear(l.arena[texts:l.room]) // what was read of a broken text lies behind the last one
	clear(l.parts[parts:])
	clear(l.calls[calls:])
	l.arena, l.parts, l.calls = l.arena[:texts], l.parts[:parts], l.calls[:calls]
	return nil
}

// empty clears rec for reuse, and lets go of unusually long lists.
func empty(rec *record) {
	rec.prompt.Clear()
	if cap(rec.prompt.Messages) > keepItems || cap(rec.prompt.Tools) > keepItems || cap(rec.tags) > keepItems {
		*rec = record{}
	}
}

// label reads what a label reads.
func (l *litellmScanner) label() (v label) {
	switch s := &l.scan; s.Kind() {
	case '"':
		v, l.arena = s.Bytes(l.arena)
	case jsonscan.Number:
		v = s.Raw()
	case 't', 'f', 'n':
		s.Skip()
	default:
		s.Fail()
	}
	return v
}

// word reads what a text reads and is not cleared as part of the prompt.
func (l *litellmScanner) word() (v text) {
	if !l.scan.Null() {
		v, l.arena = l.scan.Bytes(l.arena)
	}
	return v
}

// text reads a text of the prompt.
func (l *litellmScanner) text() []byte {
	if l.scan.Null() {
		return nil
	}
	start := len(l.arena)
	l.arena = l.scan.Text(l.arena)
	return l.arena[start:len(l.arena):len(l.arena)]
}

// raw copies a value of the prompt as it stands; nil for null.
func (l *litellmScanner) raw() []byte {
	if l.scan.Null() {
		return nil
	}
	start := len(l.arena)
	l.arena = append(l.arena, l.scan.Raw()...)
	return l.arena[start:len(l.arena):len(l.arena)]
}

// name reads what a text reads, as a string.
func (l *litellmScanner) name() string { return l.names.text(l.word()) }

func (l *litellmScanner) number() (v number) {
	if !l.scan.Null() {
		v = number{v: l.scan.Float(), set: true}
	}
	return v
}

// flag reads what a flag reads; at is where the value is kept. Anything but a boolean, null, or how Python
// spells them in a string is odd.
func (l *litellmScanner) flag(at *bool) (f flag) {
	switch s := &l.scan; s.Kind() {
	case 't', 'f':
		*at, f.v = s.Bool(), at
	case 'n':
		s.Skip()
	case '"':
		switch string(s.Raw()) {
		case `"true"`, `"True"`:
			*at, f.v = true, at
		case `"false"`, `"False"`:
			*at, f.v = false, at
		case `""`, `"None"`:
		default:
			s.Fail()
		}
	default:
		s.Fail()
	}
	return f
}

// enter tells whether an object begins here and enters it; null is passed over.
func (l *litellmScanner) enter() bool { return l.begin('{') }

// begin is enter for an object ('{') or an array ('[').
func (l *litellmScanner) begin(open byte) bool {
	if l.scan.Null() {
		return false
	}
	l.scan.Enter(open)
	return l.scan.OK()
}

// nameStore makes strings of names in chunks of memory, so that each does not cost an allocation. A chunk lives as
// long as one of its strings. A nil store allocates each.
type nameStore struct{ chunk strings.Builder }

const nameChunk = 64 << 10

func (n *nameStore) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if n == nil || len(b) > nameChunk/16 {
		return string(b)
	}
	if n.chunk.Cap()-n.chunk.Len() < len(b) {
		n.chunk.Reset()
		n.chunk.Grow(nameChunk)
	}
	start := n.chunk.Len()
	n.chunk.Write(b)
	return n.chunk.String()[start:]
}
