package ingest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// splitter cuts a stream into records: one per line, or one per JSON value where values span lines, or one per
// element of a list that spans the stream. Blank lines are no records.
type splitter struct {
	r      *bufio.Reader
	values bool // records are JSON values
	list   bool // and the stream begins with a list, of which they are the elements
	inside bool // the bracket of that list was read
	max    int  // larger records are passed over
}

// peekBytes is how much of a stream is looked at to tell its layout.
const peekBytes = 1 << 20

func newSplitter(r io.Reader, maxBytes int) *splitter {
	s := &splitter{r: bufio.NewReaderSize(r, peekBytes), max: maxBytes}
	head, _ := s.r.Peek(peekBytes) // a read error comes again with the first record
	s.values = valuesSpanLines(head)
	if first := trimStart(head); len(first) > 0 && first[0] == '[' {
		longLine := len(head) == peekBytes && bytes.IndexByte(first, '\n') < 0
		s.list = s.values || longLine
		s.values = s.list
	}
	return s
}

// trimStart takes blanks and a byte order mark off.
func trimStart(head []byte) []byte { return bytes.TrimLeft(head, " \t\r\n\ufeff") }

// valuesSpanLines tells whether the stream that begins with head holds JSON values over several lines: its
// first line is no JSON by itself, and the value that begins there is, or goes on beyond head.
func valuesSpanLines(head []byte) bool {
	head = trimStart(head)
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
	s.skipEmptyLines()
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

// skipEmptyLines passes over newlines at the speed of memory, so that a flood of them costs no more than other text.
func (s *splitter) skipEmptyLines() {
	for {
		head, _ := s.r.Peek(max(1, s.r.Buffered()))
		n := 0
		for n < len(head) && (head[n] == '\n' || head[n] == '\r' && n+1 < len(head) && head[n+1] == '\n') {
			n++
		}
		_, _ = s.r.Discard(n)
		if n == 0 || n < len(head) {
			return
		}
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
		if rec.size == 0 && s.between(c) {
			continue
		}
		rec.add([]byte{c}, s.max)
		if st := v.next(c); st == valueEnd || st == valueBroken {
			rec.whole = true
			return rec, nil
		}
	}
}

// between tells whether c, which comes before a value, belongs to none.
func (s *splitter) between(c byte) bool {
	if s.list && !s.inside {
		s.inside = c == '['
		return true // a byte order mark, blanks, the bracket
	}
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' || s.list && c == ']'
}

// add appends part, and clears the memory that it grows out of: nothing else would.
func (r *splitRecord) add(part []byte, limit int) {
	r.size += int64(len(part))
	if r.size > int64(limit) {
		clear(r.data)
		r.data = nil
		return
	}
	if old := r.data; len(old)+len(part) > cap(old) {
		r.data = append(make([]byte, 0, max(len(old)+len(part), 2*len(old))), old...)
		clear(old)
	}
	r.data = append(r.data, part...)
}

// forget overwrites the buffer of the stream, which holds its last text.
func (s *splitter) forget() {
	s.r.Reset(zeros{})
	_, _ = s.r.Peek(s.r.Size())
}

// zeros is a stream of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
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
