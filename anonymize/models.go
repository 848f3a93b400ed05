package anonymize

import (
	"path/filepath"
	"strings"

	"tailgate/internal/yamldoc"
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
	r, root := yamldoc.New(path, data, nil)
	p := modelParser{Reader: r, path: path}
	m := &Models{}
	if root != nil {
		m.Rules = p.rules(root)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

// modelParser reads the rules of one file.
type modelParser struct {
	*yamldoc.Reader
	path string
}

func (p modelParser) rules(root yamldoc.Node) []ModelRule {
	var rules []ModelRule
	for _, f := range p.Fields(root, "a models file", "models") {
		for _, n := range p.Entries(f.Value, "models") {
			rules = append(rules, p.rule(n))
		}
	}
	if len(rules) == 0 && p.Err() == nil {
		p.Faultf(root, "models are missing")
	}
	return rules
}

func (p modelParser) rule(n yamldoc.Node) ModelRule {
	var r ModelRule
	fields := p.Fields(n, "an entry of models", "model", "tokenizer", "template", "specials", "served_as", "adapter_after")
	for _, f := range fields {
		switch f.Key {
		case "model":
			r.Models = p.Names(f.Value)
		case "tokenizer":
			if r.Tokenizer = p.Name(f.Value); isPath(r.Tokenizer) {
				r.Tokenizer = p.beside(r.Tokenizer)
			}
		case "template":
			r.Template = p.Name(f.Value)
			if file, ok := strings.CutPrefix(r.Template, jinjaPrefix); ok {
				r.Template = jinjaPrefix + p.beside(file)
			}
		case "specials":
			r.Specials = p.Name(f.Value)
			if r.Specials != SpecialsOwn && r.Specials != SpecialsAll {
				p.Faultf(f.Value, "specials must be %s or %s", SpecialsOwn, SpecialsAll)
			}
		case "served_as":
			r.ServedAs = p.Name(f.Value)
		case "adapter_after":
			r.AdapterAfter = p.Name(f.Value)
		}
	}
	if yamldoc.IsMapping(n) && !yamldoc.Has(fields, "model") {
		p.Faultf(n, "model is missing")
	}
	return r
}

// beside takes a path that is not absolute from the folder of the models file.
func (p modelParser) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(p.path), path)
}
