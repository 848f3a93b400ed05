package jinja

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// show is str() of Python.
func (in *interp) show(v Value, line int) Value {
	switch v := v.(type) {
	case string, *Text:
		return v
	case undefined:
		return ""
	}
	var b strings.Builder
	content := in.repr(&b, v, line, 0)
	in.copied(b.Len(), line)
	if content {
		return Content(b.String())
	}
	return b.String()
}

// repr writes repr() of Python and tells whether content is in it.
func (in *interp) repr(b *strings.Builder, v Value, line, depth int) (content bool) {
	if depth > maxNest {
		in.fail(line, "unsupported: printing what is nested more than %d levels", maxNest)
	}
	in.tick(line)
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case undefined:
		b.WriteString("Undefined")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case *big.Int:
		b.WriteString(v.String())
	case float64:
		b.WriteString(formatFloat(v))
	case string:
		reprString(b, v)
	case *Text:
		reprString(b, v.S)
		return len(v.Spans) > 0
	case *List:
		return in.reprList(b, v, line, depth)
	case *Dict:
		b.WriteByte('{')
		for i := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			reprString(b, v.keys[i])
			b.WriteString(": ")
			content = in.repr(b, v.values[i], line, depth+1) || content
		}
		b.WriteByte('}')
		return content || v.Content
	default:
		in.fail(line, "unsupported: printing a %s", typeName(v))
	}
	return false
}

func (in *interp) reprList(b *strings.Builder, v *List, line, depth int) (content bool) {
	open, end := "[", "]"
	if v.view {
		in.fail(line, "unsupported: printing the view of a dict or a range")
	}
	if v.Tuple {
		open, end = "(", ")"
		if len(v.Items) == 1 {
			end = ",)"
		}
	}
	b.WriteString(open)
	for i, item := range v.Items {
		if i > 0 {
			b.WriteString(", ")
		}
		content = in.repr(b, item, line, depth+1) || content
	}
	b.WriteString(end)
	return content
}

func reprString(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteByte(s[i])
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteString(s[i : i+size])
		case r < 0x100:
			fmt.Fprintf(b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			fmt.Fprintf(b, `\U%08x`, r)
		}
		i += size
	}
	b.WriteByte(quote)
}
