package ingest

import (
	"encoding/json"

	"tailgate/internal/jsonscan"
	"tailgate/prompt"
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

// openAI decodes a pair.
func (r *reader) openAI(raw []byte) []item {
	var p openAIPair
	if !r.try(raw, &r.said, func(r *reader, _ *prompt.Prompt) { r.pair(&p) }) {
		if r.unproven {
			return nil
		}
		p = openAIPair{}
		if err := json.Unmarshal(raw, &p); err != nil {
			return r.one(item{dead: DeadBadField, raw: raw})
		}
	}
	if !present(p.Request) || len(p.StartedAt) == 0 && len(p.EndedAt) == 0 {
		return r.one(item{dead: DeadLayout, raw: raw})
	}
	rec, reason := p.record(r)
	if reason != "" {
		if rec != nil {
			rec.clear()
		}
		return r.one(item{dead: reason, raw: raw})
	}
	return r.one(item{rec: rec, raw: raw})
}

// pairMembers are the members that openAIPair has. TestReaderKnowsEveryMember holds the two together.
var pairMembers = jsonscan.NewFields("request_id", "attempt", "parent_request_id", "session_id", "tenant", "gateway", "route",
	"tags", "started_at", "first_token_at", "ended_at", "http_status", "error", "cache_hit", "is_probe", "sampled_fraction",
	"request", "response")

func (r *reader) pair(p *openAIPair) {
	var seen uint64
	for r.scan.Enter('{'); r.scan.More('}'); {
		switch r.scan.Field(pairMembers, &seen) {
		case "request_id":
			p.ID = r.label()
		case "attempt":
			p.Attempt = r.count()
		case "parent_request_id":
			p.Parent = r.label()
		case "session_id":
			p.Session = r.label()
		case "tenant":
			p.Tenant = r.label()
		case "gateway":
			p.Gateway = r.label()
		case "route":
			p.Route = r.label()
		case "tags":
			p.Tags = r.value()
		case "started_at":
			p.StartedAt = r.label()
		case "first_token_at":
			p.FirstAt = r.label()
		case "ended_at":
			p.EndedAt = r.label()
		case "http_status":
			p.HTTPStatus = r.label()
		case "error":
			p.Error = r.label()
		case "cache_hit":
			p.CacheHit = r.aloud()
		case "is_probe":
			p.Probe = r.aloud()
		case "sampled_fraction":
			p.Sampled = r.count()
		case "request":
			p.Request = r.value()
		case "response":
			p.Response = r.value()
		default:
			r.scan.Skip()
		}
	}
}

// record maps the pair; with a reason the record is not to be used.
func (p *openAIPair) record(r *reader) (rec *record, reason string) {
	if len(p.StartedAt) == 0 {
		return nil, DeadMissingTime
	}
	start, ok := mixedTime(p.StartedAt)
	if !ok {
		return nil, DeadBadTime
	}
	body, err := r.requestBody(p.Request)
	if err != nil {
		return nil, DeadBadField
	}
	response, answer := r.responseBody(p.Response)
	rec = r.record()
	rec.arrived, rec.resolutionUs, rec.requestID, rec.parent = start, 1, p.ID, p.Parent
	rec.session, rec.tenant, rec.clock, rec.route = p.Session, p.Tenant, p.Gateway, p.Route
	rec.tags, rec.probe, rec.op = r.tags(rec.tags, p.Tags), p.Probe.is(), body.op(p.Route)
	rec.model, rec.answer = r.names.text(firstOf(body.Model, response.Model)), answer.text
	rec.setStream(body.Stream.is())
	rec.prompt.Model = r.names.text(firstOf(response.Model, body.Model))
	rec.prompt.CacheSalt = r.names.text(body.CacheSalt)
	if err := body.appendTo(r, &rec.prompt); err != nil {
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
		rec.setDuration(end.Sub(start))
	}
	if first, ok := mixedTime(p.FirstAt); ok && first.After(start) && *rec.stream && rec.reached {
		rec.setTTFT(first.Sub(start))
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
