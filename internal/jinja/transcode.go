package jinja

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strconv"
)

// AppendJSON writes the JSON text raw as json.dumps(ensure_ascii=False, indent=indent) of Python writes what
// json.loads made of it; indent 0 = none. Level is the nesting that the value stands in, for indented text.
// If raw is no JSON, dst comes back as it was, with ok false. The common case allocates nothing but dst's growth.
func AppendJSON(dst, raw []byte, indent, level int) (out []byte, ok bool) {
	t := transcoder{jsonReader: jsonReader{in: raw}, indent: indent, deepest: level + maxJSONDepth}
	out, err := t.value(dst, level)
	if err == nil {
		if t.space(); t.at == len(raw) {
			return out, true
		}
		err = errJSON
	}
	if !errors.Is(err, errKeys) {
		return dst, false
	}
	v, err := ParseJSON(raw)
	if err != nil {
		return dst, false
	}
	d := &dumper{in: &interp{ctx: context.Background(), limits: Limits{Steps: math.MaxInt}}, out: dst, itemSep: ", ", keySep: ": "}
	if indent > 0 {
		d.indent, d.pretty, d.itemSep = indent, true, ","
	}
	d.value(v, level)
	return d.out, true
}

// AppendJSONString writes text as a JSON string the way Python does.
func AppendJSONString[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, text, false)
	return append(dst, '"')
}

// errKeys says that an object has equal names, or so many that they are not compared here.
var errKeys = errors.New("names to be compared")

// transcoder rewrites JSON as it reads it.
type transcoder struct {
	jsonReader
	indent  int
	deepest int
}

func (t *transcoder) newline(dst []byte, level int) []byte {
	if t.indent == 0 {
		return dst
	}
	dst = append(dst, '\n')
	for range level * t.indent {
		dst = append(dst, ' ')
	}
	return dst
}

func (t *transcoder) comma(dst []byte) []byte {
	if t.indent == 0 {
		return append(dst, ", "...)
	}
	return append(dst, ',')
}

func (t *transcoder) value(dst []byte, level int) ([]byte, error) {
	if level > t.deepest {
		return dst, errJSON
	}
	t.space()
	switch c := t.next(); {
	case c == '"':
		return t.string(dst)
	case c == '{':
		return t.object(dst, level)
	case c == '[':
		return t.list(dst, level)
	case c == '-' || '0' <= c && c <= '9':
		return t.number(dst)
	}
	for _, w := range jsonWords {
		if bytes.HasPrefix(t.in[t.at:], []byte(w.text)) {
			t.at += len(w.text)
			return append(dst, w.text...), nil
		}
	}
	return dst, errJSON
}

func (t *transcoder) list(dst []byte, level int) ([]byte, error) {
	t.at++
	dst = append(dst, '[')
	if t.eat(']') {
		return append(dst, ']'), nil
	}
	for {
		var err error
		if dst, err = t.value(t.newline(dst, level+1), level+1); err != nil {
			return dst, err
		}
		if t.eat(']') {
			return append(t.newline(dst, level), ']'), nil
		}
		if !t.eat(',') {
			return dst, errJSON
		}
		dst = t.comma(dst)
	}
}

func (t *transcoder) object(dst []byte, level int) ([]byte, error) {
	t.at++
	dst = append(dst, '{')
	if t.eat('}') {
		return append(dst, '}'), nil
	}
	var keys [24]Span // in dst, where equal names are equal bytes
	for n := 0; ; n++ {
		if t.space(); t.next() != '"' {
			return dst, errJSON
		}
		if n == len(keys) {
			return dst, errKeys
		}
		dst = t.newline(dst, level+1)
		from := len(dst)
		var err error
		if dst, err = t.string(dst); err != nil {
			return dst, err
		}
		for _, k := range keys[:n] {
			if bytes.Equal(dst[k.From:k.To], dst[from:]) {
				return dst, errKeys
			}
		}
		keys[n] = Span{from, len(dst)}
		if !t.eat(':') {
			return dst, errJSON
		}
		if dst, err = t.value(append(dst, ": "...), level+1); err != nil {
			return dst, err
		}
		if t.eat('}') {
			return append(t.newline(dst, level), '}'), nil
		}
		if !t.eat(',') {
			return dst, errJSON
		}
		dst = t.comma(dst)
	}
}

func (t *transcoder) number(dst []byte) ([]byte, error) {
	text, float, err := t.numberText()
	switch {
	case err != nil || !float && len(text) > maxDigits:
		return dst, errJSON
	case float:
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return dst, errJSON
		}
		return appendFloat(dst, f, "Infinity", "NaN"), nil
	case len(text) == 2 && text[0] == '-' && text[1] == '0':
		return append(dst, '0'), nil
	}
	return append(dst, text...), nil
}

// string copies a string. What needs no escape in the input needs none in the output.
func (t *transcoder) string(dst []byte) ([]byte, error) {
	t.at++
	dst = append(dst, '"')
	from := t.at
	for t.at < len(t.in) {
		switch c := t.in[t.at]; {
		case c == '"':
			dst = append(dst, t.in[from:t.at+1]...)
			t.at++
			return dst, nil
		case c < ' ':
			return dst, errJSON
		case c == '\\':
			dst = append(dst, t.in[from:t.at]...)
			var unit [8]byte
			text, _, err := t.escaped(unit[:0])
			if err != nil {
				return dst, err
			}
			dst = appendEscaped(dst, text, false)
			from = t.at
		default:
			t.at++
		}
	}
	return dst, errJSON
}
