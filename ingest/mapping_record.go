package ingest

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"tailgate/internal/jsonscan"
	"tailgate/schemas"
)

// mapReader makes the record of one capture. The first fault stays in reason.
type mapReader struct {
	m      *Mapping
	reader *reader
	c      *capture
	reason string
}

func (r *mapReader) fail(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
}

// raw returns the value of a field, nil when the record does not tell.
func (r *mapReader) raw(name mapName) json.RawMessage {
	f := r.m.fields[name]
	if f == nil {
		return nil
	}
	for _, s := range f.slots {
		v := r.c.values[s]
		if !present(v) || string(v) == `""` {
			continue
		}
		if f.enum == nil && f.absent == nil {
			return v
		}
		spelled := spelling(v)
		if slices.ContainsFunc(f.absent, func(a string) bool { return a == string(spelled) }) {
			continue
		}
		if f.enum == nil {
			return v
		}
		for i := range f.enum {
			if f.enum[i].matches(spelled) {
				return f.enum[i].value
			}
		}
	}
	return f.constant
}

// spelling is a scalar as the log spells it, without quotes.
func spelling(raw json.RawMessage) []byte {
	switch {
	case !isString(raw):
		return raw
	case bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return raw[1 : len(raw)-1]
	}
	return unquote(raw[1 : len(raw)-1])
}

// label copies a string or a number; the captured values are cleared.
func (r *mapReader) label(name mapName) []byte {
	raw := r.raw(name)
	switch {
	case len(raw) >= 2 && raw[0] == '"':
		return r.reader.unquoted(raw)
	case len(raw) > 0 && (raw[0] == '-' || isDigit(raw[0])):
		return r.reader.keep(raw)
	case len(raw) > 0 && (raw[0] == '{' || raw[0] == '['):
		r.fail(DeadBadField)
	}
	return nil
}

func (r *mapReader) number(name mapName) number {
	raw := r.raw(name)
	if raw == nil {
		return number{}
	}
	if v, ok := jsonscan.ParseNumber(raw); ok {
		return number{v: v, set: true}
	}
	return r.oddNumber(raw)
}

// oddNumber reads a number in a string, and others that are not spelled as JSON has it.
func (r *mapReader) oddNumber(raw json.RawMessage) (n number) {
	if n.UnmarshalJSON(raw) != nil {
		r.fail(DeadBadField)
	}
	return n
}

func (r *mapReader) flag(name mapName) *bool {
	raw := r.raw(name)
	if raw == nil {
		return nil
	}
	v, ok := spelledFlag(raw)
	if !ok {
		r.fail(DeadBadField)
		return nil
	}
	return v
}

// spelledFlag reads a flag; ok is false for what is none.
func spelledFlag(raw json.RawMessage) (v *bool, ok bool) {
	switch string(raw) {
	case "true":
		return new(true), true
	case "false":
		return new(false), true
	}
	var f flag
	_ = f.UnmarshalJSON(raw)
	return f.v, f.v != nil
}

func (r *mapReader) is(name mapName) bool {
	if r.m.fields[name] == nil {
		return false
	}
	v := r.flag(name)
	return v != nil && *v
}

