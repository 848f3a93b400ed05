package anonymize

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"tailgate/internal/fault"
)

// Models choose tokenizer and template by model, for a gateway that serves several.
type Models struct {
	Rules []ModelRule // the first one that matches decides; a model without one takes the Options' own
}

// ModelRule is the choice for some models. Empty fields are those of the Options.
type ModelRule struct {
	Models    []string // names of served models, * stands for any characters
	Tokenizer string
	Template  string
	Specials  string

	// ServedAs is the model whose cache these models share, where a gateway has several names for one engine;
	// "" = each name is a model.
	ServedAs string
	// AdapterAfter is what parts a LoRA adapter's name from the model's in a name such as base:adapter; "" = names
	// hold no adapter.
	AdapterAfter string
}

// over fills what r leaves open from base.
func (r ModelRule) over(base ModelRule) ModelRule {
	for _, f := range [...]struct{ of, from *string }{
		{&r.Tokenizer, &base.Tokenizer}, {&r.Template, &base.Template}, {&r.Specials, &base.Specials}} {
		if *f.of == "" {
			*f.of = *f.from
		}
	}
	return r
}

// ParseModels reads a models file, data, whose path is for messages and for the files that it names:
//
//	models:
//	  - {model: "larch-*", tokenizer: larch/tokenizer.json, template: chatml, specials: all}
//	  - {model: [birch, birch-canary], tokenizer: o200k, served_as: birch}
//	  - {model: "alder:*", adapter_after: ":"}
//
// Every fault of the file is reported, as fault.Usage.
func ParseModels(path string, data []byte) (*Models, error) {
	p := &modelParser{path: path}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		var syntax *yaml.SyntaxError
		line := 1
		if errors.As(err, &syntax) && syntax.Token != nil {
			line = syntax.Token.Position.Line
		}
		return nil, fault.Mark(fmt.Errorf("%s:%d: not valid YAML", path, line), fault.Usage, "")
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, fault.Mark(fmt.Errorf("%s:1: want one document with models", path), fault.Usage, "")
	}
	m := p.file(file.Docs[0].Body)
	if len(p.errs) > 0 {
		return nil, fault.Mark(errors.Join(p.errs...), fault.Usage, "")
	}
	return m, nil
}

// modelParser walks the syntax tree, which knows the lines, and collects faults.
type modelParser struct {
	path string
	errs []error
}

func (p *modelParser) fault(n ast.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s", p.path, n.GetToken().Position.Line, fmt.Sprintf(format, args...)))
}

func (p *modelParser) file(body ast.Node) *Models {
	m := &Models{}
	found := false
	for _, f := range p.fields(body) {
		list, ok := f.Value.(*ast.SequenceNode)
		switch {
		case f.Key.String() != "models":
			p.fault(f, "unknown key %q, want models", f.Key.String())
		case !ok || len(list.Values) == 0:
			found = true
			p.fault(f, "models must be a list with at least one entry")
		default:
			found = true
			for _, v := range list.Values {
				m.Rules = append(m.Rules, p.rule(v))
			}
		}
	}
	if !found && len(p.errs) == 0 {
		p.fault(body, "models are missing")
	}
	return m
}

// fields returns the entries of a mapping, or reports that n is none.
func (p *modelParser) fields(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	p.fault(n, "want key: value pairs")
	return nil
}

func (p *modelParser) rule(n ast.Node) ModelRule {
	var r ModelRule
	before := len(p.errs)
	for _, f := range p.fields(n) {
		switch key := f.Key.String(); key {
		case "model":
			r.Models = p.texts(f.Value)
		case "tokenizer":
			r.Tokenizer = p.tokenizer(p.text(f.Value))
		case "template":
			r.Template = p.text(f.Value)
			if file, ok := strings.CutPrefix(r.Template, jinjaPrefix); ok {
				r.Template = jinjaPrefix + p.beside(file)
			}
		case "specials":
			r.Specials = p.text(f.Value)
			if r.Specials != SpecialsOwn && r.Specials != SpecialsAll {
				p.fault(f, "specials must be %s or %s", SpecialsOwn, SpecialsAll)
			}
		case "served_as":
			r.ServedAs = p.text(f.Value)
		case "adapter_after":
			r.AdapterAfter = p.text(f.Value)
		default:
			p.fault(f, "unknown key %q", key)
		}
	}
	if len(r.Models) == 0 && len(p.errs) == before {
		p.fault(n, "model is missing")
	}
	return r
}

// tokenizer reads a tokenizer's name.
func (p *modelParser) tokenizer(name string) string {
	if isPath(name) {
		return p.beside(name)
	}
	return name
}

// beside takes a path that is not absolute from the folder of the models file.
func (p *modelParser) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(p.path), path)
}

func (p *modelParser) text(n ast.Node) string {
	switch s := n.(type) {
	case *ast.StringNode:
		if s.Value != "" {
			return s.Value
		}
	case *ast.IntegerNode:
		return s.GetToken().Value
	}
	p.fault(n, "want a text")
	return ""
}

// texts reads one text or a list of them.
func (p *modelParser) texts(n ast.Node) []string {
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
