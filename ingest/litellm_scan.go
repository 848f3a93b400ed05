package ingest

import (
	"bytes"
)

// litellmScanner decodes ordinary LiteLLM records in one pass and without allocating. What is odd goes to
// decodeLiteLLM, which decides what becomes of it; for every record that the scanner accepts, both give the same.
//
// Texts are unescaped into an arena that is reused for each message, and so are the records: they hold until the
// next message. Other values point into the message.
type litellmScanner struct {
	reader

	// what is read of one record
	payload  litellmPayload
	params   litellmParameters
	answer   litellmAnswer
	usages   [2]litellmUsage // the answer's and the metadata's
	switches [3]bool         // what the payload's flags point to
}

func newLiteLLMScanner() *litellmScanner { return &litellmScanner{} }

// decode reads a message: one record, an array of them, or one on each line. It is a decoder.
func (l *litellmScanner) decode(value []byte) []item {
	l.reset(len(value))
	if !heavy(value) && l.message(value) {
		return l.items
	}
	l.reset(len(value))
	return decodeEach(value, l.single)
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
		if len(l.items) > maxRecords || !l.item(value) {
			return false
		}
	}
	return s.OK() && len(l.items) <= maxRecords && s.AtEnd() && len(l.items) > 0
}

// lines reads a record, or several of which each has lines of its own.
func (l *litellmScanner) lines(value []byte) bool {
	s := &l.scan
	for end := 0; !s.AtEnd(); end = s.Pos() {
		apart := bytes.IndexByte(value[end:s.Pos()], '\n') >= 0
		if len(l.items) >= maxRecords || !l.item(value) {
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
	rec := l.read()
	if rec == nil {
		return false
	}
	l.items = append(l.items, item{rec: rec, raw: value[start:l.scan.Pos()]})
	return true
}

// single decodes a record of a message that was odd as a whole.
func (l *litellmScanner) single(raw []byte) []item {
	l.scan.Reset(raw)
	if rec := l.read(); rec != nil && l.scan.AtEnd() {
		return []item{{rec: rec, raw: raw}}
	}
	return decodeLiteLLM(raw)
}

// read reads one record; nil if it is odd.
func (l *litellmScanner) read() *record {
	rec := l.record()
	mark, start := l.mark(&rec.prompt), l.scan.Pos()
	l.payload, l.params, l.answer, l.usages = litellmPayload{}, litellmParameters{}, litellmAnswer{}, [2]litellmUsage{}
	l.members(rec)
	if l.scan.OK() && l.payload.arrival(rec) == "" && l.payload.fill(rec, &l.answer, &l.params, &l.names) {
		return rec
	}
	l.back(mark, &rec.prompt, l.room-start)
	empty(rec)
	l.used--
	return nil
}
