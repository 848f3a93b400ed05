package ingest

import (
	"tailgate/internal/jsonscan"
	"tailgate/prompt"
)

// The members that litellmPayload and the types in it have. TestScannerKnowsEveryMember holds the two together.
var (
	payloadMembers = jsonscan.NewFields(
		"id", "litellm_call_id", "trace_id", "session_id", "call_type", "stream", "status", "status_fields",
		"prompt_tokens", "completion_tokens", "startTime", "endTime", "completionStartTime", "model", "model_group",
		"cache_hit", "error_information", "request_tags", "messages", "response", "model_parameters", "metadata",
	)
	metadataMembers = jsonscan.NewFields(
		"user_api_key_team_id", "user_api_key_org_id", "user_api_key_hash", "user_api_key_alias",
		"user_api_key_user_id", "user_api_key_request_route", "usage_object",
	)
	statusMembers     = jsonscan.NewFields("guardrail_status")
	errorMembers      = jsonscan.NewFields("error_code", "error_class")
	usageMembers      = jsonscan.NewFields("prompt_tokens_details", "completion_tokens_details", "cache_read_input_tokens")
	cachedMembers     = jsonscan.NewFields("cached_tokens")
	reasoningMembers  = jsonscan.NewFields("reasoning_tokens")
	answerMembers     = jsonscan.NewFields("usage", "choices", "output")
	choiceMembers     = jsonscan.NewFields("message", "text")
	saidMembers       = jsonscan.NewFields("content", "reasoning_content", "tool_calls")
	parametersMembers = jsonscan.NewFields("stream", "tools", "functions", "cache_salt")
)

// members reads the payload, and messages, tools and tags into rec.
func (l *litellmScanner) members(rec *record) {
	s, p := &l.scan, &l.payload
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(payloadMembers, &seen) {
		case "id":
			p.ID = l.label()
		case "litellm_call_id":
			p.CallID = l.label()
		case "trace_id":
			p.TraceID = l.label()
		case "session_id":
			p.SessionID = l.label()
		case "call_type":
			p.CallType = l.word()
		case "stream":
			p.Stream = l.flag(&l.switches[0])
		case "status":
			p.Status = l.word()
		case "status_fields":
			l.statusFields()
		case "prompt_tokens":
			p.PromptTokens = l.number()
		case "completion_tokens":
			p.CompletionTokens = l.number()
		case "startTime":
			p.Start = l.number()
		case "endTime":
			p.End = l.number()
		case "completionStartTime":
			p.FirstToken = l.number()
		case "model":
			p.Model = l.word()
		case "model_group":
			p.ModelGroup = l.word()
		case "cache_hit":
			p.CacheHit = l.flag(&l.switches[1])
		case "error_information":
			l.errorInformation()
		case "request_tags":
			l.tags(rec)
		case "messages":
			l.messages(&rec.prompt)
		case "response":
			l.response()
		case "model_parameters":
			l.parameters(&rec.prompt)
		case "metadata":
			l.metadata()
		default:
			s.Skip()
		}
	}
}

func (l *litellmScanner) statusFields() {
	l.lone(statusMembers, func() { l.payload.StatusFields.Guardrail = l.word() })
}

func (l *litellmScanner) errorInformation() {
	if !l.enter() {
		return
	}
	for seen := uint64(0); l.scan.More('}'); {
		switch l.scan.Field(errorMembers, &seen) {
		case "error_code":
			l.payload.Error.Code = l.label()
		case "error_class":
			l.payload.Error.Class = l.word()
		default:
			l.scan.Skip()
		}
	}
}

// tags reads a list of strings; tags as JSON in a string are odd.
func (l *litellmScanner) tags(rec *record) {
	if !l.begin('[') {
		return
	}
	for l.scan.More(']') {
		rec.tags = append(rec.tags, l.word())
	}
}

func (l *litellmScanner) metadata() {
	if !l.enter() {
		return
	}
	m := &l.payload.Metadata
	for seen := uint64(0); l.scan.More('}'); {
		switch l.scan.Field(metadataMembers, &seen) {
		case "user_api_key_team_id":
			m.Team = l.label()
		case "user_api_key_org_id":
			m.Org = l.label()
		case "user_api_key_hash":
			m.Key = l.label()
		case "user_api_key_alias":
			m.Alias = l.label()
		case "user_api_key_user_id":
			m.User = l.label()
		case "user_api_key_request_route":
			m.Route = l.label()
		case "usage_object":
			m.Usage = l.usage(&l.usages[1])
		default:
			l.scan.Skip()
		}
	}
}

// usage reads a usage into u; nil for null.
func (l *litellmScanner) usage(u *litellmUsage) *litellmUsage {
	if !l.enter() {
		return nil
	}
	for seen := uint64(0); l.scan.More('}'); {
		switch l.scan.Field(usageMembers, &seen) {
		case "prompt_tokens_details":
			u.PromptDetails.Cached = l.detail(cachedMembers)
		case "completion_tokens_details":
			u.CompletionDetails.Reasoning = l.detail(reasoningMembers)
		case "cache_read_input_tokens":
			u.CacheRead = l.number()
		default:
			l.scan.Skip()
		}
	}
	return u
}

// detail reads the number that is the one member of an object.
func (l *litellmScanner) detail(members *jsonscan.Fields) (v number) {
	if !l.enter() {
		return v
	}
	for seen := uint64(0); l.scan.More('}'); {
		if l.scan.Field(members, &seen) != "" {
			v = l.number()
		} else {
			l.scan.Skip()
		}
	}
	return v
}

// response reads what readLiteLLMResponse reads.
func (l *litellmScanner) response() {
	s, a := &l.scan, &l.answer
	if s.Kind() == '"' {
		*a = readTextResponse(s.Raw())
		return
	}
	if !l.enter() {
		return
	}
	for seen := uint64(0); s.More('}'); {
		switch s.Field(answerMembers, &seen) {
		case "usage":
			a.Usage = l.usage(&l.usages[0])
		case "choices":
			l.choices()
		case "output":
			raw := s.Raw()
			a.known = a.known || present(raw)
			a.hasText = a.hasText || holdsText(raw)
		default:
			s.Skip()
		}
	}
}

func (l *litellmScanner) choices() {
	s, a := &l.scan, &l.answer
	if !l.begin('[') {
		return
	}
	for s.More(']') {
		a.known = true
		seen := uint64(0)
		for s.Enter('{'); s.More('}'); {
			switch s.Field(choiceMembers, &seen) {
			case "message":
				l.said()
			case "text":
				a.hasText = holdsText(s.Raw()) || a.hasText
			default:
				s.Skip()
			}
		}
	}
}

// said reads the message of a choice.
func (l *litellmScanner) said() {
	l.lone(saidMembers, func() { l.answer.hasText = holdsText(l.scan.Raw()) || l.answer.hasText })
}

// parameters reads the request's parameters, and its tools into p. Anything but an object counts as not logged.
func (l *litellmScanner) parameters(p *prompt.Prompt) {
	s := &l.scan
	if s.Kind() != '{' {
		s.Skip()
		return
	}
	l.params.known = true
	lists := 0
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(parametersMembers, &seen) {
		case "stream":
			l.params.Stream = l.flag(&l.switches[2])
		case "tools", "functions":
			if l.tools(p) {
				lists++
			}
		case "cache_salt":
			l.params.CacheSalt = l.word()
		default:
			s.Skip()
		}
	}
	if lists > 1 { // which of them counts is for the exact decoder to say
		s.Fail()
	}
}
