package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// number reads an integer or a float in the forms of Python.
func (l *lexer) number() error {
	rest := l.src[l.pos:]
	if len(rest) > 1 && rest[0] == '0' && strings.IndexByte("xXoObB", rest[1]) >= 0 {
		return l.errorf("unsupported: integers that are not decimal")
	}
	n := digits(rest)
	k := tokInt
	dotted := len(l.out) > 0 && l.out[len(l.out)-1].is(tokOp, ".") // x.0.1 is two subscripts
	if !dotted {
		if n < len(rest) && rest[n] == '.' {
			if d := digits(rest[n+1:]); d > 0 {
				n, k = n+1+d, tokFloat
			}
		}
		if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
			e := n + 1
			if e < len(rest) && (rest[e] == '+' || rest[e] == '-') {
				e++
			}
			if d := digits(rest[e:]); d > 0 {
				n, k = e+d, tokFloat
			}
		}
	}
	l.emit(k, strings.ReplaceAll(rest[:n], "_", ""))
	l.advance(n)
	return nil
}

// digits is the length of a run of digits, which single underscores may part.
func digits(s string) int {
	n := 0
	for n < len(s) && ('0' <= s[n] && s[n] <= '9' || s[n] == '_' && n > 0 && s[n-1] != '_' && n+1 < len(s) && '0' <= s[n+1] && s[n+1] <= '9') {
		n++
	}
	return n
}

// str reads a string literal; escapes are those of Python.
func (l *lexer) str(quote byte) error {
	rest := l.src[l.pos:]
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			l.emit(tokString, b.String())
			l.advance(i + 1)
			return nil
		case c != '\\':
			b.WriteByte(c)
		default:
			if i+1 >= len(rest) {
				return l.errorf("a string is not closed")
			}
			n, err := l.escape(&b, rest[i+1:])
			if err != nil {
				return err
			}
			i += n
		}
	}
	return l.errorf("a string is not closed")
}

var simpleEscapes = map[byte]string{'\n': "", '\\': "\\", '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}

// escape writes what follows a backslash and returns its length.
func (l *lexer) escape(b *strings.Builder, s string) (int, error) {
	if out, ok := simpleEscapes[s[0]]; ok {
		b.WriteString(out)
		return 1, nil
	}
	size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	switch {
	case size > 0:
		if len(s) < 1+size {
			return 0, l.errorf("an escape is cut")
		}
		v, err := strconv.ParseUint(s[1:1+size], 16, 32)
		if err != nil || v > utf8.MaxRune || 0xD800 <= v && v < 0xE000 {
			return 0, l.errorf("unsupported: an escape that is no character")
		}
		b.WriteRune(rune(v))
		return 1 + size, nil
	case '0' <= s[0] && s[0] <= '7':
		n := 1
		for n < 3 && n < len(s) && '0' <= s[n] && s[n] <= '7' {
			n++
		}
		v, _ := strconv.ParseUint(s[:n], 8, 32)
		b.WriteRune(rune(v))
		return n, nil
	case s[0] == 'N':
		return 0, l.errorf(`unsupported: \N escapes`)
	}
	b.WriteByte('\\') // an unknown escape is kept
	return 0, nil
}

// Space tells what str.isspace of Python does: White_Space, and the four separators U+001C–U+001F.
func Space(r rune) bool {
	switch {
	case r == ' ' || '\t' <= r && r <= '\r' || 0x1C <= r && r <= 0x1F:
		return true
	case r < 0x80:
		return false
	}
	switch r {
	case 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000:
		return true
	}
	return 0x2000 <= r && r <= 0x200A
}
