package samplelogs

import (
	"encoding/json"
	"strconv"
	"time"
)

// The exporter sends spans in batches: up to a drawn size, or what is there after a while.
const (
	maxBatch   = 5
	batchDelay = 2 * time.Second
)

// spanBatch holds the spans that wait for the next export.
type spanBatch struct {
	spans  []span
	want   int // size at which it goes
	number int // of the batch, so that a late timer finds out that it is not meant
}

type span struct {
	TraceID    string     `json:"traceId"`
	SpanID     string     `json:"spanId"`
	Parent     string     `json:"parentSpanId,omitempty"`
	Name       string     `json:"name"`
	Kind       int        `json:"kind"`
	Start      string     `json:"startTimeUnixNano"`
	End        string     `json:"endTimeUnixNano"`
	Attributes []keyValue `json:"attributes"`
	Status     spanStatus `json:"status"`
}

type spanStatus struct {
	Code int `json:"code,omitempty"`
}

type keyValue struct {
	Key   string   `json:"key"`
	Value anyValue `json:"value"`
}

// anyValue is OTLP's: one field is set, integers are strings.
type anyValue struct {
	String *string      `json:"stringValue,omitempty"`
	Bool   *bool        `json:"boolValue,omitempty"`
	Int    string       `json:"intValue,omitempty"`
	Double *float64     `json:"doubleValue,omitempty"`
	Array  *arrayValues `json:"arrayValue,omitempty"`
}

type arrayValues struct {
	Values []anyValue `json:"values"`
}

func str(key, v string) keyValue { return keyValue{key, anyValue{String: &v}} }

func integer(key string, v int) keyValue { return keyValue{key, anyValue{Int: strconv.Itoa(v)}} }

// addSpan queues a span that ended at at.
func (s *sim) addSpan(sp span, at time.Duration) error {
	b := &s.batch
	if len(b.spans) == 0 {
		b.want = 1 + s.r.IntN(maxBatch)
		b.number++
		number := b.number
		s.schedule(at+batchDelay, func(at time.Duration) error {
			if b.number != number {
				return nil
			}
			return s.export(at)
		})
	}
	b.spans = append(b.spans, sp)
	if len(b.spans) < b.want {
		return nil
	}
	return s.export(at)
}

// export sends the waiting spans as one message.
func (s *sim) export(at time.Duration) error {
	spans := s.batch.spans
	if len(spans) == 0 {
		return nil
	}
	s.batch.spans = nil
	type scopeSpans struct {
		Scope map[string]string `json:"scope"`
		Spans []span            `json:"spans"`
	}
	type resourceSpans struct {
		Resource map[string][]keyValue `json:"resource"`
		Scopes   []scopeSpans          `json:"scopeSpans"`
	}
	value, err := encode(map[string][]resourceSpans{"resourceSpans": {{
		Resource: map[string][]keyValue{"attributes": {str("service.name", "ai-gateway"), str("k8s.pod.name", "gw-fict-0")}},
		Scopes:   []scopeSpans{{map[string]string{"name": "fict.genai", "version": "1"}, spans}},
	}}})
	if err != nil {
		return err
	}
	return s.deliver(TopicOTLP, spans[0].TraceID, value, at)
}

// logTool adds the span of the tool that ran between two turns; it is not a generation.
func (s *sim) logTool(q *request, from, to time.Duration) error {
	return s.addSpan(span{
		TraceID: q.traceID, SpanID: hexID(q.r, 8), Parent: q.spanID, Name: "execute_tool " + q.answer.calls[0].name, Kind: 1,
		Start: nanos(s.o.Start.Add(from)), End: nanos(s.o.Start.Add(to)),
		Attributes: []keyValue{str("gen_ai.operation.name", "execute_tool"), str("gen_ai.tool.name", q.answer.calls[0].name)},
	}, to)
}

// genAIMessage is a message of gen_ai.input.messages.
type genAIMessage struct {
	Role  string      `json:"role"`
	Parts []genAIPart `json:"parts"`
}

