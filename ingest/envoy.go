package ingest

import (
	"bytes"
	"encoding/json"
	"time"

	"tailgate/internal/jsonscan"
	"tailgate/prompt"
	"tailgate/schemas"
)

// envoyEntry is an entry of Envoy AI Gateway's access log under the field names of its documentation. They are
// the operator's to choose: other names need a mapping. Prompts are not in this log.
type envoyEntry struct {
	Start          label           `json:"start_time"`
	DurationMs     number          `json:"duration"`
	Code           label           `json:"response_code"`
	Flags          label           `json:"response_flags"`
	RequestModel   json.RawMessage `json:"gen_ai.request.model"`
	ResponseModel  label           `json:"gen_ai.response.model"`
	Provider       json.RawMessage `json:"gen_ai.provider.name"`
	Input          number          `json:"gen_ai.usage.input_tokens"`
	Output         number          `json:"gen_ai.usage.output_tokens"`
	Cached         number          `json:"gen_ai.usage.cached_input_tokens"`
	CacheRead      number          `json:"gen_ai.usage.cache_read.input_tokens"`
	Reasoning      number          `json:"gen_ai.usage.reasoning_tokens"`
	Session        label           `json:"session.id"`
	RequestID      label           `json:"x-request-id"`
	Attempts       number          `json:"x-envoy-attempt-count"`
	OriginPath     label           `json:"x-envoy-origin-path"`
	Path           label           `json:"request.path"`
	Upstream       label           `json:"upstream_host"`
	Termination    label           `json:"connection_termination_details"`
	UpstreamFailed label           `json:"upstream_transport_failure_reason"`
}

// envoy decodes an entry.
func (r *reader) envoy(raw []byte) []item {
	var e envoyEntry
	if !r.try(raw, &r.said, func(r *reader, _ *prompt.Prompt) { r.envoyEntry(&e) }) {
		if r.unproven {
			return nil
		}
		e = envoyEntry{}
		if err := json.Unmarshal(raw, &e); err != nil {
			return r.one(item{dead: DeadBadField, raw: raw})
		}
	}
	if len(e.RequestModel) == 0 && len(e.Provider) == 0 || len(e.Code) == 0 {
		return r.one(item{dead: DeadLayout, raw: raw})
	}
	rec, reason := e.record(r)
	if reason != "" {
		return r.one(item{dead: reason, raw: raw})
	}
	return r.one(item{rec: rec, raw: raw})
}

// envoyMembers are the members that envoyEntry has. TestReaderKnowsEveryMember holds the two together.
var envoyMembers = jsonscan.NewFields("start_time", "duration", "response_code", "response_flags", "gen_ai.request.model",
	"gen_ai.response.model", "gen_ai.provider.name", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
	"gen_ai.usage.cached_input_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.reasoning_tokens",
	"session.id", "x-request-id", "x-envoy-attempt-count", "x-envoy-origin-path", "request.path", "upstream_host",
	"connection_termination_details", "upstream_transport_failure_reason")

func (r *reader) envoyEntry(e *envoyEntry) {
	var seen uint64
	for r.scan.Enter('{'); r.scan.More('}'); {
		switch r.scan.Field(envoyMembers, &seen) {
		case "start_time":
			e.Start = r.label()
		case "duration":
			e.DurationMs = r.count()
		case "response_code":
			e.Code = r.label()
		case "response_flags":
			e.Flags = r.label()
		case "gen_ai.request.model":
			e.RequestModel = r.value()
		case "gen_ai.response.model":
			e.ResponseModel = r.label()
		case "gen_ai.provider.name":
			e.Provider = r.value()
		case "gen_ai.usage.input_tokens":
			e.Input = r.count()
		case "gen_ai.usage.output_tokens":
			e.Output = r.count()
		case "gen_ai.usage.cached_input_tokens":
			e.Cached = r.count()
		case "gen_ai.usage.cache_read.input_tokens":
			e.CacheRead = r.count()
		case "gen_ai.usage.reasoning_tokens":
			e.Reasoning = r.count()
		case "session.id":
			e.Session = r.label()
		case "x-request-id":
			e.RequestID = r.label()
		case "x-envoy-attempt-count":
			e.Attempts = r.count()
		case "x-envoy-origin-path":
			e.OriginPath = r.label()
		case "request.path":
			e.Path = r.label()
		case "upstream_host":
			e.Upstream = r.label()
		case "connection_termination_details":
			e.Termination = r.label()
		case "upstream_transport_failure_reason":
			e.UpstreamFailed = r.label()
		default:
			r.scan.Skip()
		}
	}
}

