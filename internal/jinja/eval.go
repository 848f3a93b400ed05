package jinja

import (
	"context"
	"fmt"
)

// Limits bound a rendering. Zero fields take the defaults.
type Limits struct {
	Steps  int // evaluated nodes, passed items, and portions of what a filter, method or comparison goes through; 0 = 4 million
	Output int // bytes of output; 0 = 256 MiB
	Copied int // bytes of intermediate texts; 0 = 1 GiB
}

func (l Limits) orDefaults() Limits {
	if l.Steps == 0 {
		l.Steps = 4_000_000
	}
	if l.Output == 0 {
		l.Output = 256 << 20
	}
	if l.Copied == 0 {
		l.Copied = 1 << 30
	}
	return l
}

// Output is what a template wrote. Its memory is reused by the next rendering into it.
type Output struct {
	Text  []byte
	Spans []Span // the bytes that are content

	used int // bytes of Text's array that may hold text, beside len(Text)
}

// Render writes the template with vars as its variables to out. The error is an *Error, or that of ctx. A fault of
// this package itself comes as an error too, without what it was about.
func (t *Template) Render(ctx context.Context, out *Output, vars map[string]Value, l Limits) (err error) {
	out.used = max(out.used, len(out.Text))
	out.Text, out.Spans = out.Text[:0], out.Spans[:0]
	in := &interp{ctx: ctx, limits: l.orDefaults(), out: out}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stop:
			err = r.err
		default:
			err = &Error{What: "a fault of the template engine"}
		}
	}()
	in.scope = &scope{vars: vars}
	in.push(t.hidden)
	in.run(t.body)
	return nil
}

// Error names the line of the template.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

// stop is the only panic of this package: it ends a rendering.
type stop struct{ err error }

type scope struct {
	vars   map[string]Value
	parent *scope
}

func (s *scope) get(name string) (Value, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) set(name string, v Value) {
	if s.vars == nil {
		s.vars = make(map[string]Value)
	}
	s.vars[name] = v
}

type interp struct {
	ctx    context.Context
	limits Limits
	out    *Output
	scope  *scope
	depth  int
}

func (in *interp) fail(line int, format string, a ...any) {
	panic(stop{&Error{Line: line, What: fmt.Sprintf(format, a...)}})
}

// ticksPerLook is how many steps pass between two looks at the context.
const ticksPerLook = 4096

func (in *interp) tick(line int) {
	if in.limits.Steps--; in.limits.Steps < 0 {
		in.fail(line, "the template takes too many steps")
	}
	if in.limits.Steps%ticksPerLook == 0 {
		if err := in.ctx.Err(); err != nil {
			panic(stop{err})
		}
	}
}

// Sizes of what takes as long to go through as a step.
const (
	bytesPerStep = 512
	itemsPerStep = 16
)

// weigh counts the steps of going through v once, as most filters and methods do.
func (in *interp) weigh(v Value, line int) {
	n := 0
	switch v := v.(type) {
	case string:
		n = len(v) / bytesPerStep
	case *Text:
		n = len(v.S) / bytesPerStep
	case *List:
		n = len(v.Items) / itemsPerStep
	case *Dict:
		n = len(v.keys) / itemsPerStep
	}
	if in.limits.Steps -= n; in.limits.Steps < 0 {
		in.fail(line, "the template takes too many steps")
	}
}

// maxValue bounds one text or list, in bytes: what is doubled in a loop is refused before it fills the memory.
const maxValue = 64 << 20

// copied counts n bytes of a new text.
func (in *interp) copied(n, line int) {
	if in.limits.Copied -= n; in.limits.Copied < 0 || n > maxValue {
		in.fail(line, "the template copies too much text")
	}
}

func (in *interp) write(v Value, line int) {
	s, _ := str(v)
	if len(in.out.Text)+len(s) > in.limits.Output {
		in.fail(line, "the template writes too much")
	}
	in.out.Spans = appendSpans(in.out.Spans, spansOf(v), len(in.out.Text))
	in.out.room(len(s))
	in.out.Text = append(in.out.Text, s...)
}

