package ingest

import (
	"bytes"
	"encoding/json"
	"time"

	"tailgate/prompt"
	"tailgate/schemas"
)

// spendLog is a row of LiteLLM's spend logs. Much of it is JSON in strings, and prompts are there only when the
// operator stores them.
type spendLog struct {
	RequestID        label           `json:"request_id"`
	CallType         text            `json:"call_type"`
	Start            label           `json:"startTime"`
	End              label           `json:"endTime"`
	FirstToken       label           `json:"completionStartTime"`
	DurationMs       number          `json:"request_duration_ms"`
	PromptTokens     number          `json:"prompt_tokens"`
	CompletionTokens number          `json:"completion_tokens"`
	Model            text            `json:"model"`
	ModelGroup       text            `json:"model_group"`
	CacheHit         flag            `json:"cache_hit"` // "True", "False" or "None"
	Status           text            `json:"status"`
	Session          label           `json:"session_id"`
	Team             label           `json:"team_id"`
	Organization     label           `json:"organization_id"`
	Key              label           `json:"api_key"` // a hash
	User             label           `json:"user"`
	Tags             json.RawMessage `json:"request_tags"`
	Messages         json.RawMessage `json:"messages"`
	Request          json.RawMessage `json:"proxy_server_request"`
	Response         json.RawMessage `json:"response"`
	Metadata         json.RawMessage `json:"metadata"`
}

// spendMetadata is the row's metadata.
type spendMetadata struct {
	Status text          `json:"status"`
	Team   label         `json:"user_api_key_team_id"`
	Alias  label         `json:"user_api_key_alias"`
	Route  label         `json:"user_api_key_request_route"`
	Usage  *litellmUsage `json:"usage_object"`
	Error  struct {
		Code  label `json:"error_code"`
		Class text  `json:"error_class"`
	} `json:"error_information"`
	Prefix json.RawMessage `json:"prefix_block_hashes"`
}

// spendLog decodes a row.
func (r *reader) spendLog(raw []byte) []item {
	var p spendLog
	if !r.try(raw, &r.said, func(r *reader, _ *prompt.Prompt) { r.spendRow(&p) }) {
		if r.unproven {
			return nil
		}
		p = spendLog{}
		if err := json.Unmarshal(raw, &p); err != nil {
			return r.one(item{dead: DeadBadField, raw: raw})
		}
	}
	if len(p.RequestID) == 0 || len(p.Start) > 0 && isDigitsOnly(p.Start) || len(p.Metadata) == 0 && len(p.CallType) == 0 {
		return r.one(item{dead: DeadLayout, raw: raw})
	}
	rec, reason := p.record(r)
	if reason != "" {
		return r.one(item{dead: reason, raw: raw})
	}
	return r.one(item{rec: rec, raw: raw})
}

// isDigitsOnly tells a number, as other logs of the same gateway have it, from a written time.
func isDigitsOnly(s []byte) bool {
	return len(bytes.Trim(s, "0123456789.")) == 0
}

func (p *spendLog) record(r *reader) (rec *record, reason string) {
	if len(p.Start) == 0 {
		return nil, DeadMissingTime
	}
	start, ok := isoTime(p.Start)
	if !ok {
		return nil, DeadBadTime
	}
	meta, err := r.spendMetadata(p.Metadata)
	if err != nil {
		return nil, DeadBadField
	}
	rec = r.record()
	rec.arrived, rec.resolutionUs = start, min(isoResolution(p.Start), 1000) // Python leaves out a fraction that is 0
	rec.requestID, rec.session = p.RequestID, p.Session
	rec.tenant, rec.route = firstOf(p.Team, meta.Team, p.Organization, p.Key), meta.Route
	rec.op, rec.model, rec.tags = litellmOp(p.CallType), r.names.text(firstOf(p.ModelGroup, p.Model)), litellmTags(p.Tags)
	rec.probe = string(meta.Alias) == litellmProbe || string(p.User) == litellmProbe
	if err := p.readPrompt(r, rec, meta.Prefix); err != nil {
		rec.clear()
		return nil, DeadBadField
	}
	p.outcome(rec, &meta)
	p.times(rec)
	response, answer := r.responseBody(p.Response)
	rec.answer = answer.text
	source := schemas.TokensGateway
	u := response.Usage.counts(source)
	if meta.Usage != nil {
		source = schemas.TokensProvider
		u.cached = firstNumber(meta.Usage.PromptDetails.Cached, meta.Usage.CacheRead)
		u.reasoning = meta.Usage.CompletionDetails.Reasoning
	}
	// prompt_tokens is the whole prompt, whatever the provider counts.
	u.in, u.out, u.source, u.excludesCache = p.PromptTokens, p.CompletionTokens, source, false
	if !u.settle(rec, answer) {
		rec.clear()
		return nil, DeadBadTokens
	}
	return rec, ""
}

