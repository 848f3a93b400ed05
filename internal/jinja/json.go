package jinja

import (
	"bytes"
	"errors"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// errJSON says that a text is not JSON; where and what is not told, for it would tell the text.
var errJSON = errors.New("not JSON")

// maxJSONDepth bounds lists and objects in each other.
const maxJSONDepth = 200

// ParseJSON reads a JSON text as json.loads of Python does: the order of members kept, of equal names the last
// value in the first's place, NaN and Infinity allowed, a lone surrogate read as U+FFFD. All texts are content.
func ParseJSON(text []byte) (Value, error) {
	r := &jsonReader{in: text}
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if r.space(); r.at != len(text) {
		return nil, errJSON
	}
	return v, nil
}

type jsonReader struct {
	in []byte
	at int
}

func (r *jsonReader) space() {
	for r.at < len(r.in) && (r.in[r.at] == ' ' || r.in[r.at] == '\t' || r.in[r.at] == '\n' || r.in[r.at] == '\r') {
		r.at++
	}
}

func (r *jsonReader) next() byte {
	if r.at < len(r.in) {
		return r.in[r.at]
	}
	return 0
}

func (r *jsonReader) eat(c byte) bool {
	if r.space(); r.next() == c && r.at < len(r.in) {
		r.at++
		return true
	}
	return false
}

func (r *jsonReader) value(depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, errJSON
	}
	r.space()
	switch c := r.next(); {
	case c == '"':
		s, err := r.text()
		return Content(string(s)), err
	case c == '{':
		return r.object(depth)
	case c == '[':
		return r.list(depth)
	case c == '-' || '0' <= c && c <= '9':
		return r.number()
	}
	for _, w := range jsonWords {
		if bytes.HasPrefix(r.in[r.at:], []byte(w.text)) {
			r.at += len(w.text)
			return w.value, nil
		}
	}
	return nil, errJSON
}

var jsonWords = []struct {
	text  string
	value Value
}{{"null", nil}, {"true", true}, {"false", false}, {"NaN", nan}, {"Infinity", inf}}

func (r *jsonReader) object(depth int) (Value, error) {
	r.at++
	d := &Dict{Content: true}
	if r.eat('}') {
		return d, nil
	}
	for {
		if r.space(); r.next() != '"' {
			return nil, errJSON
		}
		key, err := r.text()
		if err != nil {
			return nil, err
		}
		if !r.eat(':') {
			return nil, errJSON
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		d.Set(string(key), v)
		if r.eat('}') {
			return d, nil
		}
		if !r.eat(',') {
			return nil, errJSON
		}
	}
}

func (r *jsonReader) list(depth int) (Value, error) {
	r.at++
	l := &List{}
	if r.eat(']') {
		return l, nil
	}
	for {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
		if r.eat(']') {
			return l, nil
		}
		if !r.eat(',') {
			return nil, errJSON
		}
	}
}

// numberText passes over a number of JSON's grammar, or -Infinity.
func (r *jsonReader) numberText() (text []byte, float bool, err error) {
	from := r.at
	run := func() bool {
		was := r.at
		for c := r.next(); '0' <= c && c <= '9'; c = r.next() {
			r.at++
		}
		return r.at > was
	}
	if r.next() == '-' {
		r.at++
	}
	if bytes.HasPrefix(r.in[r.at:], []byte("Infinity")) {
		r.at += len("Infinity")
		return r.in[from:r.at], true, nil
	}
	if r.next() == '0' {
		r.at++
	} else if !run() {
		return nil, false, errJSON
	}
	if r.next() == '.' {
		r.at++
		if !run() {
			return nil, false, errJSON
		}
		float = true
	}
	if c := r.next(); c == 'e' || c == 'E' {
		r.at++
		if c := r.next(); c == '+' || c == '-' {
			r.at++
		}
		if !run() {
			return nil, false, errJSON
		}
		float = true
	}
	return r.in[from:r.at], float, nil
}

// maxDigits is Python's bound on the length of an int in a text.
const maxDigits = 4300

func (r *jsonReader) number() (Value, error) {
	text, float, err := r.numberText()
	switch {
	case err != nil:
		return nil, err
	case float:
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, errJSON
		}
		return f, nil
	case len(text) > maxDigits:
		return nil, errJSON
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n, nil
	}
	n, ok := new(big.Int).SetString(string(text), 10)
	if !ok {
		return nil, errJSON
	}
	return n, nil
}

// text reads a string and returns its value: of the input itself where nothing is escaped.
func (r *jsonReader) text() ([]byte, error) {
	r.at++
	from := r.at
	for ; r.at < len(r.in); r.at++ {
		switch c := r.in[r.at]; {
		case c == '"':
			r.at++
			return r.in[from : r.at-1], nil
		case c < ' ':
			return nil, errJSON
		case c == '\\':
			out := append([]byte(nil), r.in[from:r.at]...)
			for r.at < len(r.in) {
				var done bool
				var err error
				if out, done, err = r.escaped(out); done || err != nil {
					return out, err
				}
			}
			return nil, errJSON
		}
	}
	return nil, errJSON
}

// escaped appends the next byte or escape of a string and tells whether the string has ended.
func (r *jsonReader) escaped(dst []byte) (out []byte, done bool, err error) {
	c := r.in[r.at]
	r.at++
	switch {
	case c == '"':
		return dst, true, nil
	case c < ' ':
		return nil, false, errJSON
	case c != '\\':
		return append(dst, c), false, nil
	}
	e := r.next()
	r.at++
	switch e {
	case '"', '\\', '/':
		return append(dst, e), false, nil
	case 'b':
		return append(dst, '\b'), false, nil
	case 'f':
		return append(dst, '\f'), false, nil
	case 'n':
		return append(dst, '\n'), false, nil
	case 'r':
		return append(dst, '\r'), false, nil
	case 't':
		return append(dst, '\t'), false, nil
	case 'u':
		c, ok := r.unit()
		if !ok {
			return nil, false, errJSON
		}
		if 0xD800 <= c && c < 0xDC00 && bytes.HasPrefix(r.in[r.at:], []byte(`\u`)) {
			was := r.at
			r.at += 2
			if low, ok := r.unit(); ok && 0xDC00 <= low && low < 0xE000 {
				return utf8.AppendRune(dst, 0x10000+(c-0xD800)<<10+low-0xDC00), false, nil
			}
			r.at = was
		}
		return utf8.AppendRune(dst, c), false, nil // a surrogate becomes U+FFFD
	}
	return nil, false, errJSON
}

// unit reads four hexadecimal digits.
func (r *jsonReader) unit() (rune, bool) {
	if r.at+4 > len(r.in) {
		return 0, false
	}
	n := rune(0)
	for _, c := range r.in[r.at : r.at+4] {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	r.at += 4
	return n, true
}
