package ingest

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"tailgate/schemas"
)

// litellmPayload is LiteLLM's StandardLoggingPayload, as far as the canonical record needs it.
type litellmPayload struct {
	ID           label `json:"id"`
	CallID       label `json:"litellm_call_id"`
	TraceID      label `json:"trace_id"`
	SessionID    label `json:"session_id"`
	CallType     text  `json:"call_type"`
	Stream       flag  `json:"stream"`
	Status       text  `json:"status"`
	StatusFields struct {
		Guardrail text `json:"guardrail_status"`
	} `json:"status_fields"`
	PromptTokens     number `json:"prompt_tokens"`
	CompletionTokens number `json:"completion_tokens"`
	Start            number `json:"startTime"`
	End              number `json:"endTime"`
	FirstToken       number `json:"completionStartTime"`
	Model            text   `json:"model"`
	ModelGroup       text   `json:"model_group"`
	CacheHit         flag   `json:"cache_hit"`
	Error            struct {
		Code  label `json:"error_code"`
		Class text  `json:"error_class"`
	} `json:"error_information"`
	Tags       json.RawMessage `json:"request_tags"`
	Messages   json.RawMessage `json:"messages"`
	Response   json.RawMessage `json:"response"`
	Parameters json.RawMessage `json:"model_parameters"`
	Metadata   struct {
		Team  label         `json:"user_api_key_team_id"`
		Org   label         `json:"user_api_key_org_id"`
		Key   label         `json:"user_api_key_hash"`
		Alias label         `json:"user_api_key_alias"`
		User  label         `json:"user_api_key_user_id"`
		Route label         `json:"user_api_key_request_route"`
		Usage *litellmUsage `json:"usage_object"`
	} `json:"metadata"`
}

