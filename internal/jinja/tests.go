package jinja

import "math/big"

type test func(in *interp, v Value, a *callArgs) bool

// testNamed returns one of the tests of jinja2 that chat templates use, nil for another name.
func testNamed(name string) test {
	switch name {
	case "defined":
		return func(_ *interp, v Value, a *callArgs) bool { a.done(); return typeName(v) != "undefined" }
	case "undefined":
		return byType("undefined")
	case "none":
		return byType("None")
	case "string":
		return byType("str")
	case "mapping":
		return byType("dict")
	case "boolean":
		return byType("bool")
	case "integer":
		return byType("int")
	case "float":
		return byType("float")
	case "number":
		return byType("int", "float", "bool")
	case "callable":
		return byType("function", "undefined")
	case "iterable":
		return byType("str", "list", "tuple", "dict", "view", "undefined")
	case "sequence":
		return byType("str", "list", "tuple", "dict", "undefined")
	case "true":
		return byValue(true)
	case "false":
		return byValue(false)
	case "odd":
		return byRest(1)
	case "even":
		return byRest(0)
	case "divisibleby":
		return divisible
	case "sameas":
		return sameAs
	case "in":
		return byOrder("in")
	case "eq", "equalto", "==":
		return byOrder("==")
	case "ne", "!=":
		return byOrder("!=")
	case "lt", "lessthan", "<":
		return byOrder("<")
	case "le", "<=":
		return byOrder("<=")
	case "gt", "greaterthan", ">":
		return byOrder(">")
	case "ge", ">=":
		return byOrder(">=")
	}
	return nil
}

func byType(names ...string) test {
	return func(_ *interp, v Value, a *callArgs) bool {
		a.done()
		t := typeName(v)
		for _, n := range names {
			if t == n {
				return true
			}
		}
		return false
	}
}

func byValue(want Value) test {
	return func(_ *interp, v Value, a *callArgs) bool {
		a.done()
		b, ok := v.(bool)
		return ok && b == want
	}
}

func byOrder(op string) test {
	return func(in *interp, v Value, a *callArgs) bool {
		other := a.must("other")
		a.done()
		return in.compare(op, v, other, a.line)
	}
}

func byRest(want int64) test {
	return func(in *interp, v Value, a *callArgs) bool {
		a.done()
		n, ok := integer(v)
		if !ok {
			in.fail(a.line, "odd or even of a %s", typeName(v))
		}
		return n&1 == want
	}
}

func divisible(in *interp, v Value, a *callArgs) bool {
	by := a.must("num")
	a.done()
	n, ok1 := integer(v)
	m, ok2 := integer(by)
	if !ok1 || !ok2 || m == 0 {
		in.fail(a.line, "divisibleby of a %s and a %s", typeName(v), typeName(by))
	}
	return n%m == 0
}

func sameAs(in *interp, v Value, a *callArgs) bool {
	other := a.must("other")
	a.done()
	switch x := v.(type) {
	case nil:
		return other == nil
	case bool:
		y, ok := other.(bool)
		return ok && x == y
	case string, *Text, int64, float64, *big.Int:
		in.fail(a.line, "unsupported: whether a %s is the same object", typeName(v))
	}
	return same(v, other)
}
