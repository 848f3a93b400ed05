package openai

// scanner is a strict JSON reader over one event. Every method returns false when the text is not what it
// accepts; the scan is over then. It accepts only what encoding/json accepts.
type scanner struct {
	b []byte
	i int
	c chunk

	seenTop, seenChoice, seenDelta, seenCall, seenUsage uint8 // members that were read
}

// maxDepth is how deep the scanner follows values that it skips.
const maxDepth = 32

// once notes a member and tells that it is the first of its kind.
func (s *scanner) once(seen *uint8, member uint8) bool {
	first := *seen&member == 0
	*seen |= member
	return first
}

func (s *scanner) blank() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// next skips blanks and takes c if it comes next.
func (s *scanner) next(c byte) bool {
	s.blank()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// object reads an object; member must read the value of each key.
func (s *scanner) object(member func(key []byte) bool) bool {
	if !s.next('{') {
		return false
	}
	if s.next('}') {
		return true
	}
	for {
		s.blank()
		key, escaped, ok := s.str()
		if !ok || escaped || !s.next(':') || !member(key) {
			return false
		}
		if !s.next(',') {
			return s.next('}')
		}
	}
}

// array reads an array; element must read each value.
func (s *scanner) array(element func() bool) bool {
	if !s.next('[') {
		return false
	}
	if s.next(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if !s.next(',') {
			return s.next(']')
		}
	}
}

// str reads a string and returns what is between the quotes.
func (s *scanner) str() (raw []byte, escaped, ok bool) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return nil, false, false
	}
	start := s.i + 1
	for i := start; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return s.b[start:i], escaped, true
		case c < 0x20:
			return nil, false, false
		case c == '\\':
			escaped = true
			n := escapeLen(s.b[i:])
			if n == 0 {
				return nil, false, false
			}
			i += n - 1
		}
	}
	return nil, false, false
}

// escapeLen is the length of the escape at the start of b; 0 = none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// text reads a string and hands over its raw inside.
func (s *scanner) text(take func([]byte) bool) bool {
	s.blank()
	raw, _, ok := s.str()
	return ok && take(raw)
}

// marks reads null or a string, and sets flag when the string is not empty.
func (s *scanner) marks(flag *bool) bool {
	if s.null() {
		return true
	}
	s.blank()
	raw, _, ok := s.str()
	*flag = *flag || len(raw) > 0
	return ok
}

// null takes a null if it comes next.
func (s *scanner) null() bool { return s.literal("null") }

func (s *scanner) literal(word string) bool {
	s.blank()
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

// number reads null or a count into n.
func (s *scanner) number(n *int32) bool {
	if s.null() {
		return true
	}
	v, ok := s.count()
	if ok {
		*n = v
	}
	return ok
}

// count reads a plain non-negative integer of at most nine digits.
func (s *scanner) count() (int32, bool) {
	s.blank()
	start, n := s.i, int32(0)
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' && s.i-start < 9 {
		n = 10*n + int32(s.b[s.i]-'0')
		s.i++
	}
	digits := s.i - start
	if digits == 0 || digits > 1 && s.b[start] == '0' {
		return 0, false
	}
	// What follows must end the number; a fraction, an exponent or a tenth digit is not for us.
	if s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '.' || c == 'e' || c == 'E' || c >= '0' && c <= '9':
			return 0, false
		}
	}
	return n, true
}

// skip reads any value.
func (s *scanner) skip(depth int) bool {
	s.blank()
	if s.i >= len(s.b) || depth > maxDepth {
		return false
	}
	switch s.b[s.i] {
	case '"':
		_, _, ok := s.str()
		return ok
	case '{':
		return s.object(func([]byte) bool { return s.skip(depth + 1) })
	case '[':
		return s.array(func() bool { return s.skip(depth + 1) })
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.anyNumber()
}

// anyNumber reads a number by JSON's grammar.
func (s *scanner) anyNumber() bool {
	if s.at('-') {
		s.i++
	}
	switch {
	case s.at('0'):
		s.i++
	case !s.digits():
		return false
	}
	if s.at('.') {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if s.at('e') || s.at('E') {
		s.i++
		if s.at('+') || s.at('-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) at(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }

// digits reads at least one digit.
func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}