type genAIPart struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  string          `json:"response,omitempty"`
	Modality  string          `json:"modality,omitempty"`
	URI       string          `json:"uri,omitempty"`
}

func genAI(m *message) genAIMessage {
	out := genAIMessage{Role: m.role}
	switch {
	case m.callID != "":
		out.Parts = []genAIPart{{Type: "tool_call_response", ID: m.callID, Response: m.content}}
	case len(m.calls) > 0:
		for _, c := range m.calls {
			out.Parts = append(out.Parts, genAIPart{Type: "tool_call", ID: c.id, Name: c.name, Arguments: json.RawMessage(c.args)})
		}
	default:
		out.Parts = []genAIPart{{Type: "text", Content: m.content}}
	}
	if m.image {
		out.Parts = append(out.Parts, genAIPart{Type: "uri", Modality: "image", URI: "https://pictures.invalid/1.png"})
	}
	return out
}

// requestSpan is the client span of q.
func requestSpan(start time.Time, q *request) (span, error) {
	arrived := start.Add(q.arrived)
	sp := span{TraceID: q.traceID, SpanID: q.spanID, Name: "chat " + q.t.model.name, Kind: 3,
		Start: nanos(arrived), End: nanos(arrived.Add(q.duration))}
	sp.Attributes = []keyValue{
		str("gen_ai.operation.name", "chat"), str("gen_ai.provider.name", "openai"), str("gen_ai.request.model", q.t.model.name),
		str("gen_ai.conversation.id", q.id), str("tenant.id", q.t.name), str("enduser.id", q.user),
		{"gen_ai.request.stream", anyValue{Bool: &q.stream}}, integer("gen_ai.request.max_tokens", 2048),
	}
	sp.setOutcome(q)
	return sp, sp.addContent(q)
}

func (sp *span) setOutcome(q *request) {
	add := func(kv ...keyValue) { sp.Attributes = append(sp.Attributes, kv...) }
	if q.fail != nil {
		sp.Status.Code = 2
		add(str("error.type", q.fail.errorType), integer("http.response.status_code", q.fail.code))
		return
	}
	reason := q.finishReason()
	add(str("gen_ai.response.model", q.t.model.name), str("gen_ai.response.id", "chatcmpl-"+q.spanID),
		keyValue{"gen_ai.response.finish_reasons", anyValue{Array: &arrayValues{[]anyValue{{String: &reason}}}}},
		integer("gen_ai.usage.input_tokens", q.in), integer("gen_ai.usage.output_tokens", q.out),
		integer("gen_ai.usage.cache_read.input_tokens", q.cached))
	if q.stream {
		ttft := q.ttft.Seconds()
		add(keyValue{"gen_ai.response.time_to_first_chunk", anyValue{Double: &ttft}})
	}
}

// addContent adds the texts, which the convention makes JSON in a string.
func (sp *span) addContent(q *request) error {
	add := func(key string, v any) error {
		text, err := encode(v)
		sp.Attributes = append(sp.Attributes, str(key, string(text)))
		return err
	}
	messages := make([]genAIMessage, len(q.messages)-1)
	for i := range messages {
		messages[i] = genAI(&q.messages[i+1])
	}
	err := add("gen_ai.system_instructions", genAI(&q.messages[0]).Parts)
	if err == nil {
		err = add("gen_ai.input.messages", messages)
	}
	if tools := q.tools(); err == nil && len(tools) > 0 {
		type definition struct {
			Type string `json:"type"`
			toolDefinition
		}
		var list []definition
		for _, t := range tools {
			list = append(list, definition{"function", toolDefinition{t.name, t.description, json.RawMessage(t.parameters)}})
		}
		err = add("gen_ai.tool.definitions", list)
	}
	if err == nil && q.fail == nil {
		err = add("gen_ai.output.messages", []genAIMessage{genAI(&q.answer)})
	}
	return err
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
