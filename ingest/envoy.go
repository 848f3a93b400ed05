package ingest

import (
	"bytes"
	"encoding/json"
	"time"

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

func decodeEnvoy(raw []byte) []item {
	var e envoyEntry
	if err := json.Unmarshal(raw, &e); err != nil {
		return []item{{dead: DeadBadField, raw: raw}}
	}
	if len(e.RequestModel) == 0 && len(e.Provider) == 0 || len(e.Code) == 0 {
		return []item{{dead: DeadLayout, raw: raw}}
	}
	rec, reason := e.record()
	if reason != "" {
		return []item{{dead: reason, raw: raw}}
	}
	return []item{{rec: rec, raw: raw}}
}

func (e *envoyEntry) record() (rec *record, reason string) {
	if len(e.Start) == 0 {
		return nil, DeadMissingTime
	}
	start, ok := isoTime(e.Start)
	if !ok {
		return nil, DeadBadTime
	}
	var asked label
	if len(e.RequestModel) > 0 && json.Unmarshal(e.RequestModel, &asked) != nil {
		return nil, DeadBadField
	}
	route := firstOf(e.OriginPath, e.Path)
	rec = &record{
		arrived: start, resolutionUs: 1000, requestID: told(e.RequestID), session: told(e.Session),
		model: string(firstOf(told(asked), told(e.ResponseModel))), route: route, op: opOfPath(route),
	}
	rec.prompt.Model = string(firstOf(told(e.ResponseModel), told(asked)))
	rec.prompt.State = schemas.PromptAbsent
	if e.DurationMs.set && e.DurationMs.v >= 0 && e.DurationMs.v < 1e12 {
		rec.duration = new(time.Duration(e.DurationMs.v * 1e6))
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
