package ingest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// splitter cuts a stream into records: one per line, or one per JSON value where values span lines. Blank
// lines are no records.
type splitter struct {
	r      *bufio.Reader
	values bool // records are JSON values
	max    int  // larger records are passed over
}

// peekBytes is how much of a stream is looked at to tell its layout.
const peekBytes = 1 << 20

func newSplitter(r io.Reader, maxBytes int) *splitter {
	s := &splitter{r: bufio.NewReaderSize(r, peekBytes), max: maxBytes}
	head, _ := s.r.Peek(peekBytes) // a read error comes again with the first record
	s.values = valuesSpanLines(head)
	return s
}

// valuesSpanLines tells whether the stream that begins with head holds JSON values over several lines: its
// first line is no JSON by itself, and the value that begins there is, or goes on beyond head.
func valuesSpanLines(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n\ufeff")
	line, _, cut := bytes.Cut(head, []byte{'\n'})
	if !cut || len(head) == 0 || head[0] != '{' && head[0] != '[' || json.Valid(line) {
		return false
	}
	var v valueScanner
	for i, c := range head {
		switch v.next(c) {
		case valueEnd:
			return json.Valid(head[:i+1])
		case valueBroken:
			return false
		}
	}
	return true
}

// splitRecord is one record of a stream. Data is nil when it was too large; Whole is false for a last line
// without its newline.
type splitRecord struct {
	data  []byte
	size  int64
	whole bool
}

// next returns the next record; io.EOF at the end. The data belongs to the caller.
func (s *splitter) next() (splitRecord, error) {
	for {
		var rec splitRecord
		var err error
		if s.values {
			rec, err = s.value()
		} else {
			rec, err = s.line()
		}
		blank := rec.size == int64(len(rec.data)) && len(bytes.TrimSpace(rec.data)) == 0
		switch {
		case err != nil && (!errors.Is(err, io.EOF) || blank):
			return splitRecord{}, err
		case !blank:
			return rec, nil
		}
	}
}

// line reads up to a newline, which is not part of the record. With io.EOF the record is what was left.
func (s *splitter) line() (rec splitRecord, err error) {
	for {
		part, err := s.r.ReadSlice('\n')
		rec.add(part, s.max)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		rec.whole = err == nil
		if rec.whole && len(rec.data) > 0 && rec.size == int64(len(rec.data)) {
			rec.data, rec.size = rec.data[:len(rec.data)-1], rec.size-1
		}
		return rec, err
	}
}

// value reads one JSON value. A raw newline inside a string breaks it off, so that one broken value costs no
// more than itself.
func (s *splitter) value() (rec splitRecord, err error) {
	var v valueScanner
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return rec, err
		}
		if rec.size == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',') {
			continue
		}
		rec.add([]byte{c}, s.max)
		if st := v.next(c); st == valueEnd || st == valueBroken {
			rec.whole = true
			return rec, nil
		}
	}
}

func (r *splitRecord) add(part []byte, limit int) {
	r.size += int64(len(part))
	if r.size > int64(limit) {
		r.data = nil
		return
	}
	r.data = append(r.data, part...)
}

// valueScanner follows brackets and strings to find where a JSON value ends.
type valueScanner struct {
	depth             int
	inString, escaped bool
}

type valueState int

const (
	valueOpen valueState = iota
	valueEnd
	valueBroken
)

func (v *valueScanner) next(c byte) valueState {
	if v.inString {
		switch {
		case c == '\n':
			return valueBroken
		case v.escaped:
			v.escaped = false
		case c == '\\':
			v.escaped = true
		case c == '"':
			v.inString = false
		}
		return valueOpen
	}
	switch c {
	case '"':
		v.inString = true
	case '{', '[':
		v.depth++
	case '}', ']':
		v.depth--
		if v.depth <= 0 {
			return valueEnd
		}
	case '\n':
		if v.depth == 0 {
			return valueEnd // something that is neither object nor list
		}
	}
	return valueOpen
}
