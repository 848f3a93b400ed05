package ingest

import (
	"bytes"
	"slices"

	"tailgate/internal/jsonscan"
	"tailgate/prompt"
)

// reader reads plain JSON in one pass and without allocating. It belongs to one decoder. Whatever is odd it leaves
// to the exact functions, which decide what becomes of it; for every value that it accepts, both give the same.
//
// Texts are unescaped into an arena that is reused for each message, and so are the records: they hold until the
// next message. Other values point into the message.
type reader struct {
	exact    bool // leave everything to the exact functions
	unproven bool // the record may be no JSON: nothing but a plain one may be decoded

	scan  jsonscan.Scanner
	arena []byte
	room  int // of the arena that this message may use
	names nameStore
	recs  []*record
	used  int // of recs
	items []item
	parts []prompt.Part
	calls []prompt.ToolCall
	said  prompt.Prompt // an answer's messages

	asked   requestBody // the last one of a record
	answers responseBody
}

// Bounds of what a reader keeps between messages.
const (
	keepArena = 4 << 20
	keepItems = 4096
)

// reset forgets the last message and makes room for the texts of one of size bytes. A text is at most as long as
// its JSON, but JSON in strings is read twice: then the arena may grow.
func (r *reader) reset(size int) {
	for _, rec := range r.recs[:r.used] {
		empty(rec)
	}
	clear(r.arena)
	r.arena, r.room = r.arena[:0], size
	if cap(r.arena) < size || cap(r.arena) > keepArena && size < keepArena {
		if size < keepArena {
			size += size / 2 // the next one may be a little larger
		}
		r.arena = make([]byte, 0, size)
	}
	if len(r.recs) > keepItems || cap(r.parts) > keepItems || cap(r.calls) > keepItems {
		r.recs, r.items, r.parts, r.calls = nil, nil, nil, nil
	}
	clear(r.items)
	clear(r.parts)
	clear(r.calls)
	r.items, r.parts, r.calls, r.used = r.items[:0], r.parts[:0], r.calls[:0], 0
	r.said.Clear()
}

// empty clears rec for reuse, and lets go of unusually long lists.
func empty(rec *record) {
	rec.prompt.Clear()
	if cap(rec.prompt.Messages) > keepItems || cap(rec.prompt.Tools) > keepItems || cap(rec.tags) > keepItems {
		*rec = record{}
	}
}

// record returns an empty record.
func (r *reader) record() *record {
	if r.used == len(r.recs) {
		r.recs = append(r.recs, &record{})
	}
	rec := r.recs[r.used]
	*rec = record{prompt: rec.prompt, tags: rec.tags[:0]}
	r.used++
	return rec
}

// one returns it as the items of a record.
func (r *reader) one(it item) []item {
	r.items = append(r.items, it)
	n := len(r.items)
	return r.items[n-1 : n : n]
}

// records makes a decoder of a function that decodes one JSON object.
func (r *reader) records(one func(raw []byte) []item) decoder {
	return func(value []byte) []item {
		if items := r.atOnce(value, one); items != nil {
			return items
		}
		r.reset(len(value))
		return decodeEach(value, one)
	}
}

// atOnce decodes a message that is one plain object, without looking first whether it is JSON at all: what is read
// in one pass has been seen whole. nil = it has to be looked at.
func (r *reader) atOnce(value []byte, one func(raw []byte) []item) (items []item) {
	if !r.exact && len(value) > 0 && value[0] == '{' && !heavy(value) {
		r.reset(len(value))
		r.unproven = true
		items = one(bytes.TrimSpace(value))
		r.unproven = false
	}
	return items
}

// try reads raw with read, which may add to p; false when raw is odd, and then nothing of it stays.
func (r *reader) try(raw []byte, p *prompt.Prompt, read func(r *reader, p *prompt.Prompt)) bool {
	if r.exact {
		return false
	}
	outer, mark := r.scan, r.mark(p)
	r.scan.Reset(raw)
	read(r, p)
	ok := r.scan.OK() && r.scan.AtEnd()
	if !ok {
		r.back(mark, p, len(raw))
	}
	r.scan = outer
	return ok
}

// readerMark is how much a reader, and a prompt, held.
type readerMark struct{ texts, parts, calls, messages, tools int }

func (r *reader) mark(p *prompt.Prompt) readerMark {
	return readerMark{len(r.arena), len(r.parts), len(r.calls), len(p.Messages), len(p.Tools)}
}

// back forgets what was read since m, of JSON of size bytes.
func (r *reader) back(m readerMark, p *prompt.Prompt, size int) {
	// What was read of a broken text lies behind the last one.
	clear(r.arena[m.texts:min(max(len(r.arena), m.texts+size), cap(r.arena))])
	for _, part := range r.parts[m.parts:] {
		clear(part.Text)
	}
	clear(r.parts[m.parts:])
	clear(r.calls[m.calls:])
	clear(p.Messages[m.messages:])
	clear(p.Tools[m.tools:])
	r.arena, r.parts, r.calls = r.arena[:m.texts], r.parts[:m.parts], r.calls[:m.calls]
	p.Messages, p.Tools = p.Messages[:m.messages], p.Tools[:m.tools]
}

// unquoted returns what a valid JSON string, raw, stands for.
func (r *reader) unquoted(raw []byte) []byte {
	if !r.exact {
		start := len(r.arena)
		if out, ok := jsonscan.AppendUnquoted(r.arena, raw); ok {
			r.arena = out
			return out[start:len(out):len(out)]
		}
	}
	return unquote(raw[1 : len(raw)-1])
}

// keep copies b.
func (r *reader) keep(b []byte) []byte {
	if r.exact {
		return slices.Clone(b)
	}
	start := len(r.arena)
	r.arena = append(r.arena, b...)
	return r.arena[start:len(r.arena):len(r.arena)]
}
