package ingest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"tailgate/internal/fault"
)

// ExcludeRules name the requests that opted out. They are dropped before anything of them is hashed, and
// counted as skipped ("excluded").
type ExcludeRules struct{ rules []excludeRule }

// excludeRule holds for a request that has one of the values of each condition; a condition without values
// holds for all.
type excludeRule struct{ tenants, sessions, tags []string }

// ParseExclude reads a rules file, data, whose name is for messages:
//
//	exclude:
//	  - {tenant: team-harbour}
//	  - {tenant: [team-a, team-b], header: "x-no-trace: 1"}
//	  - {session: session-17}
//
// Values are compared as the gateway logs them, whole and letter by letter; header (or tag) is one header or
// tag of the record. All conditions of a rule must hold. Every fault of the file is reported, as fault.Usage;
// no fault quotes a value.
func ParseExclude(name string, data []byte) (*ExcludeRules, error) {
	body, err := parseDocument(name, data)
	if err != nil {
		return nil, err
	}
	p := &classParser{name: name}
	rules := p.exclude(body)
	if len(p.errs) > 0 {
		return nil, fault.Mark(errors.Join(p.errs...), fault.Usage, "")
	}
	return &ExcludeRules{rules: rules}, nil
}

func (p *classParser) exclude(body ast.Node) []excludeRule {
	var rules []excludeRule
	for _, f := range p.fields(body) {
		if f.Key.String() != "exclude" {
			p.fault(f, "unknown key, want exclude")
			continue
		}
		list, ok := f.Value.(*ast.SequenceNode)
		if !ok || len(list.Values) == 0 {
			p.fault(f, "exclude must be a list with at least one rule")
			continue
		}
		for _, v := range list.Values {
			rules = append(rules, p.excludeRule(v))
		}
	}
	if len(rules) == 0 && len(p.errs) == 0 {
		p.fault(body, "exclude is missing")
	}
	return rules
}

func (p *classParser) excludeRule(n ast.Node) excludeRule {
	var r excludeRule
	before := len(p.errs)
	for _, f := range p.fields(n) {
		switch f.Key.String() {
		case "tenant":
			r.tenants = p.texts(f.Value)
		case "session":
			r.sessions = p.texts(f.Value)
		case "tag", "header":
			r.tags = append(r.tags, p.texts(f.Value)...)
		default:
			p.fault(f, "unknown condition, want tenant, session, header or tag")
		}
	}
	if len(r.tenants)+len(r.sessions)+len(r.tags) == 0 && len(p.errs) == before {
		p.fault(n, "the rule has no condition")
	}
	return r
}

// has tells whether rec opted out. A nil list has nobody.
func (e *ExcludeRules) has(rec *record) bool {
	if e == nil {
		return false
	}
	for i := range e.rules {
		r := &e.rules[i]
		if oneOf(r.tenants, rec.tenant) && oneOf(r.sessions, rec.session) && oneOf(r.tags, rec.tags...) {
			return true
		}
	}
	return false
}

// oneOf tells whether one of have is one of the values; no values take everything.
func oneOf(values []string, have ...[]byte) bool {
	for _, h := range have {
		if slices.ContainsFunc(values, func(v string) bool { return bytes.Equal(h, []byte(v)) }) {
			return true
		}
	}
	return len(values) == 0
}
