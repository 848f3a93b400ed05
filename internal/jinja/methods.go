package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

type method func(in *interp, self Value, a *callArgs) Value

// refusedMethods are methods of Python's str, list and dict that are not honoured; the sandbox refuses some itself.
var refusedMethods = map[string]bool{
	"format": true, "format_map": true, "encode": true, "translate": true, "maketrans": true, "expandtabs": true,
	"casefold": true, "swapcase": true, "center": true, "ljust": true, "rjust": true, "zfill": true, "isidentifier": true,
	"isprintable": true, "isnumeric": true, "isdecimal": true, "istitle": true, "isalnum": true,
	"append": true, "extend": true, "insert": true, "remove": true, "sort": true, "clear": true,
	"update": true, "pop": true, "popitem": true, "setdefault": true, "fromkeys": true,
}

// method returns the method name of v bound to it, or nil if its type has none.
func (in *interp) method(v Value, name string, line int) Value {
	var m method
	known := ""
	switch v := v.(type) {
	case string, *Text:
		m = strMethods[name]
		known = "format format_map encode translate maketrans expandtabs casefold swapcase center ljust rjust zfill isidentifier isprintable isnumeric isdecimal istitle isalnum"
	case *Dict:
		m = dictMethods[name]
		known = "clear update pop popitem setdefault fromkeys"
	case *List:
		m = listMethods[name]
		known = "append extend insert remove sort clear pop reverse copy"
		if v.Tuple {
			known = ""
		}
	default:
		return nil
	}
	if m == nil {
		if slices.Contains(strings.Fields(known), name) {
			in.fail(line, "unsupported: the method %q of a %s", name, typeName(v))
		}
		return nil
	}
	return &function{name, func(in *interp, a *callArgs) Value {
		in.weigh(v, a.line)
		out := m(in, v, a)
		a.done()
		return out
	}}
}

var listMethods = map[string]method{
	"index": func(in *interp, self Value, a *callArgs) Value {
		want := a.must("value")
		for i, item := range self.(*List).Items {
			if in.equal(item, want, a.line, 0) {
				return int64(i)
			}
		}
		in.fail(a.line, "a value is not in the list")
		return nil
	},
	"count": func(in *interp, self Value, a *callArgs) Value {
		n, want := int64(0), a.must("value")
		for _, item := range self.(*List).Items {
			if in.equal(item, want, a.line, 0) {
				n++
			}
		}
		return n
	},
}

var dictMethods = map[string]method{
	"items": func(in *interp, self Value, _ *callArgs) Value {
		d := self.(*Dict)
		out := &List{Items: make([]Value, len(d.keys)), view: true}
		for i := range d.keys {
			in.tick(0)
			out.Items[i] = &List{Items: []Value{d.key(i), d.values[i]}, Tuple: true}
		}
		return out
	},
	"keys": func(in *interp, self Value, a *callArgs) Value {
		return &List{Items: in.items(self, a.line), view: true}
	},
	"values": func(_ *interp, self Value, _ *callArgs) Value {
		return &List{Items: slices.Clone(self.(*Dict).values), view: true}
	},
	"copy": func(_ *interp, self Value, _ *callArgs) Value { return self },
	"get": func(_ *interp, self Value, a *callArgs) Value {
		key, otherwise := a.must("key"), a.or("default", nil)
		if k, ok := str(key); ok {
			if v, ok := self.(*Dict).Get(k); ok {
				return v
			}
		}
		return otherwise
	},
}

func strip(left, right bool) method {
	return func(in *interp, self Value, a *callArgs) Value {
		cut := Space
		if v := a.or("chars", nil); v != nil {
			chars, ok := str(v)
			if !ok {
				in.fail(a.line, "strip by a %s", typeName(v))
			}
			cut = func(r rune) bool { return strings.ContainsRune(chars, r) }
		}
		s, _ := str(self)
		from, to := 0, len(s)
		if left {
			from = len(s) - len(strings.TrimLeftFunc(s, cut))
		}
		if right {
			to = from + len(strings.TrimRightFunc(s[from:], cut))
		}
		return sub(self, from, to)
	}
}

// affix tests a prefix or a suffix: a string, or a tuple of them.
func affix(has func(s, affix string) bool) method {
	return func(in *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		want := a.must("prefix")
		options := []Value{want}
		if l, ok := want.(*List); ok && l.Tuple {
			options = l.Items
		}
		for _, o := range options {
			p, ok := str(o)
			if !ok {
				in.fail(a.line, "startswith or endswith of a %s", typeName(o))
			}
			if has(s, p) {
				return true
			}
		}
		return false
	}
}