// unitSeconds are the lengths of the units, in seconds.
var unitSeconds = map[string]float64{"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

// duration reads a span of time in its field's unit.
func (r *mapReader) duration(name mapName) (d time.Duration, set bool) {
	n := r.number(name)
	if !n.set {
		return 0, false
	}
	s := n.v * r.m.fields[name].seconds
	if s < 0 || s > math.MaxInt32 {
		r.fail(DeadBadField)
		return 0, false
	}
	return time.Duration(math.Round(s * 1e9)), true
}

// time reads a moment in its field's unit, and how fine it is.
func (r *mapReader) time(name mapName) (t time.Time, resolution int64, set bool) {
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
	rec := r.reader.record()
	rec.requestID, rec.parent, rec.session = r.label(fieldRequestId), r.label(fieldParentRequestId), r.label(fieldSession)
	rec.tenant, rec.clock, rec.route = r.label(fieldTenant), r.label(fieldClock), r.label(fieldRoute)
	rec.tags, rec.probe = r.reader.tags(rec.tags, r.raw(fieldTags)), r.is(fieldIsProbe)
	r.times(rec)
	body, answer, response := r.content(rec)
	served := r.label(fieldServedModel)
	asked := firstOf(r.label(fieldModel), body.Model, served, response.Model)
	rec.model = r.reader.names.text(asked)
	rec.prompt.Model = r.reader.names.text(firstOf(served, response.Model, asked))
	rec.prompt.Adapter = r.reader.names.text(r.label(fieldAdapter))
	rec.prompt.CacheSalt = r.reader.names.text(firstOf(r.label(fieldCacheSalt), body.CacheSalt))
	if rec.stream = r.flag(fieldStream); rec.stream == nil && present(r.raw(fieldRequest)) {
		rec.stream = body.Stream.v
	}
	rec.op = r.reader.names.text(r.label(fieldOp))
	if rec.op == "" {
		rec.op = body.op(rec.route)
	}
	if n, ok, err := r.number(fieldAttempt).tokens(); ok || err != nil {
		rec.attempt = int32(n)
		if err != nil {
			r.fail(DeadBadField)
		}
	}
	if n := r.number(fieldSampledFraction); n.set {
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
	if d, ok := r.duration(fieldDuration); ok {
		rec.setDuration(d)
	}
	start, resolution, started := r.time(fieldArrivedAt)
	end, endResolution, ended := r.time(fieldEndedAt)
	switch {
	case started:
		if ended && rec.duration == nil && !end.Before(start) {
			rec.setDuration(end.Sub(start))
		}
	case ended && rec.duration != nil:
		start, resolution, rec.quality = end.Add(-*rec.duration), endResolution, schemas.TimeEndMinusDur
	case ended:
		start, resolution, rec.quality = end, endResolution, schemas.TimeFirstSeen
	default:
		r.fail(DeadMissingTime)
	}
	rec.arrived, rec.resolutionUs = start, resolution
	if d, ok := r.duration(fieldTtft); ok {
		if d > 0 {
			rec.setTTFT(d)
		}
	} else if first, _, ok := r.time(fieldFirstTokenAt); ok && first.After(start) {
		rec.setTTFT(first.Sub(start))
	}
}

// content reads the prompt from a whole request body or from fields of their own, and the answer.
func (r *mapReader) content(rec *record) (body requestBody, answer answerState, response responseBody) {
	body, cut, err := r.body(r.raw(fieldRequest))
	if err == nil {
		cut = r.overlay(&body) || cut
	}
	if err == nil {
		err = body.appendTo(r.reader, &rec.prompt)
	}
	if err != nil {
		r.fail(DeadBadField)
		return body, answer, response
	}
	judge(&rec.prompt)
	if len(rec.prompt.Messages) == 0 && cut {
		rec.prompt.State = schemas.PromptTruncated
	}
	if state := string(r.label(fieldPromptState)); state != "" && state != schemas.PromptFull {
		rec.prompt.State, rec.prompt.Intact = state, 0
	}
	response, answer = r.reader.responseBody(r.raw(fieldResponse))
	rec.answer = answer.text
	return body, answer, response
}

// body reads a request's body. cut tells that it came in a string which is as long as the gateway's limit or no
// JSON any more: nothing of it can be trusted to be whole.
func (r *mapReader) body(raw json.RawMessage) (body requestBody, cut bool, err error) {
	if !isString(raw) {
		body, err = r.reader.requestObject(raw, nil)
		return body, false, err
	}
	inner, limit := r.reader.unquoted(raw), r.m.bodyLimit
	if limit > 0 && len(inner) >= limit || !jsonscan.Valid(inner) {
		clear(inner)
		return body, true, nil
	}
	body, err = r.reader.requestObject(trimJSON(inner), inner)
	return body, false, err
}

// overlay puts fields of their own into the request body. cut tells that one of them is the rest of a JSON value.
func (r *mapReader) overlay(body *requestBody) (cut bool) {
	put := func(field json.RawMessage, name mapName) json.RawMessage {
		raw := r.raw(name)
		if raw == nil {
			return field
		}
		inner, ok := r.reader.inner(raw)
		if ok && len(inner) > 0 {
			return inner
		}
		if text := spelling(raw); bytes.HasPrefix(text, []byte("[{")) || bytes.HasPrefix(text, []byte(`{"`)) {
			cut = true
			return field
		}
		return raw // a plain text
	}
	body.Messages, body.Prompt = put(body.Messages, fieldMessages), put(body.Prompt, fieldPrompt)
	body.System, body.Tools = put(body.System, fieldSystem), put(body.Tools, fieldTools)
	return cut
}

func (r *mapReader) outcome(rec *record) {
	code := httpCode(r.label(fieldHttpStatus))
	settleOutcome(rec, code, r.label(fieldError), false)
	if code == 0 && rec.status == schemas.StatusOK && r.m.fields[fieldHttpStatus] != nil {
		rec.status = schemas.StatusUnknown
	}
	if status := r.reader.names.text(r.label(fieldStatus)); status != "" {
		rec.status = status
		rec.reached = !slices.Contains([]string{
			schemas.StatusCacheHit, schemas.StatusRateLimited, schemas.StatusBlocked, schemas.StatusClientError,
		}, status)
	}
	if r.is(fieldRateLimited) {
		rec.status, rec.reached = schemas.StatusRateLimited, false
	}
	if r.is(fieldCacheHit) {
		rec.status, rec.reached = schemas.StatusCacheHit, false
	}
	if reached := r.flag(fieldReachedEngine); reached != nil {
		rec.reached = *reached
	}
	rec.reached = rec.reached && !rec.probe
}

// usage takes the counts from fields of their own, and what they do not tell from the response body.
func (r *mapReader) usage(response responseBody) usage {
	u := response.Usage.counts(schemas.TokensProvider)
	for _, f := range [...]struct {
		name mapName
		to   *number
	}{
		{fieldInputTokens, &u.in}, {fieldOutputTokens, &u.out}, {fieldCachedTokens, &u.cached},
		{fieldCacheWriteTokens, &u.cacheWrite}, {fieldReasoningTokens, &u.reasoning},
	} {
		if n := r.number(f.name); n.set {
			*f.to = n
			if f.name == fieldInputTokens {
				u.excludesCache = false
			}
		}
	}
	u.excludesCache = u.excludesCache || r.m.inputExcludesCache
	if f := r.m.fields[fieldInputTokens]; f != nil && f.source != "" {
		u.source = f.source
	}
	if f := r.m.fields[fieldOutputTokens]; f != nil {
		u.outSource = f.source
	}
	if r.m.estimateWithoutInput && u.in.v == 0 {
		u.outSource = schemas.TokensGateway
	}
	return u
}
