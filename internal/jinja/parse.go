package jinja

import (
	"fmt"
	"slices"
)

// Template is a parsed template.
type Template struct {
	body      []node
	hidden    []string
	loopsOver map[string]bool // names and attributes that a for statement goes through
	uses      map[string]bool // names that are read
}

// Limits of a template's source.
const (
	MaxSource = 1 << 20 // bytes
	maxNest   = 200     // brackets and blocks in each other
)

// Parse reads the source of a template. It refuses what this package does not honour.
func Parse(source string) (*Template, error) {
	if len(source) > MaxSource {
		return nil, &Error{What: fmt.Sprintf("the template is longer than %d bytes", MaxSource)}
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens, loopsOver: map[string]bool{}, uses: map[string]bool{}}
	body := p.body()
	if p.err == nil && p.cur().kind != tokEOF {
		p.fail("an unexpected %q", p.cur().text)
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Template{body: body, hidden: frame(nil, body, nil), loopsOver: p.loopsOver, uses: p.uses}, nil
}

// LoopsOver tells whether a for statement of the template goes through a variable or an attribute of that name.
func (t *Template) LoopsOver(name string) bool { return t.loopsOver[name] }

// Uses tells whether the template reads a variable of that name.
func (t *Template) Uses(name string) bool { return t.uses[name] }

// parser is a recursive descent over jinja2's grammar. After the first error it returns without progress.
type parser struct {
	tokens    []token
	at        int
	depth     int
	loops     int // for statements around
	loopsOver map[string]bool
	uses      map[string]bool
	err       error
}

func (p *parser) cur() token  { return p.tokens[p.at] }
func (p *parser) peek() token { return p.tokens[min(p.at+1, len(p.tokens)-1)] }

func (p *parser) step() token {
	t := p.cur()
	if p.at < len(p.tokens)-1 {
		p.at++
	}
	return t
}

func (p *parser) fail(format string, a ...any) {
	if p.err == nil {
		p.err = &Error{Line: p.cur().line, What: fmt.Sprintf(format, a...)}
		p.at = len(p.tokens) - 1 // ends every loop
	}
}

func (p *parser) op(text string) bool {
	if p.cur().is(tokOp, text) {
		p.step()
		return true
	}
	return false
}

func (p *parser) word(text string) bool {
	if p.cur().is(tokName, text) {
		p.step()
		return true
	}
	return false
}

func (p *parser) wantOp(text string) {
	if !p.op(text) {
		p.fail("%q is missing", text)
	}
}

func (p *parser) name() string {
	if p.cur().kind != tokName {
		p.fail("a name is missing")
		return ""
	}
	return p.step().text
}

func (p *parser) blockEnd() {
	if p.cur().kind != tokBlockEnd {
		p.fail("a tag does not end where it should")
		return
	}
	p.step()
}

// nest guards against templates that nest without end; use as `defer p.nest()()`.
func (p *parser) nest() func() {
	if p.depth++; p.depth > maxNest {
		p.fail("unsupported: more than %d levels in each other", maxNest)
	}
	return func() { p.depth-- }
}

// body reads statements up to the end or to a tag that begins with one of ends, which is left current.
func (p *parser) body(ends ...string) []node {
	defer p.nest()()
	var out []node
	for p.err == nil {
		switch t := p.step(); t.kind {
		case tokEOF:
			if len(ends) > 0 {
				p.fail("a %q is missing", ends[len(ends)-1])
			}
			return out
		case tokData:
			out = append(out, &dataNode{t.text})
		case tokVarBegin:
			e := p.tuple(true)
			if p.cur().kind != tokVarEnd {
				p.fail("an expression does not end where it should")
			}
			p.step()
			out = append(out, &outputNode{e, t.line})
		case tokBlockBegin:
			if p.cur().kind == tokName && slices.Contains(ends, p.cur().text) {
				return out
			}
			if n := p.statement(); n != nil {
				out = append(out, n)
			}
		default:
			p.fail("an unexpected %q", t.text)
		}
	}
	return out
}

// until reads a body and the tag that ends it.
func (p *parser) until(end string) []node {
	out := p.body(end)
	p.step()
	p.blockEnd()
	return out
}
