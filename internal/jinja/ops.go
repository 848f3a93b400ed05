package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// compareStrings orders by code points, which for UTF-8 is the order of bytes.
func compareStrings(a, b string) int { return strings.Compare(a, b) }

func (in *interp) binary(e *binaryExpr) Value {
	left := in.eval(e.left)
	switch e.op {
	case "and":
		if !truth(left) {
			return left
		}
		return in.eval(e.right)
	case "or":
		if truth(left) {
			return left
		}
		return in.eval(e.right)
	}
	right := in.eval(e.right)
	if _, ok := str(left); ok {
		return in.stringOp(e.op, left, right, e.line)
	}
	if l, ok := left.(*List); ok {
		r, ok := right.(*List)
		if e.op != "+" || !ok || r.Tuple != l.Tuple || l.view || r.view {
			in.fail(e.line, "unsupported: %s of a %s and a %s", e.op, typeName(left), typeName(right))
		}
		in.copied(32*(len(l.Items)+len(r.Items)), e.line) // the collector looks at each item too
		return &List{Items: slices.Concat(l.Items, r.Items), Tuple: l.Tuple}
	}
	if x, ok := integer(left); ok {
		if y, ok := integer(right); ok {
			return in.intOp(e.op, x, y, e.line)
		}
	}
	x, ok1 := number(left)
	y, ok2 := number(right)
	if !ok1 || !ok2 {
		in.fail(e.line, "unsupported: %s of a %s and a %s", e.op, typeName(left), typeName(right))
	}
	return in.floatOp(e.op, x, y, e.line)
}

func (in *interp) stringOp(op string, left, right Value, line int) Value {
	if _, ok := str(right); ok && op == "+" {
		return in.join([]Value{left, right}, "", line)
	}
	if n, ok := integer(right); ok && op == "*" {
		s, _ := str(left)
		n = max(n, 0)
		if len(s) > 0 && n > int64(min(in.limits.Copied, maxValue)/len(s)) {
			in.fail(line, "the template copies too much text")
		}
		in.copied(len(s)*int(n), line)
		return like(strings.Repeat(s, int(n)), left)
	}
	in.fail(line, "unsupported: %s of a %s and a %s", op, typeName(left), typeName(right))
	return nil
}

func (in *interp) intOp(op string, x, y int64, line int) Value {
	const limit = 1 << 31 // products and sums of such numbers fit; a template has no larger ones
	if x > limit || x < -limit || y > limit || y < -limit {
		in.fail(line, "unsupported: arithmetic with an int over 2^31")
	}
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	}
	if op != "**" && y == 0 {
		in.fail(line, "a division by zero")
	}
	switch op {
	case "/":
		return float64(x) / float64(y)
	case "//":
		q := x / y
		if x%y != 0 && (x < 0) != (y < 0) {
			q--
		}
		return q
	case "%":
		r := x % y
		if r != 0 && (r < 0) != (y < 0) {
			r += y
		}
		return r
	}
	if y < 0 || y > 62 {
		in.fail(line, "unsupported: this power")
	}
	out := int64(1)
	for range y {
		if out *= x; out > limit || out < -limit {
			in.fail(line, "unsupported: arithmetic with an int over 2^31")
		}
	}
	return out
}

func (in *interp) floatOp(op string, x, y float64, line int) Value {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		if y == 0 {
			in.fail(line, "a division by zero")
		}
		return x / y
	}
	in.fail(line, "unsupported: %s of floats", op)
	return nil
}

// join concatenates strings with sep between and keeps track of content.
func (in *interp) join(parts []Value, sep string, line int) Value {
	size := len(sep) * max(len(parts)-1, 0)
	for _, p := range parts {
		s, _ := str(p)
		size += len(s)
	}
	in.copied(size, line)
	var b strings.Builder
	b.Grow(size)
	var spans []Span
	for i, p := range parts {
		if i > 0 {
			b.WriteString(sep)
		}
		spans = appendSpans(spans, spansOf(p), b.Len())
		s, _ := str(p)
		b.WriteString(s)
	}
	return textOf(b.String(), spans)
}

func (in *interp) contains(of, v Value, line int) bool {
	switch of := of.(type) {
	case string, *Text:
		s, _ := str(of)
		part, ok := str(v)
		if !ok {
			in.fail(line, "a %s in a str", typeName(v))
		}
		in.weigh(of, line)
		return strings.Contains(s, part)
	case *List:
		for _, item := range of.Items {
			if in.equal(item, v, line, 0) {
				return true
			}
		}
		return false
	case *Dict:
		switch v.(type) {
		case *List, *Dict:
			in.fail(line, "a %s as key of a dict", typeName(v))
		}
		k, ok := str(v)
		_, has := of.Get(k)
		return ok && has
	case undefined:
		return false
	}
	in.fail(line, "a value in a %s", typeName(of))
	return false
}

// items are what a loop over v passes.
func (in *interp) items(v Value, line int) []Value {
	switch v := v.(type) {
	case *List:
		return v.Items
	case *Dict:
		out := make([]Value, len(v.keys))
		for i := range v.keys {
			out[i] = v.key(i)
		}
		return out
	case string, *Text:
		s, _ := str(v)
		in.copied(32*len(s), line)
		out := make([]Value, 0, utf8.RuneCountInString(s))
		for i := 0; i < len(s); {
			_, size := utf8.DecodeRuneInString(s[i:])
			out = append(out, sub(v, i, i+size))
			i += size
		}
		return out
	case undefined:
		return nil
	}
	in.fail(line, "a loop over a %s", typeName(v))
	return nil
}

// length is len() of Python, if v has one.
func length(v Value) (int, bool) {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v), true
	case *Text:
		return utf8.RuneCountInString(v.S), true
	case *List:
		return len(v.Items), true
	case *Dict:
		return len(v.keys), true
	case undefined:
		return 0, true
	}
	return 0, false
}

// runeAt is the byte offset of the n-th character, len(s) behind the last.
func runeAt(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}
