package jinja

import "slices"

// callArgs are evaluated arguments. What is not taken is refused by done.
type callArgs struct {
	in    *interp
	line  int
	pos   []Value
	names []string
	named []Value
}

func (in *interp) args(a args, line int) *callArgs {
	out := &callArgs{in: in, line: line}
	for _, e := range a.positional {
		out.pos = append(out.pos, in.eval(e))
	}
	for i, e := range a.named {
		out.names, out.named = append(out.names, a.names[i]), append(out.named, in.eval(e))
	}
	return out
}

// take returns the next positional argument, or the one of that name.
func (a *callArgs) take(name string) (Value, bool) {
	if len(a.pos) > 0 {
		v := a.pos[0]
		a.pos = a.pos[1:]
		return v, true
	}
	if i := slices.Index(a.names, name); i >= 0 {
		v := a.named[i]
		a.names, a.named = slices.Delete(a.names, i, i+1), slices.Delete(a.named, i, i+1)
		return v, true
	}
	return nil, false
}

// or is take with a default.
func (a *callArgs) or(name string, otherwise Value) Value {
	if v, ok := a.take(name); ok {
		return v
	}
	return otherwise
}

// must is take of an argument that has to be there.
func (a *callArgs) must(name string) Value {
	v, ok := a.take(name)
	if !ok {
		a.in.fail(a.line, "the argument %q is missing", name)
	}
	return v
}

// text is must for a string.
func (a *callArgs) text(name string) Value {
	v := a.must(name)
	if _, ok := str(v); !ok {
		a.in.fail(a.line, "the argument %q is a %s, not a str", name, typeName(v))
	}
	return v
}

func (a *callArgs) str(name string) string {
	s, _ := str(a.text(name))
	return s
}

// done refuses what has not been taken.
func (a *callArgs) done() {
	if len(a.pos) > 0 {
		a.in.fail(a.line, "unsupported: %d more arguments", len(a.pos))
	}
	if len(a.names) > 0 {
		a.in.fail(a.line, "unsupported: the argument %q", a.names[0])
	}
}

func (in *interp) call(f Value, a *callArgs, line int) Value {
	switch f := f.(type) {
	case *function:
		return f.call(in, a)
	case *macro:
		return in.callMacro(f, a)
	}
	in.fail(line, "a call of a %s", typeName(f))
	return nil
}

// callMacro runs a macro in a scope of its own, below that of its definition.
func (in *interp) callMacro(m *macro, a *callArgs) Value {
	if in.depth++; in.depth > maxDepth/10 {
		in.fail(a.line, "macros call each other too deeply")
	}
	given := make([]Value, len(m.def.params))
	set := make([]bool, len(given))
	for i, name := range m.def.params {
		given[i], set[i] = a.take(name)
	}
	a.done()
	outer := in.scope
	in.scope = m.scope
	in.push(m.def.hidden)
	first := len(given) - len(m.def.defaults)
	for i, name := range m.def.params {
		switch {
		case set[i]:
		case i >= first:
			given[i] = in.eval(m.def.defaults[i-first])
		default:
			given[i] = undefined{}
		}
		in.scope.set(name, given[i])
	}
	v := in.capture(func() { in.run(m.def.body) }, a.line)
	in.scope = outer
	in.depth--
	return v
}

// refusedGlobals are functions of jinja2 that are not honoured.
var refusedGlobals = map[string]bool{"lipsum": true, "cycler": true, "joiner": true, "caller": true, "super": true, "varargs": true, "kwargs": true}

// maxRange is the sandbox's own bound.
const maxRange = 100_000

var globals = map[string]func(in *interp, a *callArgs) Value{
	"namespace": func(in *interp, a *callArgs) Value {
		ns := &namespace{vars: map[string]Value{}}
		in.takeMembers(a, func(k string, v Value) { ns.vars[k] = v })
		return ns
	},
	"dict": func(in *interp, a *callArgs) Value {
		d := &Dict{}
		in.takeMembers(a, d.Set)
		return d
	},
	"range": func(in *interp, a *callArgs) Value {
		var n [3]int64
		count := len(a.pos)
		for i := range min(count, 3) {
			v, ok := integer(a.must(""))
			if !ok {
				in.fail(a.line, "a range without an int")
			}
			n[i] = v
		}
		a.done()
		from, to, step := n[0], n[1], n[2]
		switch count {
		case 0:
			in.fail(a.line, "a range without an int")
		case 1:
			from, to, step = 0, n[0], 1
		case 2:
			step = 1
		}
		if step == 0 {
			in.fail(a.line, "a range with step 0")
		}
		out := &List{view: true}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			if len(out.Items) == maxRange {
				in.fail(a.line, "a range of more than %d", maxRange)
			}
			out.Items = append(out.Items, i)
		}
		in.copied(16*len(out.Items), a.line)
		return out
	},
	"raise_exception": func(in *interp, a *callArgs) Value {
		in.fail(a.line, "the template refuses the prompt (raise_exception)")
		return nil
	},
	"strftime_now": func(in *interp, a *callArgs) Value {
		s, ok := strftime(a.str("format"))
		if !ok {
			in.fail(a.line, "unsupported: this format of strftime_now")
		}
		return s
	},
}

// takeMembers passes the members of a dict and the named arguments to set.
func (in *interp) takeMembers(a *callArgs, set func(string, Value)) {
	for _, v := range a.pos {
		d, ok := v.(*Dict)
		if !ok {
			in.fail(a.line, "unsupported: a %s as argument here", typeName(v))
		}
		for i, k := range d.keys {
			set(k, d.values[i])
		}
	}
	for i, k := range a.names {
		set(k, a.named[i])
	}
}

// The day of strftime_now: every rendering has the same, because a date of the moment would part prompts that
// the engine, asked on one day, would share.
var fixedDay = map[byte]string{
	'Y': "2024", 'y': "24", 'm': "07", 'd': "26", 'e': "26", 'b': "Jul", 'h': "Jul", 'B': "July", 'a': "Fri", 'A': "Friday",
	'H': "00", 'I': "12", 'M': "00", 'S': "00", 'p': "AM", 'j': "208", 'u': "5", 'w': "5", '%': "%",
	'F': "2024-07-26", 'T': "00:00:00", 'D': "07/26/24",
}

func strftime(format string) (string, bool) {
	var out []byte
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' || i+1 == len(format) {
			out = append(out, c)
			continue
		}
		i++
		s, ok := fixedDay[format[i]]
		if !ok {
			return "", false
		}
		out = append(out, s...)
	}
	return string(out), true
}
