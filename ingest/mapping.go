package ingest

import (
	"embed"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"sync"

	"tailgate/internal/wildcard"
	"tailgate/prompt"
)

// Mapping says where the fields of the canonical record are in the records of a gateway that has no decoder of
// its own. [ParseMapping] reads one from a file.
type Mapping struct {
	name    string
	records []step // nil = the message is the record, or a list of them
	expect  []int  // slots that a record of this layout fills
	paths   pathTree
	slots   int
	fields  [mapFields]*mapField

	inputExcludesCache   bool
	estimateWithoutInput bool
	bodyLimit            int // length, in bytes, at which the gateway cuts the request; 0 = none
}

// Name is the mapping's name, which rows carry as their gateway.
func (m *Mapping) Name() string { return m.name }

// mapField is where one field comes from.
type mapField struct {
	slots      []int // the first that holds something wins
	constant   json.RawMessage
	unit       string
	seconds    float64 // of one unit
	resolution int64   // of a time, in µs; 0 = as written
	enum       []mapEnum
	absent     []string // spellings that stand for nothing
	source     string   // of a token count
}

// mapEnum replaces a value that matches a pattern, in which a * stands for anything.
type mapEnum struct {
	pattern string
	star    bool
	value   json.RawMessage
}

func (e *mapEnum) matches(spelled []byte) bool {
	if !e.star {
		return string(spelled) == e.pattern
	}
	return wildcard.Match(e.pattern, string(spelled))
}

// mapName is a field of the canonical record.
type mapName int

const (
	fieldArrivedAt mapName = iota
	fieldEndedAt
	fieldDuration
	fieldTtft
	fieldFirstTokenAt
	fieldRequestId
	fieldParentRequestId
	fieldAttempt
	fieldSession
	fieldTenant
	fieldClock
	fieldRoute
	fieldTags
	fieldOp
	fieldStatus
	fieldHttpStatus
	fieldError
	fieldReachedEngine
	fieldIsProbe
	fieldCacheHit
	fieldRateLimited
	fieldStream
	fieldSampledFraction
	fieldModel
	fieldServedModel
	fieldAdapter
	fieldCacheSalt
	fieldInputTokens
	fieldOutputTokens
	fieldCachedTokens
	fieldCacheWriteTokens
	fieldReasoningTokens
	fieldRequest
	fieldMessages
	fieldPrompt
	fieldSystem
	fieldTools
	fieldResponse
	fieldPromptState
	mapFields
)

// mapNames are the fields as a mapping file spells them.
var mapNames = [mapFields]string{
	fieldArrivedAt:        "arrived_at",
	fieldEndedAt:          "ended_at",
	fieldDuration:         "duration",
	fieldTtft:             "ttft",
	fieldFirstTokenAt:     "first_token_at",
	fieldRequestId:        "request_id",
	fieldParentRequestId:  "parent_request_id",
	fieldAttempt:          "attempt",
	fieldSession:          "session",
	fieldTenant:           "tenant",
	fieldClock:            "clock",
	fieldRoute:            "route",
	fieldTags:             "tags",
	fieldOp:               "op",
	fieldStatus:           "status",
	fieldHttpStatus:       "http_status",
	fieldError:            "error",
	fieldReachedEngine:    "reached_engine",
	fieldIsProbe:          "is_probe",
	fieldCacheHit:         "cache_hit",
	fieldRateLimited:      "rate_limited",
	fieldStream:           "stream",
	fieldSampledFraction:  "sampled_fraction",
	fieldModel:            "model",
	fieldServedModel:      "served_model",
	fieldAdapter:          "adapter",
	fieldCacheSalt:        "cache_salt",
	fieldInputTokens:      "input_tokens",
	fieldOutputTokens:     "output_tokens",
	fieldCachedTokens:     "cached_tokens",
	fieldCacheWriteTokens: "cache_write_tokens",
	fieldReasoningTokens:  "reasoning_tokens",
	fieldRequest:          "request",
	fieldMessages:         "messages",
	fieldPrompt:           "prompt",
	fieldSystem:           "system",
	fieldTools:            "tools",
	fieldResponse:         "response",
	fieldPromptState:      "prompt_state",
}

//go:embed mappings/*.yaml
var shippedFiles embed.FS

// shippedNames are the mappings that come with the program, in the order in which they are listed.
var shippedNames = []string{"kong", "higress", "apisix", "helicone", "bedrock", "cloudflare", "databricks"}

// ShippedMappings lists the mappings that come with the program.
func ShippedMappings() []string { return slices.Clone(shippedNames) }

// ShippedMapping returns the text of a mapping that comes with the program, as a start for one's own; ok is
// false when there is none of that name.
func ShippedMapping(name string) (text []byte, ok bool) {
	text, err := shippedFiles.ReadFile(path.Join("mappings", name+".yaml"))
	return text, err == nil
}

// parsed holds each shipped mapping once it was asked for.
var parsed sync.Map // name → *Mapping

// shipped returns a shipped mapping, nil when there is none of that name.
func shipped(name string) *Mapping {
	if m, ok := parsed.Load(name); ok {
		return m.(*Mapping)
	}
	data, ok := ShippedMapping(name)
	if !ok || strings.ContainsAny(name, "./") {
		return nil
	}
	m, err := ParseMapping(name+".yaml", data)
	if err != nil {
		return nil // a test parses them all
	}
	parsed.Store(name, m)
	return m
}

// decoder returns a decoder of m that reads with r.
func (m *Mapping) decoder(r *reader) decoder {
	mr := &mapReader{m: m, reader: r, c: &capture{values: make([]json.RawMessage, m.slots)}}
	if m.records == nil {
		return r.records(mr.one)
	}
	return r.records(mr.list)
}

// list maps the records that one record holds.
func (r *mapReader) list(raw []byte) []item {
	var inner [][]byte
	defer func() {
		for _, b := range inner {
			clear(b)
		}
	}()
	if r.reader.unproven {
		return nil
	}
	found := unfold(raw, r.m.records, &inner)
	switch {
	case found == nil:
		return r.reader.one(item{dead: DeadLayout, raw: raw})
	case len(found) > maxRecords:
		return r.reader.one(item{dead: DeadTooBig, raw: raw})
	}
	var items []item
	for _, f := range found {
		got := r.one(f)
		for i := range got {
			got[i].raw = raw // f may be a copy that is cleared
		}
		items = append(items, got...)
	}
	return items
}

// one maps one record, which is valid JSON.
func (r *mapReader) one(raw []byte) []item {
	if len(raw) == 0 || raw[0] != '{' {
		return r.reader.one(item{dead: DeadLayout, raw: raw})
	}
	c := r.c
	clear(c.values)
	c.inner = c.inner[:0]
	defer c.clear()
	if !r.reader.try(raw, &r.reader.said, func(rd *reader, _ *prompt.Prompt) { r.m.paths.scan(rd, c) }) {
		if r.reader.unproven {
			return nil
		}
		clear(c.values)
		r.m.paths.walk(r.reader, raw, c)
	}
	for _, s := range r.m.expect {
		if c.values[s] == nil {
			return r.reader.one(item{dead: DeadLayout, raw: raw})
		}
	}
	r.reason = ""
	rec := r.record()
	if r.reason != "" {
		rec.clear()
		return r.reader.one(item{dead: r.reason, raw: raw})
	}
	return r.reader.one(item{rec: rec, raw: raw})
}
