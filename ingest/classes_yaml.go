package ingest

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"tailgate/internal/fault"
	"tailgate/internal/yamldoc"
	"tailgate/schemas"
)

// ParseClasses reads a rules file, data, whose name is for messages:
//
//	rules:
//	  - {class: search, route: "/v1/search*", op: [chat, responses]}
//	  - {class: agent, tools: true}
//	  - {class: long_context, input_tokens: [8192, null]}   # half-open range, null = open
//
// Conditions of a rule: route, model, tenant, tag (a header or tag as the gateway logs it) and op take one
// value or a list, with * for any characters; tools, stream and session take true or false; input_tokens takes
// a range. All of a rule's conditions must hold; the first rule that holds decides; requests without one are
// "other". Every fault of the file is reported, as fault.Usage.
func ParseClasses(name string, data []byte) (*ClassRules, error) {
	p := &classParser{name: name}
	body, err := parseDocument(name, data)
	if err != nil {
		return nil, err
	}
	rules := p.file(body)
	if len(p.errs) > 0 {
		return nil, fault.Mark(errors.Join(p.errs...), fault.Usage, "")
	}
	return &ClassRules{rules: rules}, nil
}

// maxRules bounds a file of rules, which may list many tenants.
const maxRules = 8 << 20

// parseDocument reads the one document of a rules file.
func parseDocument(name string, data []byte) (ast.Node, error) {
	if line, err := yamldoc.Check(data, maxRules); err != nil {
		return nil, fault.Mark(fmt.Errorf("%s:%d: %w", name, line, err), fault.Usage, "")
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		var syntax *yaml.SyntaxError
		line := 1
		if errors.As(err, &syntax) && syntax.Token != nil {
			line = syntax.Token.Position.Line
		}
		return nil, fault.Mark(fmt.Errorf("%s:%d: not valid YAML", name, line), fault.Usage, "")
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, fault.Mark(fmt.Errorf("%s:1: want one document with rules", name), fault.Usage, "")
	}
	return file.Docs[0].Body, nil
}

// classParser walks the syntax tree, which knows the lines, and collects faults.
type classParser struct {
	name string
	errs []error
}

func (p *classParser) fault(n ast.Node, format string, args ...any) {
	line := n.GetToken().Position.Line
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s", p.name, line, fmt.Sprintf(format, args...)))
}

func (p *classParser) file(body ast.Node) []classRule {
	var rules []classRule
	found := false
	for _, f := range p.fields(body) {
		if f.Key.String() != "rules" {
			p.fault(f, "unknown key %q, want rules", f.Key.String())
			continue
		}
		found = true
		list, ok := f.Value.(*ast.SequenceNode)
		if !ok || len(list.Values) == 0 {
			p.fault(f, "rules must be a list with at least one rule")
			continue
		}
		for _, v := range list.Values {
			rules = append(rules, p.rule(v))
		}
	}
	if !found && len(p.errs) == 0 {
		p.fault(body, "rules are missing")
	}
	return rules
}

// fields returns the entries of a mapping, or reports that n is none.
func (p *classParser) fields(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	p.fault(n, "want key: value pairs")
	return nil
}

var classOps = []string{
	schemas.OpChat, schemas.OpCompletion, schemas.OpResponses, schemas.OpEmbedding, schemas.OpRerank, schemas.OpOther,
}

var classNamePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

func (p *classParser) rule(n ast.Node) classRule {
	var r classRule
	before := len(p.errs)
	for _, f := range p.fields(n) {
		switch key := f.Key.String(); key {
		case "class":
			r.class = p.text(f.Value)
			if !classNamePattern.MatchString(r.class) {
				p.fault(f, "class must be a lower-case name of up to 32 letters, digits and _, not %q", r.class)
			}
		case "route":
			r.route = p.texts(f.Value)
		case "model":
			r.model = p.texts(f.Value)
		case "tenant":
			r.tenant = p.texts(f.Value)
		case "tag", "header":
			r.tags = append(r.tags, p.texts(f.Value)...)
		case "op":
			r.ops = p.texts(f.Value)
			for _, op := range r.ops {
				if !slices.Contains(classOps, op) {
					p.fault(f, "op %q is not one of %s", op, strings.Join(classOps, ", "))
				}
			}
		case "tools":
			r.tools = p.boolean(f.Value)
		case "stream":
			r.stream = p.boolean(f.Value)
		case "session":
			r.session = p.boolean(f.Value)
		case "input_tokens":
			r.minInput, r.maxInput = p.span(f.Value)
		default:
			p.fault(f, "unknown condition %q", key)
		}
	}
	if r.class == "" && len(p.errs) == before {
		p.fault(n, "class is missing")
	}
	return r
}

func (p *classParser) text(n ast.Node) string {
	switch s := n.(type) {
	case *ast.StringNode:
		if s.Value != "" {
			return s.Value
		}
	case *ast.LiteralNode:
		return s.Value.Value
	case *ast.IntegerNode:
		return s.GetToken().Value
	}
	p.fault(n, "want a text")
	return ""
}

// texts reads one text or a list of them.
func (p *classParser) texts(n ast.Node) []string {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return []string{p.text(n)}
	}
	if len(list.Values) == 0 {
		p.fault(n, "the list is empty")
	}
	var out []string
	for _, v := range list.Values {
		out = append(out, p.text(v))
	}
	return out
}

func (p *classParser) boolean(n ast.Node) *bool {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		p.fault(n, "want true or false")
		return nil
	}
	return &b.Value
}

// span reads a half-open range [lo, hi] of tokens, in which null is open.
func (p *classParser) span(n ast.Node) (lo, hi *int32) {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) != 2 {
		p.fault(n, "want a range [from, below], with null for an open end")
		return nil, nil
	}
	lo, hi = p.tokens(list.Values[0]), p.tokens(list.Values[1])
	if lo != nil && hi != nil && *lo >= *hi {
		p.fault(n, "the range is empty")
	}
	return lo, hi
}

func (p *classParser) tokens(n ast.Node) *int32 {
	if _, open := n.(*ast.NullNode); open {
		return nil
	}
	if i, ok := n.(*ast.IntegerNode); ok {
		v, err := strconv.ParseInt(i.GetToken().Value, 10, 64)
		if err == nil && v >= 0 && v <= math.MaxInt32 {
			return new(int32(v))
		}
	}
	p.fault(n, "want a whole number of tokens")
	return nil
}
