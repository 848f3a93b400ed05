package jinja

import (
	"slices"
	"strings"
)

// sortKey is what jinja2 orders by: texts whatever their case, unless it counts. Beyond ASCII, and for values of
// several types, Python's order is not followed here.
func (in *interp) sortKey(v Value, caseCounts bool, line int) Value {
	s, ok := str(v)
	if !ok || caseCounts {
		return v
	}
	in.onlyASCII(s, "an order", line)
	return strings.ToLower(s)
}

func sorted(in *interp, v Value, a *callArgs) Value {
	reverse, caseCounts, attribute := truth(a.or("reverse", false)), truth(a.or("case_sensitive", false)), a.or("attribute", nil)
	type keyed struct{ key, item Value }
	var all []keyed
	for _, item := range in.items(v, a.line) {
		key := item
		if attribute != nil {
			key = in.path(item, attribute, a.line)
		}
		all = append(all, keyed{in.sortKey(key, caseCounts, a.line), item})
	}
	slices.SortStableFunc(all, func(x, y keyed) int {
		in.tick(a.line)
		c := in.order(x.key, y.key, a.line)
		if reverse {
			return -c
		}
		return c
	})
	out := &List{}
	for _, k := range all {
		out.Items = append(out.Items, k.item)
	}
	return out
}

// extreme is max and min: the first of the largest or smallest.
func extreme(sign int) filter {
	return func(in *interp, v Value, a *callArgs) Value {
		caseCounts, attribute := truth(a.or("case_sensitive", false)), a.or("attribute", nil)
		if attribute != nil {
			in.fail(a.line, "unsupported: max or min of an attribute")
		}
		items := in.items(v, a.line)
		if len(items) == 0 {
			return undefined{}
		}
		best := items[0]
		for _, item := range items[1:] {
			in.tick(a.line)
			if sign*in.order(in.sortKey(item, caseCounts, a.line), in.sortKey(best, caseCounts, a.line), a.line) > 0 {
				best = item
			}
		}
		return best
	}
}

// sum adds ints.
func sum(in *interp, v Value, a *callArgs) Value {
	attribute, start := a.or("attribute", nil), a.or("start", int64(0))
	total, ok := integer(start)
	if !ok {
		in.fail(a.line, "unsupported: a sum of others than ints")
	}
	for _, item := range in.items(v, a.line) {
		if attribute != nil {
			item = in.path(item, attribute, a.line)
		}
		n, ok := integer(item)
		if !ok {
			in.fail(a.line, "unsupported: a sum of others than ints")
		}
		total, _ = in.intOp("+", total, n, a.line).(int64)
	}
	return total
}

// title is the filter: a capital at the start and behind white space and opening brackets, small letters else.
func title(in *interp, v Value, a *callArgs) Value {
	v = in.show(v, a.line)
	s, _ := str(v)
	in.onlyASCII(s, "title", a.line)
	out, start := []byte(strings.ToLower(s)), true
	for i, c := range out {
		if start && 'a' <= c && c <= 'z' {
			out[i] = c - 'a' + 'A'
		}
		start = Space(rune(c)) || strings.IndexByte("-({[<", c) >= 0
	}
	return like(string(out), v)
}

// indentFilter puts blanks before every line but the first.
func indentFilter(in *interp, v Value, a *callArgs) Value {
	width, first, blank := a.or("width", int64(4)), truth(a.or("first", false)), truth(a.or("blank", false))
	pad, isText := str(width)
	if !isText {
		n, ok := integer(width)
		if !ok || n < 0 || n > 1000 {
			in.fail(a.line, "unsupported: such an indent")
		}
		pad = strings.Repeat(" ", int(n))
	}
	if _, ok := str(v); !ok {
		in.fail(a.line, "indent of a %s", typeName(v))
	}
	s := in.join([]Value{v, "\n"}, "", a.line)
	var parts []Value
	if first {
		parts = append(parts, pad)
	}
	for i, l := range splitLines(in, s, a).(*List).Items {
		if i > 0 {
			parts = append(parts, "\n")
			if text, _ := str(l); text != "" || blank {
				parts = append(parts, pad)
			}
		}
		parts = append(parts, l)
	}
	return in.join(parts, "", a.line)
}
