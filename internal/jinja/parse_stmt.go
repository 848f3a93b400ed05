package jinja

import (
	"slices"
)

func (p *parser) statement() node {
	t := p.cur()
	word := p.name()
	switch word {
	case "if":
		return p.ifStatement(t.line)
	case "for":
		return p.forStatement(t.line)
	case "set":
		return p.setStatement(t.line)
	case "macro":
		return p.macroStatement(t.line)
	case "with":
		return p.withStatement(t.line)
	case "generation":
		p.blockEnd()
		return &scopeNode{body: p.until("endgeneration")}
	case "break", "continue":
		p.blockEnd()
		if p.loops == 0 {
			p.fail("a %q outside of a loop", word)
		}
		if word == "break" {
			return breakNode{}
		}
		return continueNode{}
	}
	p.fail("unsupported: the tag %q", word)
	return nil
}

func (p *parser) ifStatement(line int) node {
	n := &ifNode{line: line}
	for {
		n.tests = append(n.tests, p.tuple(false))
		p.blockEnd()
		n.bodies = append(n.bodies, p.body("elif", "else", "endif"))
		switch {
		case p.word("elif"):
			continue
		case p.word("else"):
			p.blockEnd()
			n.orElse = p.body("endif")
			p.step()
		default:
			p.step()
		}
		p.blockEnd()
		return n
	}
}

func (p *parser) forStatement(line int) node {
	n := &forNode{line: line}
	n.targets, n.tuple = p.targets()
	if !p.word("in") {
		p.fail("an \"in\" is missing")
	}
	n.iter = p.tuple(false)
	p.noteLoop(n.iter)
	if p.word("if") {
		n.filter = p.expression(true)
	}
	if p.cur().is(tokName, "recursive") {
		p.fail("unsupported: a recursive loop")
	}
	p.blockEnd()
	p.loops++
	n.body = p.body("else", "endfor")
	p.loops--
	if p.word("else") {
		p.blockEnd()
		n.orElse = p.body("endfor")
	}
	p.step()
	p.blockEnd()
	return n
}

func (p *parser) noteLoop(e expr) {
	switch e := e.(type) {
	case *nameExpr:
		p.loopsOver[e.name] = true
	case *attrExpr:
		p.loopsOver[e.name] = true
	case *itemExpr:
		if c, ok := e.key.(*constExpr); ok {
			if s, ok := c.value.(string); ok {
				p.loopsOver[s] = true
			}
		}
	case *filterExpr:
		p.noteLoop(e.of)
	case *sliceExpr:
		p.noteLoop(e.of)
	}
}

// targets reads what an assignment or a loop assigns to: names.
func (p *parser) targets() (names []string, tuple bool) {
	closing := p.op("(")
	for {
		name := p.name()
		if reserved(name) {
			p.fail("%q cannot be assigned to", name)
		}
		names = append(names, name)
		if !p.op(",") {
			break
		}
		tuple = true
		if p.cur().kind != tokName || p.cur().text == "in" {
			break
		}
	}
	if closing {
		p.wantOp(")")
	}
	return names, tuple
}

func reserved(name string) bool {
	return slices.Contains([]string{"true", "false", "none", "True", "False", "None", "and", "or", "not", "in", "is", "if", "else"}, name)
}

func (p *parser) setStatement(line int) node {
	n := &setNode{line: line}
	if p.peek().is(tokOp, ".") {
		n.targets = []string{p.name()}
		p.step()
		n.attr = p.name()
	} else {
		n.targets, n.tuple = p.targets()
	}
	if p.op("=") {
		n.value = p.tuple(true)
		p.blockEnd()
		return n
	}
	if p.cur().is(tokOp, "|") {
		p.fail("unsupported: a filter on a set block")
	}
	if n.tuple {
		p.fail("a set block has one name")
	}
	p.blockEnd()
	n.body = p.until("endset")
	return n
}

func (p *parser) withStatement(line int) node {
	n := &withNode{line: line}
	for p.err == nil && p.cur().kind != tokBlockEnd {
		if len(n.names) > 0 {
			p.wantOp(",")
		}
		n.names = append(n.names, p.name())
		p.wantOp("=")
		n.values = append(n.values, p.expression(true))
	}
	p.blockEnd()
	n.body = p.until("endwith")
	return n
}

func (p *parser) macroStatement(line int) node {
	n := &macroNode{name: p.name(), line: line}
	p.wantOp("(")
	for p.err == nil && !p.cur().is(tokOp, ")") {
		if len(n.params) > 0 {
			p.wantOp(",")
		}
		n.params = append(n.params, p.name())
		if p.op("=") {
			n.defaults = append(n.defaults, p.expression(true))
		} else if len(n.defaults) > 0 {
			p.fail("a parameter without a default after one with a default")
		}
	}
	p.wantOp(")")
	p.blockEnd()
	loops := p.loops
	p.loops = 0
	n.body = p.until("endmacro")
	p.loops = loops
	return n
}
