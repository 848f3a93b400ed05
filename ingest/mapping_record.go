package ingest

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/wildcard"
	"tailgate/schemas"
)

// mapReader makes the record of one capture. The first fault stays in reason.
type mapReader struct {
	m      *Mapping
	c      *capture
	reason string
}

func (r *mapReader) fail(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
}

// raw returns the value of a field, nil when the record does not tell.
func (r *mapReader) raw(name string) json.RawMessage {
	f := r.m.fields[name]
	if f == nil {
		return nil
	}
	for _, s := range f.slots {
		v := r.c.values[s]
		if !present(v) || string(v) == `""` || f.absent != nil && slices.Contains(f.absent, spelling(v)) {
			continue
		}
		if f.enum == nil {
			return v
		}
		for _, e := range f.enum {
			if wildcard.Match(e.pattern, spelling(v)) {
				return e.value
			}
		}
	}
	return f.constant
}

// spelling is a scalar as the log spells it, without quotes.
func spelling(raw json.RawMessage) string {
	if isString(raw) {
		return string(unquote(raw[1 : len(raw)-1]))
	}
	return string(raw)
}

func (r *mapReader) label(name string) []byte {
	var l label
	if raw := r.raw(name); raw != nil && l.UnmarshalJSON(raw) != nil {
		r.fail(DeadBadField)
	}
	return l
}

func (r *mapReader) number(name string) number {
	var n number
	if raw := r.raw(name); raw != nil && n.UnmarshalJSON(raw) != nil {
		r.fail(DeadBadField)
	}
	return n
}

func (r *mapReader) flag(name string) *bool {
	var f flag
	if raw := r.raw(name); raw != nil {
		_ = f.UnmarshalJSON(raw)
		if f.v == nil {
			r.fail(DeadBadField)
		}
	}
	return f.v
}

func (r *mapReader) is(name string) bool {
	v := r.flag(name)
	return v != nil && *v
}

