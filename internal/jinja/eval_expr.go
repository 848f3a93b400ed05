package jinja

import "math/big"

// maxDepth bounds expressions and macro calls in each other.
const maxDepth = 2000

func (in *interp) eval(e expr) Value {
	in.tick(0)
	if in.depth++; in.depth > maxDepth {
		in.fail(0, "the template nests too deeply")
	}
	v := in.evalNode(e)
	in.depth--
	return v
}

func (in *interp) evalNode(e expr) Value {
	switch e := e.(type) {
	case *constExpr:
		return e.value
	case *nameExpr:
		return in.lookup(e.name)
	case *attrExpr:
		return in.attr(in.eval(e.of), e.name, e.line)
	case *itemExpr:
		of := in.eval(e.of)
		return in.item(of, in.eval(e.key), e.line)
	case *sliceExpr:
		return in.slice(e)
	case *callExpr:
		return in.call(in.eval(e.of), in.args(e.args, e.line), e.line)
	case *filterExpr:
		of := in.eval(e.of)
		return e.filter(in, of, in.args(e.args, e.line))
	case *testExpr:
		of := in.eval(e.of)
		return e.test(in, of, in.args(e.args, e.line)) != e.not
	case *unaryExpr:
		return in.unary(e)
	case *binaryExpr:
		return in.binary(e)
	case *concatExpr:
		parts := make([]Value, len(e.parts))
		for i, part := range e.parts {
			parts[i] = in.show(in.eval(part), e.line)
		}
		return in.join(parts, "", e.line)
	case *compareExpr:
		return in.compareChain(e)
	case *condExpr:
		if truth(in.eval(e.test)) {
			return in.eval(e.then)
		}
		if e.orElse == nil {
			return undefined{}
		}
		return in.eval(e.orElse)
	case *listExpr:
		out := &List{Items: make([]Value, len(e.items)), Tuple: e.tuple}
		for i, item := range e.items {
			out.Items[i] = in.eval(item)
		}
		return out
	case *dictExpr:
		d := &Dict{}
		for i, k := range e.keys {
			d.Set(in.key(in.eval(k), e.line), in.eval(e.values[i]))
		}
		return d
	}
	in.fail(0, "a fault of the template engine")
	return nil
}

// key is a dict's key. Others than strings are not honoured.
func (in *interp) key(v Value, line int) string {
	s, ok := str(v)
	if !ok {
		in.fail(line, "unsupported: a %s as key of a dict", typeName(v))
	}
	return s
}

func (in *interp) lookup(name string) Value {
	if v, ok := in.scope.get(name); ok {
		return v
	}
	if f, ok := globals[name]; ok {
		return &function{name, f}
	}
	if refusedGlobals[name] {
		in.fail(0, "unsupported: the function %q", name)
	}
	return undefined{}
}

func (in *interp) unary(e *unaryExpr) Value {
	v := in.eval(e.of)
	if e.op == "not" {
		return !truth(v)
	}
	switch n := v.(type) {
	case float64:
		if e.op == "-" {
			return -n
		}
		return n
	case *big.Int:
		if e.op == "-" {
			return new(big.Int).Neg(n)
		}
		return n
	}
	n, ok := integer(v)
	if !ok || n == -1<<63 {
		in.fail(e.line, "%s of a %s", e.op, typeName(v))
	}
	if e.op == "-" {
		return -n
	}
	return n
}

func (in *interp) compareChain(e *compareExpr) Value {
	left := in.eval(e.first)
	for i, op := range e.ops {
		right := in.eval(e.rest[i])
		if !in.compare(op, left, right, e.line) {
			return false
		}
		left = right
	}
	return true
}

func (in *interp) compare(op string, a, b Value, line int) bool {
	switch op {
	case "==":
		return in.equal(a, b, line, 0)
	case "!=":
		return !in.equal(a, b, line, 0)
	case "in":
		return in.contains(b, a, line)
	case "not in":
		return !in.contains(b, a, line)
	}
	c := in.order(a, b, line)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// order compares as < does: −1, 0, 1.
func (in *interp) order(a, b Value, line int) int {
	if s, ok := str(a); ok {
		if t, ok := str(b); ok {
			in.weigh(a, line)
			return compareStrings(s, t)
		}
	}
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok {
			return sign(x > y, x < y)
		}
	}
	x, ok1 := number(a)
	y, ok2 := number(b)
	if !ok1 || !ok2 {
		in.fail(line, "unsupported: the order of a %s and a %s", typeName(a), typeName(b))
	}
	if x != x || y != y {
		in.fail(line, "unsupported: the order of nan")
	}
	return sign(x > y, x < y)
}

func sign(more, less bool) int {
	switch {
	case more:
		return 1
	case less:
		return -1
	}
	return 0
}