// readPrompt takes the stored messages, the stored request, or the hashes that stand for them.
func (p *spendLog) readPrompt(r *reader, rec *record, prefix json.RawMessage) error {
	body, err := r.requestBody(p.Request)
	if err != nil {
		return err
	}
	if holdsText(p.Messages) {
		inner, ok := r.inner(p.Messages)
		if !ok {
			inner = p.Messages // a plain text
		}
		body.Messages, body.System, body.Instructions = inner, nil, nil
	}
	if err := body.appendTo(r, &rec.prompt); err != nil {
		return err
	}
	rec.prompt.Model, rec.prompt.CacheSalt = r.names.text(firstOf(p.Model, p.ModelGroup)), r.names.text(body.CacheSalt)
	judge(&rec.prompt)
	rec.stream = body.Stream.v
	if !present(prefix) || rec.prompt.Full() {
		return nil
	}
	if rec.hashes, err = readPrefixHashes(prefix); err != nil {
		return err
	}
	if len(rec.hashes.ids) > 0 {
		rec.prompt.State = schemas.PromptPrehashed
	}
	return nil
}

func (p *spendLog) outcome(rec *record, meta *spendMetadata) {
	status := firstOf(p.Status, meta.Status)
	o := outcome{status: schemas.StatusOK, reached: true}
	switch {
	case p.CacheHit.is():
		o = outcome{status: schemas.StatusCacheHit}
	case string(status) == "failure":
		o = failure(httpCode(meta.Error.Code), meta.Error.Class)
	case len(status) > 0 && string(status) != "success":
		o.status = schemas.StatusUnknown
	}
	rec.status, rec.httpStatus, rec.reached = o.status, o.http, o.reached && !rec.probe
}

// times reads duration and time to first token. Without a stream completionStartTime equals endTime.
func (p *spendLog) times(rec *record) {
	if end, ok := isoTime(p.End); ok && !end.Before(rec.arrived) {
		rec.setDuration(end.Sub(rec.arrived))
	} else if p.DurationMs.set && p.DurationMs.v >= 0 && p.DurationMs.v < 1e12 {
		rec.duration = new(time.Duration(p.DurationMs.v * 1e6))
	}
	first, ok := isoTime(p.FirstToken)
	if !ok || rec.duration == nil || !rec.reached {
		return
	}
	if ttft := first.Sub(rec.arrived); ttft > 0 && ttft < *rec.duration {
		rec.ttft, rec.stream = &ttft, new(true)
	}
}

// readPrefixHashes reads what the prefix_block_hashes callback leaves: a list of ids, or an object with the list
// and the block size. Without a size the ids cannot be placed.
func readPrefixHashes(raw json.RawMessage) (prehashed, error) {
	var o struct {
		Block  number  `json:"block_size"`
		IDs    []label `json:"hash_ids"`
		Hashes []label `json:"hashes"`
		Blocks []label `json:"block_hashes"`
	}
	var inner json.RawMessage
	if err := unwrapJSON(raw, &inner); err != nil {
		return prehashed{}, err
	}
	if len(inner) == 0 {
		return prehashed{}, nil
	}
	if inner[0] == '[' {
		if err := json.Unmarshal(inner, &o.IDs); err != nil {
			return prehashed{}, err
		}
	} else if err := json.Unmarshal(inner, &o); err != nil {
		return prehashed{}, err
	}
	size, _, err := o.Block.tokens()
	if err != nil {
		return prehashed{}, err
	}
	h := prehashed{block: int(size)}
	for _, list := range [][]label{o.IDs, o.Hashes, o.Blocks} {
		for _, id := range list {
			if len(id) == 0 {
				return prehashed{}, errValue
			}
			h.ids = append(h.ids, id)
		}
	}
	return h, nil
}

// unwrapJSON reads v from a JSON value, or from one in a string. An empty or absent value leaves v as it is.
func unwrapJSON(raw json.RawMessage, v any) error {
	if !present(raw) {
		return nil
	}
	if !isString(raw) {
		return json.Unmarshal(raw, v)
	}
	var inner text
	if err := json.Unmarshal(raw, &inner); err != nil {
		return err
	}
	defer clear(inner)
	if len(bytes.TrimSpace(inner)) == 0 {
		return nil
	}
	return json.Unmarshal(inner, v)
}