type litellmUsage struct {
	PromptDetails struct {
		Cached number `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning number `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	CacheRead number `json:"cache_read_input_tokens"` // Anthropic's name; the total includes it already
}

// litellmProbe is the alias of the proxy's own health checks.
const litellmProbe = "litellm-internal-health-check"

// litellmOps maps call types, without their leading "a" for async, to operations.
var litellmOps = map[string]string{
	"completion": schemas.OpChat, "anthropic_messages": schemas.OpChat,
	"generate_content": schemas.OpChat, "generate_content_stream": schemas.OpChat,
	"text_completion": schemas.OpCompletion, "responses": schemas.OpResponses,
	"embedding": schemas.OpEmbedding, "rerank": schemas.OpRerank,
}

func decodeLiteLLM(raw []byte) []item {
	var p litellmPayload
	if err := json.Unmarshal(raw, &p); err != nil {
		return []item{{dead: DeadBadField, raw: raw}}
	}
	if !p.Start.set && len(p.CallType) == 0 && len(p.Status) == 0 {
		return []item{{dead: DeadLayout, raw: raw}}
	}
	rec, reason := p.record()
	if reason != "" {
		return []item{{dead: reason, raw: raw}}
	}
	return []item{{rec: rec, raw: raw}}
}

// record maps the payload; reason is a dead letter's when it cannot.
func (p *litellmPayload) record() (rec *record, reason string) {
	rec = &record{}
	if reason := p.arrival(rec); reason != "" {
		return nil, reason
	}
	rec.tags = litellmTags(p.Tags)
	answer := readLiteLLMResponse(p.Response)
	params, err := readLiteLLMParameters(p.Parameters)
	if err == nil {
		err = readOpenAIPrompt(p.Messages, &rec.prompt)
	}
	if err == nil {
		err = readOpenAITools(params.tools(), &rec.prompt)
	}
	if err != nil {
		rec.prompt.Clear()
		return nil, DeadBadField
	}
	if !p.fill(rec, &answer, &params, nil) {
		rec.prompt.Clear()
		return nil, DeadBadTokens
	}
	return rec, ""
}

// arrival sets when the request arrived; reason is a dead letter's when it is not known.
func (p *litellmPayload) arrival(rec *record) (reason string) {
	if !p.Start.set {
		return DeadMissingTime
	}
	start, ok := secondsToTime(p.Start.v)
	if !ok {
		return DeadBadTime
	}
	rec.arrived, rec.resolutionUs = start, 1
	return ""
}

// fill maps the payload's own fields, whose strings it takes from names, to a record that has its arrival, tags,
// messages and tools. It returns false when a count is no count.
func (p *litellmPayload) fill(rec *record, answer *litellmAnswer, params *litellmParameters, names *nameStore) bool {
	rec.requestID, rec.session = firstOf(p.CallID, p.ID), firstOf(p.SessionID, p.TraceID)
	if len(p.SessionID) > 0 && len(p.TraceID) > 0 && !bytes.Equal(p.SessionID, p.TraceID) {
		rec.parent = p.TraceID // retries and fallbacks share it; without a session of its own it names the session
	}
	rec.tenant = firstOf(p.Metadata.Team, p.Metadata.Org, p.Metadata.Key)
	rec.op, rec.route = litellmOp(p.CallType), p.Metadata.Route
	rec.model = names.text(firstOf(p.ModelGroup, p.Model))
	rec.prompt.Model, rec.prompt.CacheSalt = names.text(firstOf(p.Model, p.ModelGroup)), names.text(params.CacheSalt)
	judge(&rec.prompt)
	if streamed, known := litellmStream(p.Stream, params); known {
		rec.setStream(streamed)
	}
	p.outcome(rec)
	p.times(rec)
	return p.tokens(rec, answer)
}

func litellmOp(callType []byte) string {
	if op, ok := litellmOps[string(callType)]; ok {
		return op
	}
	if op, ok := litellmOps[string(bytes.TrimPrefix(callType, []byte("a")))]; ok {
		return op
	}
	return schemas.OpOther
}

// times reads duration and, where an engine streamed, time to first token. response_time is not the duration
// of a stream, and completionStartTime equals endTime when nothing was streamed.
func (p *litellmPayload) times(rec *record) {
	if end, ok := secondsToTime(p.End.v); ok && !end.Before(rec.arrived) {
		rec.setDuration(end.Sub(rec.arrived))
	}
	if rec.stream == nil || !*rec.stream || !rec.reached || rec.duration == nil {
		return
	}
	first, ok := secondsToTime(p.FirstToken.v)
	if ttft := first.Sub(rec.arrived); ok && ttft > 0 && ttft < *rec.duration {
		rec.setTTFT(ttft)
	}
}

func (p *litellmPayload) outcome(rec *record) {
	o := outcome{status: schemas.StatusOK, reached: true}
	switch {
	case p.CacheHit.is():
		o = outcome{status: schemas.StatusCacheHit}
	case bytes.Contains(p.StatusFields.Guardrail, []byte("interven")) ||
		bytes.Contains(p.StatusFields.Guardrail, []byte("blocked")):
		o = failure(httpCode(p.Error.Code), []byte("guardrail"))
	case string(p.Status) == "failure":
		o = failure(httpCode(p.Error.Code), p.Error.Class)
	case string(p.Status) != "success":
		o = outcome{status: schemas.StatusUnknown, reached: true}
	}
	for _, l := range [...]label{p.Metadata.Alias, p.Metadata.User} {
		rec.probe = rec.probe || string(l) == litellmProbe
	}
	rec.status, rec.httpStatus, rec.reached = o.status, o.http, o.reached && !rec.probe
}

// tokens reads the counts; 0 stands for "not known" in this log unless the answer is there and empty. It
// returns false when a count is no count.
func (p *litellmPayload) tokens(rec *record, answer *litellmAnswer) bool {
	usage := answer.Usage
	if usage == nil {
		usage = p.Metadata.Usage
	}
	source := schemas.TokensProvider
	if usage == nil {
		usage, source = &litellmUsage{}, schemas.TokensGateway
	}
	in, _, err1 := p.PromptTokens.tokens()
	out, outSet, err2 := p.CompletionTokens.tokens()
	cached, cachedSet, err3 := firstNumber(usage.PromptDetails.Cached, usage.CacheRead).tokens()
	reasoning, reasoningSet, err4 := usage.CompletionDetails.Reasoning.tokens()
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return false
	}
	rec.in, rec.out, rec.cached, rec.reasoning = absent(), absent(), absent(), absent()
	if in > 0 {
		rec.in.set(in, source)
	}
	if out > 0 || outSet && rec.status == schemas.StatusOK && answer.known && !answer.hasText {
		rec.out.set(out, source)
	}
	if cachedSet && in > 0 {
		rec.cached.set(cached, source)
	}
	if reasoningSet && out > 0 {
		rec.reasoning.set(reasoning, source)
	}
	return true
}

// secondsToTime reads unix seconds to the microsecond, which is what a double holds; ok is false for a time
// that the unit cannot give.
func secondsToTime(s float64) (t time.Time, ok bool) {
	if s <= 0 || s > float64(latest.Unix()) {
		return time.Time{}, false
	}
	return time.UnixMicro(int64(math.Round(s * 1e6))).UTC(), true
}

func firstOf[T ~[]byte](values ...T) []byte {
	for _, v := range values {
		if len(v) > 0 {
			return v
		}
	}
	return nil
}

func firstNumber(values ...number) number {
	for _, v := range values {
		if v.set {
			return v
		}
	}
	return number{}
}
