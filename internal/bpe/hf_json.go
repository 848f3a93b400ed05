package bpe

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// maxHFDepth bounds the nesting of a tokenizer.json; real ones have 6.
const maxHFDepth = 64

// hfReader reads JSON of which a member may have a million parts: it holds no tree. data is valid UTF-8.
type hfReader struct {
	data []byte
	pos  int
}

func (in *hfReader) bad(reason string) error {
	return faultAt(NotJSON, "", "not JSON at byte %d: %s", in.pos, reason)
}

// peek passes over white space and returns the next byte, 0 at the end.
func (in *hfReader) peek() byte {
	for ; in.pos < len(in.data); in.pos++ {
		switch b := in.data[in.pos]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// take passes over b, if it comes next.
func (in *hfReader) take(b byte) bool {
	if in.peek() != b || in.pos == len(in.data) {
		return false
	}
	in.pos++
	return true
}

// string reads a string and returns what is between its quotes, escapes and all.
func (in *hfReader) string() ([]byte, error) {
	if !in.take('"') {
		return nil, in.bad("no string")
	}
	begin := in.pos
	for ; in.pos < len(in.data); in.pos++ {
		switch b := in.data[in.pos]; {
		case b == '"':
			in.pos++
			return in.data[begin : in.pos-1], nil
		case b == '\\':
			if !escaped(in.data[in.pos:]) {
				return nil, in.bad("a broken escape")
			}
			in.pos++
		case b < 0x20:
			return nil, in.bad("a control character in a string")
		}
	}
	return nil, in.bad("a string without end")
}

// each reads an object or array and calls visit before each value, with the raw name of the member (nil in an
// array). visit reads the value.
func (in *hfReader) each(open byte, visit func(name []byte) error) error {
	if !in.take(open) {
		return in.bad("another type of value")
	}
	end := open + 2 // '{' '}' and '[' ']'
	if in.take(end) {
		return nil
	}
	for {
		var name []byte
		if open == '{' {
			var err error
			if name, err = in.string(); err != nil {
				return err
			}
			if !in.take(':') {
				return in.bad("no colon")
			}
		}
		if err := visit(name); err != nil {
			return err
		}
		if in.take(end) {
			return nil
		}
		if !in.take(',') {
			return in.bad("neither a comma nor an end")
		}
	}
}

// members returns the values of an object by name. field is the path of the object.
func (in *hfReader) members(field string) (map[string][]byte, error) {
	values := map[string][]byte{}
	err := in.each('{', func(name []byte) error {
		key, ok := appendUnquoted(nil, name)
		if !ok {
			return in.bad("a lone surrogate")
		}
		in.peek()
		begin := in.pos
		if err := in.skip(maxHFDepth); err != nil {
			return err
		}
		if _, twice := values[string(key)]; twice {
			return faultAt(Inconsistent, field, "a member comes twice")
		}
		values[string(key)] = in.data[begin:in.pos]
		return nil
	})
	return values, err
}

// skipAll passes over one value that must be the whole text.
func (in *hfReader) skipAll() error {
	if err := in.skip(maxHFDepth); err != nil {
		return err
	}
	if in.peek() != 0 || in.pos < len(in.data) {
		return in.bad("something follows the value")
	}
	return nil
}

// skip passes over one value.
func (in *hfReader) skip(depth int) error {
	if depth == 0 {
		return faultAt(TooLarge, "", "nested deeper than %d", maxHFDepth)
	}
	switch b := in.peek(); b {
	case '{', '[':
		return in.each(b, func([]byte) error { return in.skip(depth - 1) })
	case '"':
		_, err := in.string()
		return err
	case 't':
		return in.literal("true")
	case 'f':
		return in.literal("false")
	case 'n':
		return in.literal("null")
	}
	return in.number()
}

func (in *hfReader) literal(want string) error {
	if !bytes.HasPrefix(in.data[in.pos:], []byte(want)) {
		return in.bad("no value")
	}
	in.pos += len(want)
	return nil
}

// number passes over a number.
func (in *hfReader) number() error {
	digits := func() bool {
		begin := in.pos
		for in.pos < len(in.data) && in.data[in.pos]-'0' < 10 {
			in.pos++
		}
		return in.pos > begin
	}
	next := func(any string) bool {
		if in.pos < len(in.data) && bytes.IndexByte([]byte(any), in.data[in.pos]) >= 0 {
			in.pos++
			return true
		}
		return false
	}
	next("-")
	if !next("0") && !digits() {
		return in.bad("no value")
	}
	if next(".") && !digits() {
		return in.bad("no digit behind the point")
	}
	if next("eE") {
		next("+-")
		if !digits() {
			return in.bad("no digit in the exponent")
		}
	}
	return nil
}

// id reads an integer that can be an id.
func (in *hfReader) id() (uint32, error) {
	in.peek()
	begin := in.pos
	if err := in.number(); err != nil {
		return 0, err
	}
	n := uint32(0)
	for _, b := range in.data[begin:in.pos] {
		if b-'0' > 9 {
			return 0, faultAt(NotTokenizer, "", "an id that is no natural number")
		}
		if n = n*10 + uint32(b-'0'); n >= maxTokens {
			return 0, faultAt(TooLarge, "", "an id beyond %d", maxTokens-1)
		}
	}
	return n, nil
}

// appendUnquoted appends what a raw string stands for; false when a surrogate stands alone.
func appendUnquoted(dst, raw []byte) ([]byte, bool) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), true
		}
		dst = append(dst, raw[:i]...)
		r, n := unescape(raw[i:])
		if n == 0 {
			return dst, false
		}
		dst, raw = utf8.AppendRune(dst, r), raw[i+n:]
	}
}

// unescape reads the escape that raw begins with; n is 0 when there is none.
func unescape(raw []byte) (r rune, n int) {
	if len(raw) < 2 {
		return 0, 0
	}
	if i := bytes.IndexByte([]byte(`"\/bfnrt`), raw[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	r = hex4(raw)
	switch {
	case r < 0:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if r = utf16.DecodeRune(r, hex4(raw[6:])); r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

// escaped tells whether raw begins with an escape by the grammar; it may be a lone surrogate.
func escaped(raw []byte) bool {
	return len(raw) > 1 && bytes.IndexByte([]byte(`"\/bfnrt`), raw[1]) >= 0 || hex4(raw) >= 0
}

// hex4 reads the escape \uXXXX that raw begins with, or -1.
func hex4(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	r := rune(0)
	for _, b := range raw[2:6] {
		switch {
		case b-'0' < 10:
			b -= '0'
		case b|0x20-'a' < 6:
			b = b | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(b)
	}
	return r
}
