package anonymize

import (
	"errors"
	"fmt"
	"strings"

	"tailgate/internal/wildcard"
	"tailgate/prompt"
)

// setting is how the prompts of some models become tokens.
type setting struct {
	vocab    *vocabulary
	template *Template
	all      bool   // special-token text in a prompt is the token
	index    uint64 // among the settings of a Hasher

	match        []string // patterns of model names; nil = the default, which takes every model
	servedAs     string   // the model in the scope; "" = as logged
	adapterAfter string   // what parts the adapter's name from the model's; "" = nothing does
}

// Setting describes how the prompts of some models become tokens, for people.
type Setting struct {
	Models    []string // patterns of model names; nil = all others
	Tokenizer string   // id
	Unicode   string   // version of the tokenizer's class tables; "" = it has none
	Template  string   // id
	Specials  string   // SpecialsOwn or SpecialsAll
}

// String is one line.
func (s Setting) String() string {
	var b strings.Builder
	if s.Models != nil {
		fmt.Fprintf(&b, "%s: ", strings.Join(s.Models, ", "))
	}
	b.WriteString("tokenizer " + s.Tokenizer)
	if s.Unicode != "" {
		b.WriteString(" (Unicode " + s.Unicode + ")")
	}
	fmt.Fprintf(&b, ", template %s, specials %s", s.Template, s.Specials)
	return b.String()
}

func (s *setting) describe() Setting {
	out := Setting{Models: s.match, Tokenizer: s.vocab.id, Template: s.template.ID(), Specials: SpecialsOwn}
	if s.vocab.bpe != nil {
		out.Unicode = s.vocab.bpe.UnicodeVersion()
	}
	if s.all {
		out.Specials = SpecialsAll
	}
	return out
}

// settings builds every setting of o: the default, and those of o.Models in their order. Every fault is reported.
// A vocabulary or template that several name is loaded once.
func (o Options) settings() (def *setting, rules []*setting, err error) {
	var errs []error
	vocabs, templates := map[string]*vocabulary{}, map[string]*Template{}
	build := func(r ModelRule) *setting {
		s := &setting{match: r.Models, servedAs: r.ServedAs, adapterAfter: r.AdapterAfter, index: uint64(1 + len(rules))}
		var ok bool
		if s.vocab, ok = vocabs[r.Tokenizer]; !ok {
			var err error
			s.vocab, err = openVocabulary(r.Tokenizer)
			errs = append(errs, err)
			vocabs[r.Tokenizer] = s.vocab
		}
		if s.template, ok = templates[r.Template]; !ok {
			var err error
			s.template, err = ParseTemplate(r.Template)
			errs = append(errs, err)
			templates[r.Template] = s.template
		}
		if s.template != nil && s.vocab != nil {
			var err error
			s.template, err = s.template.With(r.Specials, s.vocab.specials)
			errs = append(errs, err)
			s.all = s.template.Specials() == SpecialsAll
		}
		return s
	}
	base := ModelRule{Tokenizer: o.Tokenizer, Template: o.Template, Specials: o.Specials}
	if base.Template == "" {
		base.Template = TemplatePlain
	}
	def = build(base)
	def.index = 0
	if o.Models != nil {
		for _, r := range o.Models.Rules {
			rules = append(rules, build(r.over(base)))
		}
	}
	return def, rules, errors.Join(errs...)
}

// of returns the setting of a model.
func (h *Hasher) of(model string) *setting {
	for _, s := range h.rules {
		for _, pattern := range s.match {
			if wildcard.Match(pattern, model) {
				return s
			}
		}
	}
	return h.def
}

// scope is what p shares blocks within.
func (h *Hasher) scope(s *setting, p *prompt.Prompt) Scope {
	scope := Scope{Model: p.Model, Adapter: p.Adapter, CacheSalt: p.CacheSalt, Tokenizer: s.vocab.id, BlockSize: h.blockSize}
	if s.adapterAfter != "" && scope.Adapter == "" {
		scope.Model, scope.Adapter, _ = strings.Cut(scope.Model, s.adapterAfter)
	}
	if s.servedAs != "" {
		scope.Model = s.servedAs
	}
	if h.perTenant {
		scope.Tenant = p.Tenant
	}
	return scope
}