// unitSeconds are the lengths of the units, in seconds.
var unitSeconds = map[string]float64{"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

// duration reads a span of time in its field's unit.
func (r *mapReader) duration(name string) *time.Duration {
	n := r.number(name)
	if !n.set {
		return nil
	}
	s := n.v * unitSeconds[r.m.fields[name].unit]
	if s < 0 || s > math.MaxInt32 {
		r.fail(DeadBadField)
		return nil
	}
	return new(time.Duration(math.Round(s * 1e9)))
}

// time reads a moment in its field's unit, and how fine it is.
func (r *mapReader) time(name string) (t time.Time, resolution int64, set bool) {
	l := r.label(name)
	if len(l) == 0 {
		return time.Time{}, 0, false
	}
	f := r.m.fields[name]
	ok := false
	if f.unit == unitISO {
		t, ok = isoTime(l)
		resolution = isoResolution(l)
	} else {
		t, ok = unixTime(l, f.unit)
		resolution = max(int64(unitSeconds[f.unit]*1e6), 1)
		if f.unit == "s" && slices.Contains(l, '.') {
			resolution = 1
		}
	}
	if !ok {
		r.fail(DeadBadTime)
	}
	if f.resolution > 0 {
		resolution = f.resolution
	}
	return t, resolution, true
}

// unixTime reads a count of units since 1970. Whole numbers stay exact.
func unixTime(l []byte, unit string) (time.Time, bool) {
	if whole, err := strconv.ParseInt(string(l), 10, 64); err == nil {
		perSecond := int64(math.Round(1 / unitSeconds[unit]))
		t := time.Unix(whole/perSecond, whole%perSecond*(1e9/perSecond)).UTC()
		return t, whole > 0 && t.Before(latest)
	}
	var n number
	if n.UnmarshalJSON(l) != nil || !n.set {
		return time.Time{}, false
	}
	return secondsToTime(n.v * unitSeconds[unit])
}

// record makes the record; it is not to be used when there is a reason.
func (r *mapReader) record() *record {
	rec := &record{
		requestID: r.label("request_id"), parent: r.label("parent_request_id"), session: r.label("session"),
		tenant: r.label("tenant"), clock: r.label("clock"), route: r.label("route"),
		tags: readTags(r.raw("tags")), probe: r.is("is_probe"),
	}
	r.times(rec)
	body, answer, response := r.content(rec)
	served := r.label("served_model")
	rec.model = string(firstOf(r.label("model"), body.Model, served, response.Model))
	rec.prompt.Model = string(firstOf(served, response.Model, []byte(rec.model)))
	rec.prompt.Adapter = string(r.label("adapter"))
	rec.prompt.CacheSalt = string(firstOf(r.label("cache_salt"), body.CacheSalt))
	if rec.stream = r.flag("stream"); rec.stream == nil && present(r.raw("request")) {
		rec.stream = body.Stream.v
	}
	rec.op = string(r.label("op"))
	if rec.op == "" {
		rec.op = body.op(rec.route)
	}
	if n, ok, err := r.number("attempt").tokens(); ok || err != nil {
		rec.attempt = int32(n)
		if err != nil {
			r.fail(DeadBadField)
		}
	}
	if n := r.number("sampled_fraction"); n.set {
		rec.sampled = n.v
		if !(n.v > 0 && n.v <= 1) {
			r.fail(DeadBadField)
		}
	}
	r.outcome(rec)
	if !rec.reached || rec.stream != nil && !*rec.stream || rec.ttft != nil && rec.duration != nil && *rec.ttft > *rec.duration {
		rec.ttft = nil // of an answer in one piece logs tell the whole duration
	}
	if !r.usage(response).settle(rec, answer) {
		r.fail(DeadBadTokens)
	}
	return rec
}

// times takes the arrival from its own field, or from the end and the duration.
func (r *mapReader) times(rec *record) {
	rec.duration = r.duration("duration")
	start, resolution, started := r.time("arrived_at")
	end, endResolution, ended := r.time("ended_at")
	switch {
	case started:
		if ended && rec.duration == nil && !end.Before(start) {
			rec.duration = new(end.Sub(start))
		}
	case ended && rec.duration != nil:
		start, resolution, rec.quality = end.Add(-*rec.duration), endResolution, schemas.TimeEndMinusDur
	case ended:
		start, resolution, rec.quality = end, endResolution, schemas.TimeFirstSeen
	default:
		r.fail(DeadMissingTime)
	}
	rec.arrived, rec.resolutionUs = start, resolution
	if rec.ttft = r.duration("ttft"); rec.ttft == nil {
		if first, _, ok := r.time("first_token_at"); ok && first.After(start) {
			rec.ttft = new(first.Sub(start))
		}
	}
	if rec.ttft != nil && *rec.ttft == 0 {
		rec.ttft = nil
	}
}

// content reads the prompt from a whole request body or from fields of their own, and the answer.
func (r *mapReader) content(rec *record) (body requestBody, answer answerState, response responseBody) {
	request := r.raw("request")
	cut := isCut(request, r.m.bodyLimit)
	if cut {
		request = nil // nothing of it can be trusted to be whole
	}
	body, err := readRequestBody(request)
	if err == nil {
		cut = r.overlay(&body) || cut
	}
	if err == nil {
		err = body.appendTo(&rec.prompt)
	}
	if err != nil {
		r.fail(DeadBadField)
		return body, answer, response
	}
	judge(&rec.prompt)
	if len(rec.prompt.Messages) == 0 && cut {
		rec.prompt.State = schemas.PromptTruncated
	}
	if state := string(r.label("prompt_state")); state != "" && state != schemas.PromptFull {
		rec.prompt.State, rec.prompt.Intact = state, 0
	}
	response, answer = readResponseBody(r.raw("response"))
	rec.answer = answer.text
	return body, answer, response
}

// isCut tells whether a request body in a string is as long as the gateway's limit (0 = none), or no JSON any
// more.
func isCut(raw json.RawMessage, limit int) bool {
	if !isString(raw) {
		return false
	}
	inner := unquote(raw[1 : len(raw)-1])
	defer clear(inner)
	return limit > 0 && len(inner) >= limit || !json.Valid(inner)
}

// overlay puts fields of their own into the request body. cut tells that one of them is the rest of a JSON value.
func (r *mapReader) overlay(body *requestBody) (cut bool) {
	for name, to := range map[string]*json.RawMessage{
		"messages": &body.Messages, "prompt": &body.Prompt, "system": &body.System, "tools": &body.Tools,
	} {
		raw := r.raw(name)
		if raw == nil {
			continue
		}
		var inner json.RawMessage
		if unwrapJSON(raw, &inner) != nil || inner == nil {
			if text := spelling(raw); strings.HasPrefix(text, "[{") || strings.HasPrefix(text, `{"`) {
				cut = true
				continue
			}
			inner = slices.Clone(raw) // a plain text
		}
		*to = inner
	}
	return cut
}

func (r *mapReader) outcome(rec *record) {
	code := httpCode(r.label("http_status"))
	settleOutcome(rec, code, r.label("error"), false)
	if code == 0 && rec.status == schemas.StatusOK && r.m.fields["http_status"] != nil {
		rec.status = schemas.StatusUnknown
	}
	if status := string(r.label("status")); status != "" {
		rec.status = status
		rec.reached = !slices.Contains([]string{
			schemas.StatusCacheHit, schemas.StatusRateLimited, schemas.StatusBlocked, schemas.StatusClientError,
		}, status)
	}
	if r.is("rate_limited") {
		rec.status, rec.reached = schemas.StatusRateLimited, false
	}
	if r.is("cache_hit") {
		rec.status, rec.reached = schemas.StatusCacheHit, false
	}
	if reached := r.flag("reached_engine"); reached != nil {
		rec.reached = *reached
	}
	rec.reached = rec.reached && !rec.probe
}

// usage takes the counts from fields of their own, and what they do not tell from the response body.
func (r *mapReader) usage(response responseBody) usage {
	u := response.Usage.counts(schemas.TokensProvider)
	for name, to := range map[string]*number{
		"input_tokens": &u.in, "output_tokens": &u.out, "cached_tokens": &u.cached,
		"cache_write_tokens": &u.cacheWrite, "reasoning_tokens": &u.reasoning,
	} {
		if n := r.number(name); n.set {
			*to = n
			if name == "input_tokens" {
				u.excludesCache = false
			}
		}
	}
	u.excludesCache = u.excludesCache || r.m.inputExcludesCache
	if f := r.m.fields["input_tokens"]; f != nil && f.source != "" {
		u.source = f.source
	}
	if f := r.m.fields["output_tokens"]; f != nil {
		u.outSource = f.source
	}
	if r.m.estimateWithoutInput && u.in.v == 0 {
		u.outSource = schemas.TokensGateway
	}
	return u
}
