// Package jsonscan reads JSON in one pass and without allocating, for the layouts that are read by the million.
//
// It accepts a subset of what encoding/json accepts, and reads that subset exactly alike. Whatever is odd (a
// syntax error, a name spelled in another case, a name twice, an escaped or non-ASCII name, broken UTF-8, a lone
// surrogate, nesting beyond 64) fails the Scanner, and the caller hands the value to encoding/json, which is
// the judge of it. In: a complete JSON text in memory. Out: slices of it, or texts appended to a buffer of the
// caller. Nothing is kept between values.
package jsonscan

import (
	"strconv"
	"unicode/utf8"
)

// Scanner reads one JSON text from its start. The zero value has nothing to read. After a failure every method
// does nothing and returns zero values, so that callers ask OK once, at the end. It is not safe for concurrent
// use.
type Scanner struct {
	data  []byte
	pos   int
	fresh bool // nothing of the value that was entered last has been read
	bad   bool
}

// Reset makes s read data.
func (s *Scanner) Reset(data []byte) { *s = Scanner{data: data} }

// Fail marks what is being read as odd.
func (s *Scanner) Fail() { s.bad, s.pos = true, len(s.data) }

// OK tells whether nothing odd has been met so far.
func (s *Scanner) OK() bool { return !s.bad }

// Pos is how many bytes have been read.
func (s *Scanner) Pos() int { return s.pos }

// Since returns what has been read from position start on.
func (s *Scanner) Since(start int) []byte { return s.data[start:s.pos] }

// AtEnd passes over white space and tells whether nothing comes behind it.
func (s *Scanner) AtEnd() bool {
	s.pos = skipSpace(s.data, s.pos)
	return s.pos >= len(s.data)
}

// Number is the Kind of every number.
const Number = '0'

// Kind passes over white space and returns the first byte of the next value: one of { [ " t f n, or Number. It
// is 0 at the end of the text, and any other byte where no value begins.
func (s *Scanner) Kind() byte {
	s.pos = skipSpace(s.data, s.pos)
	if s.pos >= len(s.data) {
		return 0
	}
	c := s.data[s.pos]
	if c == '-' || c >= '0' && c <= '9' {
		return Number
	}
	return c
}

// Enter reads the opening of an object ('{') or array ('[').
func (s *Scanner) Enter(open byte) {
	if s.Kind() != open {
		s.Fail()
		return
	}
	s.pos++
	s.fresh = true
}

// More tells whether the object (close is '}') or array (']') that was entered has another element, and moves
// to it; otherwise it reads the end.
func (s *Scanner) More(close byte) bool {
	c := s.Kind()
	first := s.fresh
	s.fresh = false
	switch {
	case s.bad:
		return false
	case c == close:
		s.pos++
		return false
	case first:
		return true
	case c != ',':
		s.Fail()
		return false
	}
	s.pos++
	return true
}

// Key reads a name and its colon. It has neither escapes nor characters beyond ASCII.
func (s *Scanner) Key() []byte {
	if s.Kind() != '"' {
		s.Fail()
		return nil
	}
	start := s.pos + 1
	end, high := find(s.data, start)
	if high != 0 || end >= len(s.data) || s.data[end] != '"' {
		s.Fail()
		return nil
	}
	s.pos = end + 1
	if s.Kind() != ':' {
		s.Fail()
		return nil
	}
	s.pos++
	return s.data[start:end]
}

// Skip passes over a value.
func (s *Scanner) Skip() {
	end := skipValue(s.data, skipSpace(s.data, s.pos))
	if end < 0 {
		s.Fail()
		return
	}
	s.pos = end
}

// Raw reads a value as it stands, without the space around it.
func (s *Scanner) Raw() []byte {
	s.pos = skipSpace(s.data, s.pos)
	start := s.pos
	s.Skip()
	if s.bad {
		return nil
	}
	return s.data[start:s.pos]
}

// Text reads a string and appends what it stands for to dst. The text is never longer than its JSON.
func (s *Scanner) Text(dst []byte) []byte {
	if s.Kind() != '"' {
		s.Fail()
		return dst
	}
	out, end := appendString(dst, s.data, s.pos+1)
	if end < 0 {
		s.Fail()
		return dst
	}
	s.pos = end
	return out
}

// Unquote returns what data, one JSON string, stands for; false if it is odd. It allocates the text.
func Unquote(data []byte) (text []byte, ok bool) {
	if len(data) < 2 || data[0] != '"' {
		return nil, false
	}
	text, end := appendString(make([]byte, 0, len(data)-2), data, 1)
	return text, end == len(data)
}

// Bytes reads a string: as a part of the text where it has no escapes, otherwise appended to dst. It returns
// the value and dst.
func (s *Scanner) Bytes(dst []byte) (value, out []byte) {
	if s.Kind() != '"' {
		s.Fail()
		return nil, dst
	}
	start := s.pos + 1
	end, high := find(s.data, start)
	if end < len(s.data) && s.data[end] == '"' && (high == 0 || utf8.Valid(s.data[start:end])) {
		s.pos = end + 1
		return s.data[start:end], dst
	}
	out = s.Text(dst)
	return out[len(dst):], out
}

// Null reads null; it returns false and reads nothing where something else comes.
func (s *Scanner) Null() bool {
	if s.Kind() != 'n' {
		return false
	}
	s.Skip()
	return !s.bad
}

// Bool reads true or false.
func (s *Scanner) Bool() bool {
	c := s.Kind()
	if c != 't' && c != 'f' {
		s.Fail()
		return false
	}
	s.Skip()
	return c == 't' && !s.bad
}

// Float reads a number. One that a float64 cannot hold fails.
func (s *Scanner) Float() float64 {
	if s.Kind() != Number {
		s.Fail()
		return 0
	}
	start := s.pos
	s.Skip()
	if s.bad {
		return 0
	}
	literal := s.data[start:s.pos]
	if v, ok := shortFloat(literal); ok {
		return v
	}
	v, err := strconv.ParseFloat(string(literal), 64)
	if err != nil {
		s.Fail()
		return 0
	}
	return v
}

// ParseNumber reads a literal that is one JSON number, as [Scanner.Float] does; false for anything else.
func ParseNumber(literal []byte) (v float64, ok bool) {
	if len(literal) == 0 || skipNumber(literal, 0) != len(literal) {
		return 0, false
	}
	if v, ok := shortFloat(literal); ok {
		return v, true
	}
	v, err := strconv.ParseFloat(string(literal), 64)
	return v, err == nil
}

// AppendUnquoted appends what data, one JSON string, stands for to dst; false, and dst as it was, if it is odd.
func AppendUnquoted(dst, data []byte) (out []byte, ok bool) {
	if len(data) < 2 || data[0] != '"' {
		return dst, false
	}
	out, end := appendString(dst, data, 1)
	if end != len(data) {
		clear(out[len(dst):])
		return dst, false
	}
	return out, true
}

// End returns the index behind the value that begins at data[i], -1 when it is odd.
func End(data []byte, i int) int { return skipValue(data, i) }
