package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"tailgate/internal/jsonscan"
)

// errValue is the one error of the value types below: it must not quote what it read.
var errValue = errors.New("unexpected JSON value")

// text is a JSON string as bytes, so that it can be cleared after use. null reads as nil.
type text []byte

func (t *text) UnmarshalJSON(raw []byte) error {
	if isNull(raw) {
		*t = nil
		return nil
	}
	if len(raw) < 2 || raw[0] != '"' {
		return errValue
	}
	*t = unquoted(raw)
	return nil
}

// label is a JSON string or number as bytes; null and booleans read as nil.
type label []byte

func (l *label) UnmarshalJSON(raw []byte) error {
	switch {
	case len(raw) >= 2 && raw[0] == '"':
		*l = unquoted(raw)
	case len(raw) > 0 && (raw[0] == '-' || isDigit(raw[0])):
		*l = bytes.Clone(raw)
	case len(raw) > 0 && (raw[0] == '{' || raw[0] == '['):
		return errValue
	default:
		*l = nil
	}
	return nil
}

// number is a JSON number, or a string that holds one; null and "" read as not set.
type number struct {
	v   float64
	set bool
}

func (n *number) UnmarshalJSON(raw []byte) error {
	raw = bytes.Trim(raw, `"`)
	if len(raw) == 0 || isNull(raw) {
		*n = number{}
		return nil
	}
	if raw[0] != '-' && !isDigit(raw[0]) {
		return errValue
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return errValue
	}
	*n = number{v: v, set: true}
	return nil
}

// tokens reads n as a token count; ok is false when it is not set.
func (n number) tokens() (v int64, ok bool, err error) {
	if !n.set {
		return 0, false, nil
	}
	if n.v < 0 || n.v > maxTokens || n.v != math.Trunc(n.v) {
		return 0, false, errValue
	}
	return int64(n.v), true, nil
}

// flag is a JSON boolean, or a string that spells one; anything else reads as not known.
type flag struct{ v *bool }

func (f *flag) UnmarshalJSON(raw []byte) error {
	f.v = nil
	switch string(bytes.ToLower(bytes.Trim(raw, `"`))) {
	case "true":
		f.v = new(true)
	case "false":
		f.v = new(false)
	}
	return nil
}

func (f flag) is() bool { return f.v != nil && *f.v }

func isNull(raw []byte) bool { return string(raw) == "null" }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }

// isString tells whether raw is a JSON string.
func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// present tells whether raw holds a value other than null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && !isNull(raw) }

// unquoted decodes a valid JSON string.
func unquoted(raw []byte) []byte {
	if t, ok := jsonscan.Unquote(raw); ok {
		return t
	}
	return unquote(raw[1 : len(raw)-1])
}

// unquote decodes the inside of a valid JSON string. Lone surrogates and broken UTF-8 become U+FFFD, as
// encoding/json has it.
func unquote(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			var n int
			out, n = appendEscape(out, s[i:])
			i += n
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, n := utf8.DecodeRune(s[i:])
			out = utf8.AppendRune(out, r)
			i += n
		}
	}
	return out
}

// appendEscape appends what the escape at the start of s stands for and returns how long the escape is.
func appendEscape(out, s []byte) ([]byte, int) {
	switch s[1] {
	case 'b':
		return append(out, '\b'), 2
	case 'f':
		return append(out, '\f'), 2
	case 'n':
		return append(out, '\n'), 2
	case 'r':
		return append(out, '\r'), 2
	case 't':
		return append(out, '\t'), 2
	case 'u':
		r := hex4(s[2:])
		if utf16.IsSurrogate(r) {
			if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(s[8:])); pair != utf8.RuneError {
					return utf8.AppendRune(out, pair), 12
				}
			}
			r = utf8.RuneError
		}
		return utf8.AppendRune(out, r), min(6, len(s))
	}
	return append(out, s[1]), 2
}

func hex4(s []byte) rune {
	if len(s) < 4 {
		return utf8.RuneError
	}
	v, err := strconv.ParseUint(string(s[:4]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(v)
}

// appendQuoted appends s as a JSON string.
func appendQuoted(out, s []byte) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
