package jinja

import (
	"strings"
	"unicode/utf8"
)

// split is split and rsplit.
func split(right bool) method {
	return func(in *interp, self Value, a *callArgs) Value {
		sep, limit := a.or("sep", nil), a.or("maxsplit", int64(-1))
		n, ok := integer(limit)
		if !ok {
			in.fail(a.line, "split with a count that is no int")
		}
		if n < 0 {
			n = 1<<62 - 1
		}
		s, _ := str(self)
		in.copied(len(s), a.line)
		if sep == nil {
			return in.splitSpace(self, n, right, a.line)
		}
		by, ok := str(sep)
		if !ok || by == "" {
			in.fail(a.line, "split by what is no text")
		}
		if right {
			return splitRight(self, by, n)
		}
		out, from := &List{}, 0
		for ; n > 0; n-- {
			i := strings.Index(s[from:], by)
			if i < 0 {
				break
			}
			in.tick(a.line)
			out.Items = append(out.Items, sub(self, from, from+i))
			from += i + len(by)
		}
		out.Items = append(out.Items, sub(self, from, len(s)))
		return out
	}
}

func splitRight(self Value, by string, n int64) Value {
	s, _ := str(self)
	var back []Value
	to := len(s)
	for ; n > 0; n-- {
		i := strings.LastIndex(s[:to], by)
		if i < 0 {
			break
		}
		back = append(back, sub(self, i+len(by), to))
		to = i
	}
	back = append(back, sub(self, 0, to))
	return &List{Items: reversed(back)}
}

// splitSpace splits at runs of white space, at most n times.
func (in *interp) splitSpace(self Value, n int64, right bool, line int) Value {
	s, _ := str(self)
	from, to := 0, len(s)
	var out []Value
	for {
		from = to - len(strings.TrimLeftFunc(s[from:to], Space))
		to = from + len(strings.TrimRightFunc(s[from:to], Space))
		if from == to {
			break
		}
		in.tick(line)
		if n--; n < 0 {
			// The rest keeps the white space at its far end.
			if right {
				from = 0
			} else {
				to = len(s)
			}
			out = append(out, sub(self, from, to))
			break
		}
		if right {
			i := strings.LastIndexFunc(s[from:to], Space)
			if i < 0 {
				out = append(out, sub(self, from, to))
				break
			}
			_, size := utf8.DecodeRuneInString(s[from+i:])
			out = append(out, sub(self, from+i+size, to))
			to = from + i
			continue
		}
		i := strings.IndexFunc(s[from:to], Space)
		if i < 0 {
			out = append(out, sub(self, from, to))
			break
		}
		out = append(out, sub(self, from, from+i))
		from += i
	}
	if right {
		out = reversed(out)
	}
	return &List{Items: out}
}

// splitLines is splitlines without its argument.
func splitLines(in *interp, self Value, a *callArgs) Value {
	s, _ := str(self)
	in.copied(len(s), a.line)
	out, from := &List{}, 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		end := i
		i += size
		switch r {
		case '\r':
			if i < len(s) && s[i] == '\n' {
				i++
			}
		case '\n', '\v', '\f', 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029:
		default:
			continue
		}
		in.tick(a.line)
		out.Items = append(out.Items, sub(self, from, end))
		from = i
	}
	if from < len(s) {
		out.Items = append(out.Items, sub(self, from, len(s)))
	}
	return out
}

func partition(find func(s, sep string) int, left bool) method {
	return func(in *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		sep := a.text("sep")
		by, _ := str(sep)
		if by == "" {
			in.fail(a.line, "a partition by nothing")
		}
		out := &List{Tuple: true}
		switch i := find(s, by); {
		case i >= 0:
			out.Items = []Value{sub(self, 0, i), sep, sub(self, i+len(by), len(s))}
		case left:
			out.Items = []Value{self, "", ""}
		default:
			out.Items = []Value{"", "", self}
		}
		return out
	}
}

func reversed(v []Value) []Value {
	out := make([]Value, len(v))
	for i, x := range v {
		out[len(v)-1-i] = x
	}
	return out
}

// replace is str.replace; n < 0 replaces all. Content is followed through it.
func (in *interp) replace(self, from, to Value, n, line int) Value {
	s, _ := str(self)
	old, _ := str(from)
	if old == "" {
		in.fail(line, "unsupported: replacing an empty text")
	}
	var parts []Value
	at := 0
	for ; n != 0; n-- {
		i := strings.Index(s[at:], old)
		if i < 0 {
			break
		}
		in.tick(line)
		parts = append(parts, sub(self, at, at+i), to)
		at += i + len(old)
	}
	if at == 0 && len(parts) == 0 {
		return self
	}
	return in.join(append(parts, sub(self, at, len(s))), "", line)
}

// joinValues joins strings with a separator that may itself be content.
func (in *interp) joinValues(items []Value, sep Value, line int) Value {
	by, _ := str(sep)
	if len(spansOf(sep)) == 0 {
		return in.join(items, by, line)
	}
	var parts []Value
	for i, item := range items {
		if i > 0 {
			parts = append(parts, sep)
		}
		parts = append(parts, item)
	}
	return in.join(parts, "", line)
}
