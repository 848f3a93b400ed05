package ingest

import (
	"encoding/json"

	"tailgate/schemas"
)

// openAIPair is a request and its response as recorded by a proxy of one's own. docs/formats.md defines it:
// only started_at and request are required; times are ISO 8601 or unix seconds.
type openAIPair struct {
	ID         label           `json:"request_id"`
	Attempt    number          `json:"attempt"` // from 0
	Parent     label           `json:"parent_request_id"`
	Session    label           `json:"session_id"`
	Tenant     label           `json:"tenant"`
	Gateway    label           `json:"gateway"`
	Route      label           `json:"route"`
	Tags       json.RawMessage `json:"tags"`
	StartedAt  label           `json:"started_at"`
	FirstAt    label           `json:"first_token_at"`
	EndedAt    label           `json:"ended_at"`
	HTTPStatus label           `json:"http_status"`
	Error      label           `json:"error"` // an error class, or what the client saw
	CacheHit   flag            `json:"cache_hit"`
	Probe      flag            `json:"is_probe"`
	Sampled    number          `json:"sampled_fraction"`
	Request    json.RawMessage `json:"request"`
	Response   json.RawMessage `json:"response"`
}

func decodeOpenAI(raw []byte) []item {
	var p openAIPair
	if err := json.Unmarshal(raw, &p); err != nil {
		return []item{{dead: DeadBadField, raw: raw}}
	}
	if !present(p.Request) || len(p.StartedAt) == 0 && len(p.EndedAt) == 0 {
		return []item{{dead: DeadLayout, raw: raw}}
	}
	rec, reason := p.record()
	if reason != "" {
		if rec != nil {
			rec.clear()
		}
		return []item{{dead: reason, raw: raw}}
	}
	return []item{{rec: rec, raw: raw}}
}

// record maps the pair; with a reason the record is not to be used.
func (p *openAIPair) record() (rec *record, reason string) {
	if len(p.StartedAt) == 0 {
		return nil, DeadMissingTime
	}
	start, ok := mixedTime(p.StartedAt)
	if !ok {
		return nil, DeadBadTime
	}
	body, err := readRequestBody(p.Request)
	if err != nil {
		return nil, DeadBadField
	}
	response, answer := readResponseBody(p.Response)
	rec = &record{
		arrived: start, resolutionUs: 1, requestID: p.ID, parent: p.Parent, session: p.Session, tenant: p.Tenant,
		clock: p.Gateway, route: p.Route, tags: readTags(p.Tags), probe: p.Probe.is(),
		op: body.op(p.Route), model: string(firstOf(body.Model, response.Model)), stream: new(body.Stream.is()),
		answer: answer.text,
	}
	rec.prompt.Model, rec.prompt.CacheSalt = string(firstOf(response.Model, body.Model)), string(body.CacheSalt)
	if err := body.appendTo(&rec.prompt); err != nil {
		return rec, DeadBadField
	}
	judge(&rec.prompt)
	n, _, err := p.Attempt.tokens()
	if err != nil || p.Sampled.set && !(p.Sampled.v > 0 && p.Sampled.v <= 1) {
		return rec, DeadBadField
	}
	rec.attempt, rec.sampled = int32(n), p.Sampled.v
	settleOutcome(rec, httpCode(p.HTTPStatus), p.Error, present(response.Error))
	if p.CacheHit.is() {
		rec.status, rec.reached = schemas.StatusCacheHit, false
	}
	if end, ok := mixedTime(p.EndedAt); ok && !end.Before(start) {
		rec.duration = new(end.Sub(start))
	}
	if first, ok := mixedTime(p.FirstAt); ok && first.After(start) && *rec.stream && rec.reached {
		rec.ttft = new(first.Sub(start))
	}
	u := response.Usage.counts(schemas.TokensProvider)
	if !u.settle(rec, answer) {
		return rec, DeadBadTokens
	}
	return rec, ""
}

// op tells the operation by the path, or else by the fields that the body has.
func (b *requestBody) op(path []byte) string {
	if op := opOfPath(path); op != schemas.OpOther {
		return op
	}
	switch {
	case present(b.Messages):
		return schemas.OpChat
	case present(b.Prompt):
		return schemas.OpCompletion
	case present(b.Input) && (present(b.Instructions) || present(b.Tools) || b.Stream.v != nil):
		return schemas.OpResponses
	}
	return schemas.OpOther
}
