package ingest

import (
	"bytes"
	"slices"

	"tailgate/internal/yamldoc"
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
	r, root := yamldoc.Open(name, data, yamldoc.Options{Limit: maxRules, Secret: true})
	p := ruleParser{r}
	var rules []excludeRule
	if root != nil {
		for _, n := range p.entries(root, "an exclude file", "exclude") {
			rules = append(rules, p.excludeRule(n))
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return &ExcludeRules{rules: rules}, nil
}

func (p ruleParser) excludeRule(n yamldoc.Node) excludeRule {
	var r excludeRule
	before := p.Faults()
	fields := p.Fields(n, "a rule", "tenant", "session", "header", "tag")
	for _, f := range fields {
		switch f.Key {
		case "tenant":
			r.tenants = p.texts(f.Value)
		case "session":
			r.sessions = p.texts(f.Value)
		case "tag", "header":
			r.tags = append(r.tags, p.texts(f.Value)...)
		}
	}
	if len(fields) == 0 && p.Faults() == before {
		p.Faultf(n, "the rule has no condition")
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