// room makes space for n more bytes; what is left behind is cleared.
func (o *Output) room(n int) {
	if cap(o.Text)-len(o.Text) >= n {
		return
	}
	grown := make([]byte, len(o.Text), 2*cap(o.Text)+n)
	copy(grown, o.Text)
	clear(o.Text[:max(len(o.Text), min(o.used, cap(o.Text)))])
	o.Text, o.used = grown, 0
}

// push opens a frame in which hidden names are undefined.
func (in *interp) push(hidden []string) {
	in.scope = &scope{parent: in.scope}
	for _, name := range hidden {
		in.scope.set(name, undefined{})
	}
}

func (in *interp) pop() { in.scope = in.scope.parent }

// flow says how a list of statements ended.
type flow int

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

func (in *interp) run(body []node) flow {
	for _, n := range body {
		if f := in.statement(n); f != flowNext {
			return f
		}
	}
	return flowNext
}

func (in *interp) statement(n node) flow {
	in.tick(0)
	switch n := n.(type) {
	case *dataNode:
		in.write(n.text, 0)
	case *outputNode:
		in.write(in.show(in.eval(n.expr), n.line), n.line)
	case *ifNode:
		for i, test := range n.tests {
			if truth(in.eval(test)) {
				return in.run(n.bodies[i])
			}
		}
		return in.run(n.orElse)
	case *forNode:
		in.loop(n)
	case *setNode:
		in.set(n)
	case *withNode:
		values := make([]Value, len(n.values))
		for i, e := range n.values {
			values[i] = in.eval(e)
		}
		in.push(n.hidden)
		for i, v := range values {
			in.scope.set(n.names[i], v)
		}
		f := in.run(n.body)
		in.pop()
		return f
	case *macroNode:
		in.scope.set(n.name, &macro{n, in.scope})
	case *scopeNode:
		in.push(n.hidden)
		f := in.run(n.body)
		in.pop()
		return f
	case breakNode:
		return flowBreak
	case continueNode:
		return flowContinue
	}
	return flowNext
}

func (in *interp) set(n *setNode) {
	var v Value
	if n.value != nil {
		v = in.eval(n.value)
	} else {
		v = in.capture(func() { in.push(n.hidden); in.run(n.body); in.pop() }, n.line)
	}
	switch {
	case n.attr != "":
		target, _ := in.scope.get(n.targets[0])
		ns, ok := target.(*namespace)
		if !ok {
			in.fail(n.line, "only attributes of a namespace can be set")
		}
		ns.vars[n.attr] = v
	case n.tuple:
		in.unpack(n.targets, v, n.line)
	default:
		in.scope.set(n.targets[0], v)
	}
}

func (in *interp) unpack(names []string, v Value, line int) {
	items := in.items(v, line)
	if len(items) != len(names) {
		in.fail(line, "%d values for %d names", len(items), len(names))
	}
	for i, name := range names {
		in.scope.set(name, items[i])
	}
}

// capture returns what f writes.
func (in *interp) capture(f func(), line int) Value {
	outer := in.out
	in.out = &Output{}
	defer func() { in.out = outer }()
	f()
	in.copied(len(in.out.Text), line)
	return textOf(string(in.out.Text), in.out.Spans)
}

func (in *interp) loop(n *forNode) {
	all := in.items(in.eval(n.iter), n.line)
	items := all
	if n.filter != nil {
		items = nil
		for _, item := range all {
			in.push(nil)
			in.bind(n, item)
			keep := truth(in.eval(n.filter))
			in.pop()
			if keep {
				items = append(items, item)
			}
		}
	}
	if len(items) == 0 {
		in.push(n.hiddenElse)
		in.run(n.orElse)
		in.pop()
		return
	}
	state := &loopState{items: items}
	for i, item := range items {
		in.tick(n.line)
		state.at = i
		in.push(n.hidden)
		in.scope.set("loop", state)
		in.bind(n, item)
		f := in.run(n.body)
		in.pop()
		if f == flowBreak {
			break
		}
	}
}

func (in *interp) bind(n *forNode, item Value) {
	if n.tuple {
		in.unpack(n.targets, item, n.line)
		return
	}
	in.scope.set(n.targets[0], item)
}
