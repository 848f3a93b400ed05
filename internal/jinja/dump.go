package jinja

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	inf = math.Inf(1)
	nan = math.NaN()
)

// toJSON is the filter tojson as transformers sets it: json.dumps(ensure_ascii=False), with its arguments.
func toJSON(in *interp, v Value, a *callArgs) Value {
	d := &dumper{in: in, line: a.line, itemSep: ", ", keySep: ": "}
	d.ascii = truth(a.or("ensure_ascii", false))
	if indent := a.or("indent", nil); indent != nil {
		n, ok := integer(indent)
		if !ok || n < 0 || n > 64 {
			in.fail(a.line, "unsupported: tojson with such an indent")
		}
		d.indent, d.pretty, d.itemSep = int(n), true, ","
	}
	if separators := a.or("separators", nil); separators != nil {
		l, ok := separators.(*List)
		if !ok || len(l.Items) != 2 {
			in.fail(a.line, "tojson with separators that are no pair")
		}
		item, ok1 := str(l.Items[0])
		key, ok2 := str(l.Items[1])
		if !ok1 || !ok2 {
			in.fail(a.line, "tojson with separators that are no texts")
		}
		d.itemSep, d.keySep = item, key
	}
	d.sorted = truth(a.or("sort_keys", false))
	d.value(v, 0)
	in.copied(len(d.out), a.line)
	if d.content {
		return Content(string(d.out))
	}
	return string(d.out)
}

// dumper writes JSON as Python does.
type dumper struct {
	in              *interp
	line            int
	out             []byte
	itemSep, keySep string
	indent          int
	pretty          bool
	ascii, sorted   bool
	content         bool // content has been written
}

func (d *dumper) newline(depth int) {
	if d.pretty {
		d.out = append(d.out, '\n')
		for range depth * d.indent {
			d.out = append(d.out, ' ')
		}
	}
}

func (d *dumper) value(v Value, depth int) {
	if depth > maxJSONDepth+maxNest {
		d.in.fail(d.line, "unsupported: tojson of more than %d levels", maxJSONDepth)
	}
	d.in.tick(d.line)
	switch v := v.(type) {
	case nil:
		d.out = append(d.out, "null"...)
	case bool:
		d.out = strconv.AppendBool(d.out, v)
	case int64:
		d.out = strconv.AppendInt(d.out, v, 10)
	case *big.Int:
		d.out = v.Append(d.out, 10)
	case float64:
		d.out = appendFloat(d.out, v, "Infinity", "NaN")
	case string:
		d.text(v)
	case *Text:
		d.text(v.S)
		d.content = d.content || len(v.Spans) > 0
	case *List:
		if v.view {
			d.in.fail(d.line, "tojson of a view")
		}
		d.list(v, depth)
	case *Dict:
		d.dict(v, depth)
	default:
		d.in.fail(d.line, "tojson of a %s", typeName(v))
	}
}

func (d *dumper) list(l *List, depth int) {
	d.out = append(d.out, '[')
	for i, item := range l.Items {
		if i > 0 {
			d.out = append(d.out, d.itemSep...)
		}
		d.newline(depth + 1)
		d.value(item, depth+1)
	}
	if len(l.Items) > 0 {
		d.newline(depth)
	}
	d.out = append(d.out, ']')
}

func (d *dumper) dict(v *Dict, depth int) {
	d.out = append(d.out, '{')
	d.content = d.content || v.Content && len(v.keys) > 0
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	if d.sorted {
		slices.SortFunc(order, func(i, j int) int { return compareStrings(v.keys[i], v.keys[j]) })
	}
	for n, i := range order {
		if n > 0 {
			d.out = append(d.out, d.itemSep...)
		}
		d.newline(depth + 1)
		d.text(v.keys[i])
		d.out = append(d.out, d.keySep...)
		d.value(v.values[i], depth+1)
	}
	if len(order) > 0 {
		d.newline(depth)
	}
	d.out = append(d.out, '}')
}

func (d *dumper) text(s string) {
	d.out = append(d.out, '"')
	d.out = appendEscaped(d.out, s, d.ascii)
	d.out = append(d.out, '"')
}

var jsonEscapes = [128]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f'}

// appendEscaped writes the inside of a JSON string as Python does.
func appendEscaped[T string | []byte](dst []byte, s T, ascii bool) []byte {
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && (c < 0x7F || !ascii) {
			continue
		}
		dst = append(dst, s[from:i]...)
		switch {
		case c < utf8.RuneSelf && jsonEscapes[c] != 0:
			dst = append(dst, '\\', jsonEscapes[c])
		case c < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			for _, u := range utf16.AppendRune(nil, r) {
				dst = fmt.Appendf(dst, `\u%04x`, u)
			}
			i += size - 1
		}
		from = i + 1
	}
	return append(dst, s[from:]...)
}
