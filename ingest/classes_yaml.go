package ingest

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

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
	r, root := yamldoc.Open(name, data, yamldoc.Options{Limit: maxRules})
	p := ruleParser{r}
	var rules []classRule
	if root != nil {
		for _, n := range p.entries(root, "a classes file", "rules") {
			rules = append(rules, p.rule(n))
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return &ClassRules{rules: rules}, nil
}

// maxRules bounds a file of rules, which may list many tenants.
const maxRules = 8 << 20

// ruleParser reads a file of rules about requests.
type ruleParser struct{ *yamldoc.Reader }

// entries lists the rules of a file, which what names, whose one key is key.
func (p ruleParser) entries(root yamldoc.Node, what, key string) []yamldoc.Node {
	fields := p.Fields(root, what, key)
	if len(fields) > 0 {
		return p.Entries(fields[0].Value, key)
	}
	if p.Faults() == 0 {
		p.Faultf(root, "%s is missing in %s", key, what)
	}
	return nil
}

var classOps = []string{
	schemas.OpChat, schemas.OpCompletion, schemas.OpResponses, schemas.OpEmbedding, schemas.OpRerank, schemas.OpOther,
}

var classNamePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

func (p ruleParser) rule(n yamldoc.Node) classRule {
	var r classRule
	fields := p.Fields(n, "a rule", "class", "route", "model", "tenant", "tag", "header", "op", "tools", "stream", "session", "input_tokens")
	for _, f := range fields {
		switch f.Key {
		case "class":
			r.class = p.class(f.Value)
		case "route":
			r.route = p.texts(f.Value)
		case "model":
			r.model = p.texts(f.Value)
		case "tenant":
			r.tenant = p.texts(f.Value)
		case "tag", "header":
			r.tags = append(r.tags, p.texts(f.Value)...)
		case "op":
			r.ops = p.ops(f.Value)
		case "tools":
			r.tools = new(p.Bool(f.Value))
		case "stream":
			r.stream = new(p.Bool(f.Value))
		case "session":
			r.session = new(p.Bool(f.Value))
		case "input_tokens":
			r.minInput, r.maxInput = p.span(f.Value)
		}
	}
	if yamldoc.IsMapping(n) && !yamldoc.Has(fields, "class") {
		p.Faultf(n, "class is missing")
	}
	return r
}

func (p ruleParser) class(n yamldoc.Node) string {
	class, ok := p.text(n)
	if ok && !classNamePattern.MatchString(class) {
		p.Faultf(n, "class must be a lower-case name of up to 32 letters, digits and _, not %q", class)
	}
	return class
}

func (p ruleParser) ops(n yamldoc.Node) []string {
	ops := p.texts(n)
	for _, op := range ops {
		if op != "" && !slices.Contains(classOps, op) {
			p.Faultf(n, "op %q is not one of %s", op, strings.Join(classOps, ", "))
		}
	}
	return ops
}

// text reads a text as it is written: as the gateway logs it, without variables and with its spaces.
func (p ruleParser) text(n yamldoc.Node) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		if s.Value != "" {
			return s.Value, true
		}
	case *ast.LiteralNode:
		return s.Value.Value, true
	case *ast.IntegerNode:
		return s.GetToken().Value, true
	}
	p.Faultf(n, "want a text")
	return "", false
}

// texts reads one text or a list of at least one.
func (p ruleParser) texts(n yamldoc.Node) []string {
	list := p.List(n)
	if len(list) == 0 {
		p.Faultf(n, "the list is empty")
	}
	var out []string
	for _, v := range list {
		text, _ := p.text(v)
		out = append(out, text)
	}
	return out
}

// span reads a half-open range [lo, hi] of tokens, in which null is open.
func (p ruleParser) span(n yamldoc.Node) (lo, hi *int32) {
	list, ok := yamldoc.Sequence(n)
	if !ok || len(list) != 2 {
		p.Faultf(n, "want a range [from, below], with null for an open end")
		return nil, nil
	}
	lo, hi = p.tokens(list[0]), p.tokens(list[1])
	if lo != nil && hi != nil && *lo >= *hi {
		p.Faultf(n, "the range is empty")
	}
	return lo, hi
}

func (p ruleParser) tokens(n yamldoc.Node) *int32 {
	if yamldoc.IsNull(n) {
		return nil
	}
	if i, ok := n.(*ast.IntegerNode); ok {
		v, err := strconv.ParseInt(i.GetToken().Value, 10, 64)
		if err == nil && v >= 0 && v <= math.MaxInt32 {
			return new(int32(v))
		}
	}
	p.Faultf(n, "want a whole number of tokens")
	return nil
}
