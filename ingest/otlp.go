package ingest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"tailgate/schemas"
)

// otlpTraces is an ExportTraceServiceRequest in OTLP's JSON encoding.
type otlpTraces struct {
	Resources []struct {
		Resource struct {
			Attributes []keyValue `json:"attributes"`
		} `json:"resource"`
		Scopes []struct {
			Spans []otlpSpan `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type otlpSpan struct {
	TraceID    text       `json:"traceId"`
	SpanID     text       `json:"spanId"`
	Parent     text       `json:"parentSpanId"`
	Name       text       `json:"name"`
	Start      label      `json:"startTimeUnixNano"`
	End        label      `json:"endTimeUnixNano"`
	Attributes []keyValue `json:"attributes"`
	Events     []struct {
		Name       text       `json:"name"`
		Attributes []keyValue `json:"attributes"`
	} `json:"events"`
	Status struct {
		Code label `json:"code"` // 2 or STATUS_CODE_ERROR = error
	} `json:"status"`
}

// genAIDetails is the event that carries the content attributes where the span does not.
const genAIDetails = "gen_ai.client.inference.operation.details"

// genAIOps maps gen_ai.operation.name to operations; every other one is not a generation.
var genAIOps = map[string]string{
	"chat": schemas.OpChat, "generate_content": schemas.OpChat, "text_completion": schemas.OpCompletion,
}

// decodeOTLP reads the spans of one export. Several layers of one call may report it: of nested generation
// spans only the outermost counts, and the engine's own span is skipped.
func decodeOTLP(raw []byte) []item {
	var t otlpTraces
	if err := json.Unmarshal(raw, &t); err != nil {
		return []item{{dead: DeadBadField, raw: raw}}
	}
	if t.Resources == nil {
		return []item{{dead: DeadLayout, raw: raw}}
	}
	generations := t.generations()
	var items []item
	for _, r := range t.Resources {
		resource := attributes{}
		resource.add(r.Resource.Attributes)
		for _, scope := range r.Scopes {
			for i := range scope.Spans {
				items = append(items, scope.Spans[i].item(resource, generations, raw))
			}
		}
	}
	if len(items) == 0 {
		return []item{{skip: SkipEmpty}}
	}
	return items
}

// generations lists the trace and span ids of the generation spans of one export.
func (t *otlpTraces) generations() map[string]bool {
	ids := map[string]bool{}
	for _, r := range t.Resources {
		for _, scope := range r.Scopes {
			for i := range scope.Spans {
				s := &scope.Spans[i]
				if genAIOps[string(s.attributes().text("gen_ai.operation.name"))] != "" {
					ids[string(s.TraceID)+":"+string(s.SpanID)] = true
				}
			}
		}
	}
	return ids
}

func (s *otlpSpan) attributes() attributes {
	a := attributes{}
	for i := range s.Events {
		if string(s.Events[i].Name) == genAIDetails {
			a.add(s.Events[i].Attributes)
		}
	}
	a.add(s.Attributes)
	return a
}

func (s *otlpSpan) item(resource attributes, generations map[string]bool, raw []byte) item {
	a := s.attributes()
	op := genAIOps[string(a.text("gen_ai.operation.name"))]
	switch {
	case op == "" && (string(s.Name) == "llm_request" || a["gen_ai.latency.e2e"] != nil):
		return item{skip: SkipEngineSpan}
	case op == "":
		return item{skip: SkipNotGeneration}
	case len(s.Parent) > 0 && generations[string(s.TraceID)+":"+string(s.Parent)]:
		return item{skip: SkipNested}
	}
	rec, reason := s.record(op, a, resource)
	if reason != "" {
		return item{dead: reason, raw: raw}
	}
	return item{rec: rec, raw: raw}
}

// record maps a generation span; reason is a dead letter's when it cannot.
func (s *otlpSpan) record(op string, a, resource attributes) (rec *record, reason string) {
	if len(s.Start) == 0 {
		return nil, DeadMissingTime
	}
	start, ok := nanosToTime(s.Start)
	if !ok {
		return nil, DeadBadTime
	}
	model, served := a.text("gen_ai.request.model"), a.text("gen_ai.response.model")
	rec = &record{
		arrived: start, resolutionUs: 1, op: op,
		session: a.text("gen_ai.conversation.id", "session.id"),
		tenant:  firstOf(a.text("tenant.id", "organization.id"), resource.text("tenant.id", "organization.id")),
		clock:   resource.text("service.instance.id", "k8s.pod.name", "host.name", "service.name"),
		model:   string(firstOf(model, served)),
		route:   a.text("http.route", "url.path"),
		stream:  a.flag("gen_ai.request.stream"),
	}
	if len(s.TraceID) > 0 && len(s.SpanID) > 0 {
		rec.requestID = bytes.Join([][]byte{s.TraceID, s.SpanID}, []byte{':'})
	}
	if rec.stream == nil {
		rec.stream = new(false) // the convention: absent means not streamed
	}
	rec.prompt.Model = string(firstOf(served, model))
	if end, ok := nanosToTime(s.End); ok && !end.Before(start) {
		rec.duration = new(end.Sub(start))
	}
	if t := a.number("gen_ai.response.time_to_first_chunk"); t.set && t.v > 0 && t.v < math.MaxInt32 {
		rec.ttft = new(time.Duration(t.v * 1e9))
		rec.stream = new(true)
	}
	if err := readGenAIPrompt(a, &rec.prompt); err != nil {
		rec.prompt.Clear()
		return nil, DeadBadField
	}
	judge(&rec.prompt)
	s.outcome(rec, a)
	if !spanTokens(rec, a) {
		rec.prompt.Clear()
		return nil, DeadBadTokens
	}
	return rec, ""
}

func (s *otlpSpan) outcome(rec *record, a attributes) {
	code := httpCode(a.text("http.response.status_code"))
	class := a.text("error.type")
	failed := string(s.Status.Code) == "2" || string(s.Status.Code) == "STATUS_CODE_ERROR" || len(class) > 0
	o := outcome{status: schemas.StatusOK, http: int32(code), reached: true}
	if failed || code >= 400 {
		if code == 0 {
			code = httpCode(class)
		}
		o = failure(code, class)
	}
	rec.status, rec.httpStatus, rec.reached = o.status, o.http, o.reached
}

// spanTokens reads the usage; the convention's input count includes the cached part. It returns false when a
// count is no count.
func spanTokens(rec *record, a attributes) bool {
	in, _, err1 := a.number("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens").tokens()
	out, outSet, err2 := a.number("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens").tokens()
	cached, cachedSet, err3 := a.number("gen_ai.usage.cache_read.input_tokens").tokens()
	reasoning, reasoningSet, err4 := a.number("gen_ai.usage.reasoning.output_tokens").tokens()
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return false
	}
	rec.in, rec.out, rec.cached, rec.reasoning = absent(), absent(), absent(), absent()
	if in > 0 {
		rec.in = counted(in, schemas.TokensProvider)
	}
	if out > 0 || outSet && rec.status == schemas.StatusOK && !holdsText(a.json("gen_ai.output.messages")) {
		rec.out = counted(out, schemas.TokensProvider)
	}
	if cachedSet && in > 0 {
		rec.cached = counted(cached, schemas.TokensProvider)
	}
	if reasoningSet && out > 0 {
		rec.reasoning = counted(reasoning, schemas.TokensProvider)
	}
	return true
}

// nanosToTime reads unix nanoseconds, which come as a string or as a number.
func nanosToTime(l label) (t time.Time, ok bool) {
	ns, err := strconv.ParseInt(string(l), 10, 64)
	if err != nil || ns <= 0 {
		return time.Time{}, false
	}
	return time.Unix(0, ns).UTC(), true
}
