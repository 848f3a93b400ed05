package ingest

import (
	"bytes"
	"encoding/json"

	"tailgate/internal/jsonscan"
	"tailgate/prompt"
)

// The members that spendLog and spendMetadata have. TestReaderKnowsEveryMember holds them together.
var (
	spendMembers = jsonscan.NewFields("request_id", "call_type", "startTime", "endTime", "completionStartTime",
		"request_duration_ms", "prompt_tokens", "completion_tokens", "model", "model_group", "cache_hit", "status",
		"session_id", "team_id", "organization_id", "api_key", "user", "request_tags", "messages",
		"proxy_server_request", "response", "metadata")
	spendMetaMembers = jsonscan.NewFields("status", "user_api_key_team_id", "user_api_key_alias",
		"user_api_key_request_route", "usage_object", "error_information", "prefix_block_hashes")
)

func (r *reader) spendRow(p *spendLog) {
	var seen uint64
	for r.scan.Enter('{'); r.scan.More('}'); {
		switch r.scan.Field(spendMembers, &seen) {
		case "request_id":
			p.RequestID = r.label()
		case "call_type":
			p.CallType = r.word()
		case "startTime":
			p.Start = r.label()
		case "endTime":
			p.End = r.label()
		case "completionStartTime":
			p.FirstToken = r.label()
		case "request_duration_ms":
			p.DurationMs = r.count()
		case "prompt_tokens":
			p.PromptTokens = r.count()
		case "completion_tokens":
			p.CompletionTokens = r.count()
		case "model":
			p.Model = r.word()
		case "model_group":
			p.ModelGroup = r.word()
		case "cache_hit":
			p.CacheHit = r.aloud()
		case "status":
			p.Status = r.word()
		case "session_id":
			p.Session = r.label()
		case "team_id":
			p.Team = r.label()
		case "organization_id":
			p.Organization = r.label()
		case "api_key":
			p.Key = r.label()
		case "user":
			p.User = r.label()
		case "request_tags":
			p.Tags = r.value()
		case "messages":
			p.Messages = r.value()
		case "proxy_server_request":
			p.Request = r.value()
		case "response":
			p.Response = r.value()
		case "metadata":
			p.Metadata = r.value()
		default:
			r.scan.Skip()
		}
	}
}

// spendMetadata reads the row's metadata, an object or one in a string.
func (r *reader) spendMetadata(raw json.RawMessage) (m spendMetadata, err error) {
	if inner, ok := r.inner(raw); ok && r.try(inner, &r.said, func(r *reader, _ *prompt.Prompt) { r.spendMeta(&m) }) {
		return m, nil
	}
	m = spendMetadata{}
	return m, unwrapJSON(raw, &m)
}

func (r *reader) spendMeta(m *spendMetadata) {
	s := &r.scan
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(spendMetaMembers, &seen) {
		case "status":
			m.Status = r.word()
		case "user_api_key_team_id":
			m.Team = r.label()
		case "user_api_key_alias":
			m.Alias = r.label()
		case "user_api_key_request_route":
			m.Route = r.label()
		case "usage_object":
			r.spendUsage(m)
		case "error_information":
			r.spendError(m)
		case "prefix_block_hashes":
			m.Prefix = r.value()
		default:
			s.Skip()
		}
	}
}

func (r *reader) spendUsage(m *spendMetadata) {
	if !r.enter() {
		return
	}
	m.Usage = &litellmUsage{}
	for seen := uint64(0); r.scan.More('}'); {
		switch r.scan.Field(usageMembers, &seen) {
		case "prompt_tokens_details":
			m.Usage.PromptDetails.Cached = r.countIn(cachedMembers)
		case "completion_tokens_details":
			m.Usage.CompletionDetails.Reasoning = r.countIn(reasoningMembers)
		case "cache_read_input_tokens":
			m.Usage.CacheRead = r.count()
		default:
			r.scan.Skip()
		}
	}
}

func (r *reader) spendError(m *spendMetadata) {
	if !r.enter() {
		return
	}
	for seen := uint64(0); r.scan.More('}'); {
		switch r.scan.Field(errorMembers, &seen) {
		case "error_code":
			m.Error.Code = r.label()
		case "error_class":
			m.Error.Class = r.word()
		default:
			r.scan.Skip()
		}
	}
}

// inner returns a value, or the JSON in one that is a string; nil for null and an empty string. ok is false for a
// string that holds no JSON.
func (r *reader) inner(raw json.RawMessage) (inner json.RawMessage, ok bool) {
	if !present(raw) {
		return nil, true
	}
	if !isString(raw) {
		return raw, true
	}
	t := r.unquoted(raw)
	if len(bytes.TrimSpace(t)) == 0 {
		return nil, true
	}
	return trimJSON(t), jsonscan.Valid(t) && !heavy(t)
}
