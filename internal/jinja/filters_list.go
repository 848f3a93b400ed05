package jinja

import (
	"slices"
	"strings"
)

// choose is select, reject, selectattr and rejectattr.
func choose(keep, attr bool) filter {
	return func(in *interp, v Value, a *callArgs) Value {
		key := Value(nil)
		if attr {
			key = a.must("attribute")
		}
		test := func(v Value) bool { return truth(v) }
		if name, ok := a.take(""); ok {
			s, _ := str(name)
			t := testNamed(s)
			if t == nil {
				in.fail(a.line, "unsupported: a test that is not known")
			}
			rest := slices.Clone(a.pos)
			a.pos = nil
			test = func(v Value) bool { return t(in, v, &callArgs{in: in, line: a.line, pos: slices.Clone(rest)}) }
		}
		out := &List{view: true}
		for _, item := range in.items(v, a.line) {
			in.tick(a.line)
			subject := item
			if attr {
				subject = in.path(item, key, a.line)
			}
			if test(subject) == keep {
				out.Items = append(out.Items, item)
			}
		}
		return out
	}
}

// mapped is map: by a filter's name, or with attribute=.
func mapped(in *interp, v Value, a *callArgs) Value {
	out := &List{view: true}
	var each func(Value) Value
	if len(a.pos) > 0 {
		name, _ := str(a.must("filter"))
		f := filterNamed(name)
		if f == nil {
			in.fail(a.line, "unsupported: mapping by a filter that is not known")
		}
		rest := a.pos
		a.pos = nil
		each = func(item Value) Value {
			return f(in, item, &callArgs{in: in, line: a.line, pos: slices.Clone(rest)})
		}
	} else {
		key, otherwise := a.must("attribute"), a.or("default", undefined{})
		each = func(item Value) Value {
			got := in.path(item, key, a.line)
			if _, ok := got.(undefined); ok {
				return otherwise
			}
			return got
		}
	}
	for _, item := range in.items(v, a.line) {
		in.tick(a.line)
		out.Items = append(out.Items, each(item))
	}
	return out
}

// unique keeps the first of equal items; texts are equal whatever their case, as in jinja2.
func unique(in *interp, v Value, a *callArgs) Value {
	out, seen := &List{view: true}, map[string]bool{}
	for _, item := range in.items(v, a.line) {
		s, ok := str(item)
		if !ok {
			in.fail(a.line, "unsupported: unique of others than texts")
		}
		in.onlyASCII(s, "unique", a.line)
		if s = strings.ToLower(s); !seen[s] {
			seen[s] = true
			out.Items = append(out.Items, item)
		}
	}
	return out
}

// dictSort is dictsort by key, whatever its case.
func dictSort(in *interp, v Value, a *callArgs) Value {
	d, ok := v.(*Dict)
	if !ok {
		in.fail(a.line, "dictsort of a %s", typeName(v))
	}
	pairs := dictMethods["items"](in, d, a).(*List).Items
	key := func(v Value) string {
		s, _ := str(v.(*List).Items[0])
		in.onlyASCII(s, "dictsort", a.line)
		return strings.ToLower(s)
	}
	slices.SortStableFunc(pairs, func(x, y Value) int { return strings.Compare(key(x), key(y)) })
	return &List{Items: pairs}
}
