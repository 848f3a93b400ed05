package ingest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"tailgate/prompt"
	"tailgate/schemas"
)

// otlpExport is an export of traces, of logs, or (in a file) of both, in OTLP's JSON encoding.
type otlpExport struct {
	Traces []otlpResourceSpans `json:"resourceSpans"`
	Logs   []otlpResourceLogs  `json:"resourceLogs"`
}

type otlpResource struct {
	Attributes []keyValue `json:"attributes"`
}

type otlpResourceSpans struct {
	Resource otlpResource     `json:"resource"`
	Scopes   []otlpScopeSpans `json:"scopeSpans"`
}

type otlpScopeSpans struct {
	Spans []otlpSpan `json:"spans"`
}

type otlpSpan struct {
	TraceID    text        `json:"traceId"`
	SpanID     text        `json:"spanId"`
	Parent     text        `json:"parentSpanId"`
	State      text        `json:"traceState"`
	Name       text        `json:"name"`
	Start      label       `json:"startTimeUnixNano"`
	End        label       `json:"endTimeUnixNano"`
	Attributes []keyValue  `json:"attributes"`
	Events     []otlpEvent `json:"events"`
	Status     otlpStatus  `json:"status"`
}

type otlpEvent struct {
	Name       text       `json:"name"`
	Attributes []keyValue `json:"attributes"`
}

type otlpStatus struct {
	Code label `json:"code"` // 2 or STATUS_CODE_ERROR = error
}

// otlpView says which spans of an export count.
type otlpView struct {
	generations   bool // spans of the GenAI and OpenInference conventions, and content events
	openInference bool // only those of OpenInference
	engine        bool // the engine's own spans
}

// genAIOps maps gen_ai.operation.name, and llm.request.type of before, to operations; every other one is not a
// generation.
var genAIOps = map[string]string{
	"chat": schemas.OpChat, "generate_content": schemas.OpChat,
	"text_completion": schemas.OpCompletion, "completion": schemas.OpCompletion,
}

// jsonExport decodes one export in OTLP's JSON encoding.
func (o *otlpReader) jsonExport(raw []byte) []item {
	o.forget()
	var e otlpExport
	if !o.try(raw, &o.said, func(*reader, *prompt.Prompt) { o.export(&e) }) {
		if o.unproven {
			return nil
		}
		o.forget()
		e = otlpExport{}
		if err := json.Unmarshal(raw, &e); err != nil {
			return o.one(item{dead: DeadBadField, raw: raw})
		}
	}
	if e.Traces == nil && e.Logs == nil {
		return o.one(item{dead: DeadLayout, raw: raw})
	}
	if e.size() > maxRecords {
		return o.one(item{dead: DeadTooBig, raw: raw})
	}
	return o.decoded(&e, raw)
}

// decoded makes the items of an export. Several layers of one call may report it: of nested generation spans only
// the outermost counts, and the engine's own span is skipped.
func (o *otlpReader) decoded(e *otlpExport, raw []byte) []item {
	start := len(o.items)
	generations := o.generations(e)
	n := 0
	for i := range e.Traces {
		resource := &o.resources
		resource.reset()
		resource.add(e.Traces[i].Resource.Attributes)
		for _, scope := range e.Traces[i].Scopes {
			for j := range scope.Spans {
				o.items = append(o.items, o.span(&scope.Spans[j], o.sets[n], resource, generations, raw))
				n++
			}
		}
	}
	o.items = append(o.items, o.logItems(e, generations, raw)...)
	if len(o.items) == start {
		return o.one(item{skip: SkipEmpty})
	}
	return o.items[start:len(o.items):len(o.items)]
}

// size is how many spans and events the export holds.
func (e *otlpExport) size() (n int) {
	for _, r := range e.Traces {
		for _, scope := range r.Scopes {
			n += len(scope.Spans)
		}
	}
	for _, r := range e.Logs {
		for _, scope := range r.Scopes {
			n += len(scope.Records)
		}
	}
	return n
}