func (e *envoyEntry) record(r *reader) (rec *record, reason string) {
	if len(e.Start) == 0 {
		return nil, DeadMissingTime
	}
	start, ok := isoTime(e.Start)
	if !ok {
		return nil, DeadBadTime
	}
	var asked label
	if len(e.RequestModel) > 0 && asked.UnmarshalJSON(e.RequestModel) != nil {
		return nil, DeadBadField
	}
	route := firstOf(e.OriginPath, e.Path)
	rec = r.record()
	rec.arrived, rec.resolutionUs, rec.requestID, rec.session = start, 1000, told(e.RequestID), told(e.Session)
	rec.model, rec.route, rec.op = r.names.text(firstOf(told(asked), told(e.ResponseModel))), route, opOfPath(route)
	rec.prompt.Model = r.names.text(firstOf(told(e.ResponseModel), told(asked)))
	rec.prompt.State = schemas.PromptAbsent
	if e.DurationMs.set && e.DurationMs.v >= 0 && e.DurationMs.v < 1e12 {
		rec.setDuration(time.Duration(e.DurationMs.v * 1e6))
	}
	if n, ok, err := e.Attempts.tokens(); ok && err == nil && n > 1 {
		rec.attempt = int32(n - 1)
	}
	e.outcome(rec)
	u := usage{
		in: e.Input, out: e.Output, cached: firstNumber(e.CacheRead, e.Cached), reasoning: e.Reasoning,
		source: schemas.TokensProvider,
	}
	if !u.settle(rec, answerState{}) {
		return nil, DeadBadTokens
	}
	return rec, ""
}

// told returns the value of a field in which "-" stands for nothing.
func told(l label) label {
	if string(l) == "-" {
		return nil
	}
	return l
}

// envoyFlags maps response flags, the first that is set, to how the request ended; a refused request never
// reached an engine.
var envoyFlags = []struct {
	flag   string
	status string
	// refused: answered by the gateway itself.
	refused bool
}{
	{"RL", schemas.StatusRateLimited, true}, {"RLSE", schemas.StatusRateLimited, true},
	{"UAEX", schemas.StatusClientError, true}, {"NR", schemas.StatusClientError, true},
	{"UH", schemas.StatusServerError, true}, {"UO", schemas.StatusServerError, true}, {"NC", schemas.StatusServerError, true},
	{"UF", schemas.StatusServerError, true},
	{"DC", schemas.StatusCancelled, false}, {"DPE", schemas.StatusCancelled, false},
	{"UT", schemas.StatusTimeout, false}, {"DT", schemas.StatusTimeout, false}, {"SI", schemas.StatusTimeout, false},
	{"UMSDR", schemas.StatusTimeout, false},
	{"URX", schemas.StatusServerError, false}, {"UC", schemas.StatusServerError, false}, {"UR", schemas.StatusServerError, false},
	{"LR", schemas.StatusServerError, false}, {"UPE", schemas.StatusServerError, false},
}

func (e *envoyEntry) outcome(rec *record) {
	settleOutcome(rec, httpCode(e.Code), nil, false)
	flags := bytes.Split(told(e.Flags), []byte{','})
	for _, known := range envoyFlags {
		for _, f := range flags {
			if string(f) != known.flag {
				continue
			}
			if rec.status == schemas.StatusOK || rec.status == schemas.StatusServerError || known.refused {
				rec.status = known.status
			}
			rec.reached = !known.refused
			return
		}
	}
	if len(told(e.Upstream)) == 0 {
		rec.reached = false
	}
}

// opOfPath tells the operation by the path of the usual APIs.
func opOfPath(path []byte) string {
	path, _, _ = bytes.Cut(path, []byte{'?'})
	for _, known := range []struct{ suffix, op string }{
		{"/chat/completions", schemas.OpChat}, {"/messages", schemas.OpChat}, {"/converse", schemas.OpChat},
		{"/converse-stream", schemas.OpChat}, {"/completions", schemas.OpCompletion}, {"/responses", schemas.OpResponses},
		{"/embeddings", schemas.OpEmbedding}, {"/rerank", schemas.OpRerank},
	} {
		if bytes.HasSuffix(path, []byte(known.suffix)) {
			return known.op
		}
	}
	return schemas.OpOther
}
