package jinja

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// tuple reads one expression, or several with commas between.
func (p *parser) tuple(conditional bool) expr {
	first := p.expression(conditional)
	if !p.cur().is(tokOp, ",") {
		return first
	}
	list := &listExpr{items: []expr{first}, tuple: true}
	for p.op(",") {
		if t := p.cur(); t.kind == tokVarEnd || t.kind == tokBlockEnd || t.is(tokOp, ")") {
			break
		}
		list.items = append(list.items, p.expression(conditional))
	}
	return list
}

func (p *parser) expression(conditional bool) expr {
	defer p.nest()()
	e := p.or()
	for conditional && p.cur().is(tokName, "if") {
		line := p.step().line
		c := &condExpr{then: e, test: p.or(), line: line}
		if p.word("else") {
			c.orElse = p.expression(true)
		}
		e = c
	}
	return e
}

func (p *parser) or() expr {
	e := p.and()
	for p.cur().is(tokName, "or") {
		line := p.step().line
		e = &binaryExpr{"or", e, p.and(), line}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	for p.cur().is(tokName, "and") {
		line := p.step().line
		e = &binaryExpr{"and", e, p.not(), line}
	}
	return e
}

func (p *parser) not() expr {
	if p.cur().is(tokName, "not") {
		defer p.nest()()
		line := p.step().line
		return &unaryExpr{"not", p.not(), line}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	c := &compareExpr{line: p.cur().line}
	c.first = p.sum()
	for p.err == nil {
		t := p.cur()
		op := ""
		switch {
		case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text), t.is(tokName, "in"):
			op = t.text
			p.step()
		case t.is(tokName, "not") && p.peek().is(tokName, "in"):
			op = "not in"
			p.step()
			p.step()
		}
		if op == "" {
			break
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, p.sum())
	}
	if len(c.ops) == 0 {
		return c.first
	}
	return c
}

// binary reads a left-associative chain of ops over next.
func (p *parser) binary(next func() expr, ops ...string) expr {
	e := next()
	for p.cur().kind == tokOp && slices.Contains(ops, p.cur().text) {
		t := p.step()
		e = &binaryExpr{t.text, e, next(), t.line}
	}
	return e
}

func (p *parser) sum() expr { return p.binary(p.concat, "+", "-") }

func (p *parser) concat() expr {
	c := &concatExpr{line: p.cur().line}
	c.parts = []expr{p.product()}
	for p.op("~") {
		c.parts = append(c.parts, p.product())
	}
	if len(c.parts) == 1 {
		return c.parts[0]
	}
	return c
}

func (p *parser) product() expr { return p.binary(p.power, "*", "/", "//", "%") }
func (p *parser) power() expr {
	return p.binary(func() expr { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) expr {
	defer p.nest()()
	var e expr
	if t := p.cur(); t.is(tokOp, "-") || t.is(tokOp, "+") {
		p.step()
		e = &unaryExpr{t.text, p.unary(false), t.line}
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filters(e)
	}
	return e
}

func (p *parser) primary() expr {
	t := p.step()
	switch {
	case t.kind == tokName:
		switch t.text {
		case "true", "True":
			return &constExpr{true}
		case "false", "False":
			return &constExpr{false}
		case "none", "None":
			return &constExpr{nil}
		}
		p.uses[t.text] = true
		return &nameExpr{t.text, t.line}
	case t.kind == tokString:
		var text strings.Builder
		text.WriteString(t.text)
		for p.cur().kind == tokString {
			text.WriteString(p.step().text)
		}
		return &constExpr{text.String()}
	case t.kind == tokInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			big, _ := new(big.Int).SetString(t.text, 10)
			return &constExpr{big}
		}
		return &constExpr{n}
	case t.kind == tokFloat:
		f, _ := strconv.ParseFloat(t.text, 64)
		return &constExpr{f}
	case t.is(tokOp, "("):
		if p.op(")") {
			return &listExpr{tuple: true}
		}
		e := p.tuple(true)
		p.wantOp(")")
		return e
	case t.is(tokOp, "["):
		return &listExpr{items: p.items("]")}
	case t.is(tokOp, "{"):
		return p.dict(t.line)
	}
	p.fail("an unexpected %q", t.text)
	return &constExpr{nil}
}

func (p *parser) items(end string) []expr {
	var out []expr
	for p.err == nil && !p.op(end) {
		if len(out) > 0 {
			p.wantOp(",")
			if p.op(end) {
				break
			}
		}
		out = append(out, p.expression(true))
	}
	return out
}

func (p *parser) dict(line int) expr {
	d := &dictExpr{line: line}
	for p.err == nil && !p.op("}") {
		if len(d.keys) > 0 {
			p.wantOp(",")
			if p.op("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression(true))
		p.wantOp(":")
		d.values = append(d.values, p.expression(true))
	}
	return d
}

func (p *parser) postfix(e expr) expr {
	for p.err == nil {
		t := p.cur()
		switch {
		case p.op("."):
			if p.cur().kind == tokInt {
				n, _ := strconv.ParseInt(p.step().text, 10, 64)
				e = &itemExpr{e, &constExpr{n}, t.line}
				continue
			}
			e = &attrExpr{e, p.name(), t.line}
		case p.op("["):
			e = p.subscript(e, t.line)
		case t.is(tokOp, "("):
			e = p.call(e)
		default:
			return e
		}
	}
	return e
}

func (p *parser) subscript(e expr, line int) expr {
	var parts [3]expr
	colons := 0
	for p.err == nil && !p.op("]") {
		if p.op(":") {
			if colons++; colons > 2 {
				p.fail("a slice has three parts")
			}
			continue
		}
		if p.cur().is(tokOp, ",") {
			p.fail("unsupported: a subscript of several keys")
		}
		if parts[colons] != nil {
			p.fail("\"]\" is missing")
		}
		parts[colons] = p.expression(true)
	}
	if colons > 0 {
		return &sliceExpr{e, parts[0], parts[1], parts[2], line}
	}
	if parts[0] == nil {
		p.fail("a subscript without a key")
	}
	return &itemExpr{e, parts[0], line}
}