// generations lists the trace and span ids of the generation spans of one export, and gathers the attributes of
// all spans in o.sets.
func (o *otlpReader) generations(e *otlpExport) map[string]bool {
	var ids map[string]bool
	o.gathered = 0
	nested := len(e.Logs) > 0
	for _, r := range e.Traces {
		for _, scope := range r.Scopes {
			for i := range scope.Spans {
				o.gather(&scope.Spans[i])
				nested = nested || len(scope.Spans[i].Parent) > 0
			}
		}
	}
	if !nested {
		return nil
	}
	n := 0
	for _, r := range e.Traces {
		for _, scope := range r.Scopes {
			for i := range scope.Spans {
				s := &scope.Spans[i]
				key := o.spanKey(s.TraceID, s.SpanID)
				if spanOp(o.sets[n], o.view) != "" && key != nil {
					if ids == nil {
						ids = map[string]bool{}
					}
					ids[string(key)] = true
				}
				n++
			}
		}
	}
	return ids
}

// gather puts the attributes of a span into the next of o.sets: those of the span, over those of the event that
// carries the content where the span does not.
func (o *otlpReader) gather(s *otlpSpan) {
	if o.gathered == len(o.sets) {
		o.sets = append(o.sets, &attributes{})
	}
	a := o.sets[o.gathered]
	o.gathered++
	a.reset()
	for i := range s.Events {
		if string(s.Events[i].Name) == genAIDetails {
			a.add(s.Events[i].Attributes)
		}
	}
	a.add(s.Attributes)
}

// spanKey names a span; nil when one of its ids is missing.
func (o *otlpReader) spanKey(trace, span []byte) []byte {
	if len(trace) == 0 || len(span) == 0 {
		return nil
	}
	start := len(o.arena)
	o.arena = append(append(append(o.arena, trace...), ':'), span...)
	key := o.arena[start:len(o.arena):len(o.arena)]
	for i, c := range key {
		switch {
		case c >= utf8.RuneSelf:
			return bytes.ToLower(key)
		case c >= 'A' && c <= 'Z':
			key[i] += 'a' - 'A'
		}
	}
	return key
}

// spanOp returns the operation of a generation span, "" for any other span.
func spanOp(a *attributes, view otlpView) string {
	if string(a.text("openinference.span.kind")) == "LLM" {
		if len(a.indexed("llm.prompts")) > 0 {
			return schemas.OpCompletion
		}
		return schemas.OpChat
	}
	if view.openInference {
		return ""
	}
	return genAIOps[string(a.text("gen_ai.operation.name", "llm.request.type"))]
}

func (o *otlpReader) span(s *otlpSpan, a, resource *attributes, generations map[string]bool, raw []byte) item {
	view := o.view
	isEngine := string(s.Name) == "llm_request" || a.get("gen_ai.latency.e2e") != nil
	var rec *record
	var reason string
	if view.engine {
		if !isEngine {
			return item{skip: SkipNotGeneration}
		}
		rec, reason = o.engineRecord(s, a, resource)
	} else {
		op := spanOp(a, view)
		switch {
		case op == "" && isEngine:
			return item{skip: SkipEngineSpan}
		case op == "":
			return item{skip: SkipNotGeneration}
		case generations[string(o.spanKey(s.TraceID, s.Parent))]:
			return item{skip: SkipNested}
		}
		rec, reason = o.generation(s, op, a, resource)
	}
	if reason != "" {
		return item{dead: reason, raw: raw}
	}
	return item{rec: rec, raw: raw}
}

// arrival makes a record with the times and names that all spans have.
func (o *otlpReader) arrival(s *otlpSpan, a, resource *attributes) (rec *record, reason string) {
	if len(s.Start) == 0 {
		return nil, DeadMissingTime
	}
	start, ok := nanosToTime(s.Start)
	if !ok {
		return nil, DeadBadTime
	}
	rec = o.record()
	rec.arrived, rec.resolutionUs, rec.requestID = start, 1, o.spanKey(s.TraceID, s.SpanID)
	if end, ok := nanosToTime(s.End); ok && !end.Before(start) {
		rec.setDuration(end.Sub(start))
	}
	if n, ok, err := a.number("http.request.resend_count").tokens(); ok && err == nil {
		rec.attempt, rec.parent = int32(n), o.spanKey(s.TraceID, s.Parent)
	}
	rec.sampled = sampledShare(s.State, a)
	identify(rec, a, resource)
	return rec, ""
}