var strMethods = map[string]method{
	"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
	"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
	"split": split(false), "rsplit": split(true), "splitlines": splitLines,
	"upper": func(in *interp, self Value, a *callArgs) Value { return in.upper(self, a.line) },
	"lower": func(in *interp, self Value, a *callArgs) Value { return in.lower(self, a.line) },
	"capitalize": func(in *interp, self Value, a *callArgs) Value {
		return in.capitalize(self, a.line)
	},
	"title": func(in *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		in.onlyASCII(s, "title", a.line)
		out, word := []byte(s), false
		for i, c := range out {
			switch letter := c|0x20 >= 'a' && c|0x20 <= 'z'; {
			case letter && word:
				out[i] = c | 0x20
			case letter:
				out[i] = c &^ 0x20
				word = true
			default:
				word = false
			}
		}
		return like(string(out), self)
	},
	"replace": func(in *interp, self Value, a *callArgs) Value {
		from, to := a.text("old"), a.text("new")
		n, ok := integer(a.or("count", int64(-1)))
		if !ok {
			in.fail(a.line, "replace with a count that is no int")
		}
		return in.replace(self, from, to, int(n), a.line)
	},
	"join": func(in *interp, self Value, a *callArgs) Value {
		items := in.items(a.must("iterable"), a.line)
		for _, item := range items {
			if _, ok := str(item); !ok {
				in.fail(a.line, "join of a %s", typeName(item))
			}
		}
		return in.joinValues(items, self, a.line)
	},
	"find": func(_ *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		return runeIndex(s, strings.Index(s, a.str("sub")))
	},
	"rfind": func(_ *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		return runeIndex(s, strings.LastIndex(s, a.str("sub")))
	},
	"index": func(in *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		i := strings.Index(s, a.str("sub"))
		if i < 0 {
			in.fail(a.line, "a text is not in the str")
		}
		return runeIndex(s, i)
	},
	"count": func(_ *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		return int64(strings.Count(s, a.str("sub")))
	},
	"removeprefix": func(_ *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		return sub(self, len(s)-len(strings.TrimPrefix(s, a.str("prefix"))), len(s))
	},
	"removesuffix": func(_ *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		return sub(self, 0, len(strings.TrimSuffix(s, a.str("suffix"))))
	},
	"partition":  partition(strings.Index, true),
	"rpartition": partition(strings.LastIndex, false),
	"isdigit":    asciiTest("isdigit", func(c byte) bool { return '0' <= c && c <= '9' }),
	"isalpha":    asciiTest("isalpha", func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }),
	"isspace": func(_ *interp, self Value, _ *callArgs) Value {
		s, _ := str(self)
		return s != "" && strings.TrimLeftFunc(s, Space) == ""
	},
	"isascii": func(_ *interp, self Value, _ *callArgs) Value {
		s, _ := str(self)
		return isASCII(s)
	},
}

func runeIndex(s string, at int) Value {
	if at < 0 {
		return int64(-1)
	}
	return int64(utf8.RuneCountInString(s[:at]))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// onlyASCII refuses what depends on the version of Unicode.
func (in *interp) onlyASCII(s, what string, line int) {
	if !isASCII(s) {
		in.fail(line, "unsupported: %s of text beyond ASCII", what)
	}
}

func asciiTest(name string, is func(byte) bool) method {
	return func(in *interp, self Value, a *callArgs) Value {
		s, _ := str(self)
		in.onlyASCII(s, name, a.line)
		for i := range len(s) {
			if !is(s[i]) {
				return false
			}
		}
		return s != ""
	}
}

func (in *interp) upper(v Value, line int) Value {
	s, _ := str(v)
	in.copied(len(s), line)
	if isASCII(s) {
		return like(strings.ToUpper(s), v)
	}
	return like(cases.Upper(language.Und).String(s), v)
}

func (in *interp) lower(v Value, line int) Value {
	s, _ := str(v)
	in.copied(len(s), line)
	if isASCII(s) {
		return like(strings.ToLower(s), v)
	}
	return like(cases.Lower(language.Und).String(s), v)
}

func (in *interp) capitalize(v Value, line int) Value {
	s, _ := str(v)
	in.onlyASCII(s, "capitalize", line)
	if s == "" {
		return s
	}
	return like(strings.ToUpper(s[:1])+strings.ToLower(s[1:]), v)
}
