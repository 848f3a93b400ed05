package jinja

import (
	"slices"
)

func (p *parser) call(e expr) expr {
	c := &callExpr{of: e, line: p.cur().line}
	c.args = p.arguments()
	if a, ok := e.(*attrExpr); ok && refusedMethods[a.name] {
		p.fail("unsupported: the method %q", a.name)
	}
	if n, ok := e.(*nameExpr); ok && refusedGlobals[n.name] {
		p.fail("unsupported: the function %q", n.name)
	}
	return c
}

func (p *parser) arguments() args {
	var a args
	p.wantOp("(")
	for p.err == nil && !p.op(")") {
		if len(a.positional)+len(a.named) > 0 {
			p.wantOp(",")
			if p.op(")") {
				break
			}
		}
		switch t := p.cur(); {
		case t.is(tokOp, "*"), t.is(tokOp, "**"):
			p.fail("unsupported: unpacked arguments")
		case t.kind == tokName && p.peek().is(tokOp, "="):
			p.step()
			p.step()
			if slices.Contains(a.names, t.text) {
				p.fail("an argument is given twice")
			}
			a.names, a.named = append(a.names, t.text), append(a.named, p.expression(true))
		default:
			if len(a.named) > 0 {
				p.fail("a positional argument after a named one")
			}
			a.positional = append(a.positional, p.expression(true))
		}
	}
	return a
}

// filters reads the filters and tests behind a primary expression.
func (p *parser) filters(e expr) expr {
	for p.err == nil {
		t := p.cur()
		switch {
		case p.op("|"):
			f := &filterExpr{of: e, name: p.name(), line: t.line}
			if f.filter = filterNamed(f.name); f.filter == nil {
				p.fail("unsupported: the filter %q", f.name)
			}
			if p.cur().is(tokOp, "(") {
				f.args = p.arguments()
			}
			e = f
		case p.word("is"):
			e = p.test(e, t.line)
		case t.is(tokOp, "("):
			e = p.call(e)
		default:
			return e
		}
	}
	return e
}

func (p *parser) test(e expr, line int) expr {
	n := &testExpr{of: e, line: line}
	n.not = p.word("not")
	n.name = p.name()
	if n.test = testNamed(n.name); n.test == nil {
		p.fail("unsupported: the test %q", n.name)
	}
	switch t := p.cur(); {
	case t.is(tokOp, "("):
		n.args = p.arguments()
	case t.kind == tokString, t.kind == tokInt, t.kind == tokFloat, t.is(tokOp, "["), t.is(tokOp, "{"),
		t.kind == tokName && !slices.Contains([]string{"else", "or", "and"}, t.text):
		if t.is(tokName, "is") {
			p.fail("tests cannot be chained with is")
		}
		n.args.positional = []expr{p.postfix(p.primary())}
	}
	return n
}