// identify reads who asked, and which instance logged it.
func identify(rec *record, a, resource *attributes) {
	rec.session = a.text("gen_ai.conversation.id", "session.id")
	rec.tenant = firstOf(a.text("tenant.id", "organization.id"), resource.text("tenant.id", "organization.id"))
	rec.clock = resource.text("service.instance.id", "k8s.pod.name", "host.name", "service.name")
	rec.route = a.text("http.route", "url.path")
}

// generation maps a generation span; reason is a dead letter's when it cannot.
func (o *otlpReader) generation(s *otlpSpan, op string, a, resource *attributes) (rec *record, reason string) {
	rec, reason = o.arrival(s, a, resource)
	if reason != "" {
		return nil, reason
	}
	rec.op = op
	answer, err := s.content(o.reader, a, &rec.prompt)
	if err != nil {
		rec.prompt.Clear()
		return nil, DeadBadField
	}
	o.told(rec, a, answer)
	s.outcome(rec, a)
	if !spanTokens(rec, a, answer) {
		rec.prompt.Clear()
		return nil, DeadBadTokens
	}
	return rec, ""
}

// told fills what spans and events of a generation have in common, once the prompt has been read.
func (o *otlpReader) told(rec *record, a *attributes, answer answerState) {
	asked := a.text("gen_ai.request.model", "llm.request.model_name", "llm.model_name")
	served := a.text("gen_ai.response.model", "llm.response.model_name", "llm.model_name")
	rec.model = o.names.text(firstOf(asked, served))
	rec.prompt.Model = o.names.text(firstOf(served, asked))
	judge(&rec.prompt)
	rec.stream = a.flag("gen_ai.request.stream")
	if rec.stream == nil {
		rec.stream = a.flag("llm.is_streaming")
	}
	if rec.stream == nil {
		rec.stream = invocationStream(a)
	}
	if rec.stream == nil {
		rec.setStream(false) // the convention: absent means not streamed
	}
	if t := a.number("gen_ai.response.time_to_first_chunk"); t.set && t.v > 0 && t.v < math.MaxInt32 {
		rec.setTTFT(time.Duration(t.v * 1e9))
		rec.setStream(true)
	}
	rec.answer = answer.text
}

// invocationStream looks for "stream" in OpenInference's copy of the request's parameters.
func invocationStream(a *attributes) *bool {
	var p struct {
		Stream flag `json:"stream"`
	}
	if raw := a.json("llm.invocation_parameters"); len(raw) == 0 || json.Unmarshal(raw, &p) != nil {
		return nil
	}
	return p.Stream.v
}

func (s *otlpSpan) outcome(rec *record, a *attributes) {
	failed := string(s.Status.Code) == "2" || string(s.Status.Code) == "STATUS_CODE_ERROR"
	settleOutcome(rec, httpCode(a.text("http.response.status_code")), a.text("error.type"), failed)
}

// spanTokens reads the usage; the conventions' input count includes the cached part. It returns false when a
// count is no count.
func spanTokens(rec *record, a *attributes, answer answerState) bool {
	return usage{
		in:        a.number("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "llm.usage.prompt_tokens"),
		out:       a.number("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion", "llm.usage.completion_tokens"),
		cached:    a.number("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"),
		reasoning: a.number("gen_ai.usage.reasoning.output_tokens", "llm.token_count.completion_details.reasoning"),
		source:    schemas.TokensProvider, emptyUnlessText: true,
	}.settle(rec, answer)
}

// nanosToTime reads unix nanoseconds, which come as a string or as a number.
func nanosToTime(l label) (t time.Time, ok bool) {
	ns, err := strconv.ParseInt(string(l), 10, 64)
	if err != nil || ns <= 0 {
		return time.Time{}, false
	}
	return time.Unix(0, ns).UTC(), true
}
