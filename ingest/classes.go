package ingest

import (
	"tailgate/internal/wildcard"
	"tailgate/schemas"
)

// ClassRules assign a workload class to each request: the first rule whose conditions all hold decides, and
// LabelOther is what remains. They run at ingest, since only there the raw fields exist.
type ClassRules struct {
	rules []classRule
}

// classRule is one rule; conditions that are not set hold for every request.
type classRule struct {
	class                      string
	route, model, tenant, tags []string // patterns with * of which one must match
	ops                        []string
	tools, stream, session     *bool
	minInput, maxInput         *int32 // [min, max); a request of unknown length never matches
}

// longContext is the input length, in tokens, from which a request is long by default.
const longContext = 8192

// DefaultClasses are the rules without a file: agent (tools are offered or called), long_context (8,192 input
// tokens or more), interactive (streamed), batch (not streamed); other operations and unknown are other.
func DefaultClasses() *ClassRules {
	generation := []string{schemas.OpChat, schemas.OpCompletion, schemas.OpResponses}
	return &ClassRules{rules: []classRule{
		{class: schemas.ClassAgent, ops: generation, tools: new(true)},
		{class: schemas.ClassLongContext, ops: generation, minInput: new(int32(longContext))},
		{class: schemas.ClassInteractive, ops: generation, stream: new(true)},
		{class: schemas.ClassBatch, ops: generation, stream: new(false)},
	}}
}

// Classes lists the names that the rules can give, in order of first use, LabelOther last.
func (c *ClassRules) Classes() []string {
	var names []string
	seen := map[string]bool{schemas.LabelOther: true}
	for _, r := range c.rules {
		if !seen[r.class] {
			seen[r.class] = true
			names = append(names, r.class)
		}
	}
	return append(names, schemas.LabelOther)
}

func (c *ClassRules) classify(rec *record, input *int32) string {
	for i := range c.rules {
		if c.rules[i].matches(rec, input) {
			return c.rules[i].class
		}
	}
	return schemas.LabelOther
}

func (r *classRule) matches(rec *record, input *int32) bool {
	return anyPattern(r.route, string(rec.route)) &&
		anyPattern(r.model, rec.model) &&
		anyPattern(r.tenant, string(rec.tenant)) &&
		anyTag(r.tags, rec.tags) &&
		(r.ops == nil || anyPattern(r.ops, rec.op)) &&
		(r.tools == nil || *r.tools == usesTools(rec)) &&
		(r.stream == nil || rec.stream != nil && *rec.stream == *r.stream) &&
		(r.session == nil || *r.session == (len(rec.session) > 0)) &&
		(r.minInput == nil || input != nil && *input >= *r.minInput) &&
		(r.maxInput == nil || input != nil && *input < *r.maxInput)
}

// usesTools tells whether the request offers tools or has a history of calls.
func usesTools(rec *record) bool {
	if len(rec.prompt.Tools) > 0 {
		return true
	}
	for i := range rec.prompt.Messages {
		if m := &rec.prompt.Messages[i]; len(m.ToolCalls) > 0 || m.ToolCallID != "" {
			return true
		}
	}
	return false
}

// anyPattern tells whether one of the patterns matches s; no patterns match everything.
func anyPattern(patterns []string, s string) bool {
	for _, p := range patterns {
		if wildcard.Match(p, s) {
			return true
		}
	}
	return len(patterns) == 0
}

func anyTag(patterns []string, tags [][]byte) bool {
	for _, t := range tags {
		if anyPattern(patterns, string(t)) {
			return true
		}
	}
	return len(patterns) == 0
}
