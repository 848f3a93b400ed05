package refresh_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/rng"
)

// litellmRecord is a call as LiteLLM logs it: a StandardLoggingPayload. The second version has numbers as text, the
// prompt as content parts, usage in another place, and fields that nobody knows yet.
func litellmRecord(calls []*call) []byte {
	c := calls[0]
	var messages strings.Builder
	say := func(role, text string) {
		if messages.Len() > 0 {
			messages.WriteByte(',')
		}
		content := strconv.Quote(text)
		if c.version == 2 {
			content = `[{"type":"text","text":` + content + `}]`
		}
		fmt.Fprintf(&messages, `{"role":%q,"content":%s}`, role, content)
	}
	for _, m := range c.prompt() {
		say(m[0], m[1])
	}
	tokens, out, stream, failed := c.answer()
	unix := func(t time.Time) string {
		s := strconv.FormatFloat(float64(t.UnixMicro())/1e6, 'f', 6, 64)
		if c.version == 2 {
			return strconv.Quote(s)
		}
		return s
	}
	count := func(n int) string {
		if c.version == 2 {
			return strconv.Quote(strconv.Itoa(n))
		}
		return strconv.Itoa(n)
	}
	status, text := "success", ""
	if failed {
		status, text = "failure", `"error_information":{"error_code":"503","error_class":"ServiceUnavailableError"},`
	}
	if c.version == 2 {
		text += `"cost_breakdown":{"input":0.1},"schema_version":2,"guardrails":[{"name":"none"}],`
	}
	id := fmt.Sprintf("%s-%d", c.session, c.turn)
	return fmt.Appendf(nil, `{"id":%q,"litellm_call_id":%q,"session_id":%q,"call_type":"acompletion","stream":%v,"status":%q,%s"startTime":%s,"endTime":%s,"completionStartTime":%s,`+
		`"model":"hosted_vllm/pelican","model_group":"pelican","prompt_tokens":%s,"completion_tokens":%s,"total_tokens":%s,"metadata":{"user_api_key_team_id":"team-%d","user_api_key_hash":"k%d"},"messages":[%s]}`,
		id, "call-"+id, c.session, stream, status, text, unix(c.at), unix(c.at.Add(c.duration)), unix(c.at.Add(c.duration/4)),
		count(tokens), count(out), count(tokens+out), c.tenant, c.tenant, messages.String())
}

// otlpRecord is an export of OpenTelemetry spans of the GenAI conventions, with the engine's own span beside each, which is
// no request. The second version has the names of later conventions, the prompt as structured values in an event, plain
// numbers for times, and attributes that nobody knows yet.
func otlpRecord(calls []*call) []byte {
	spans := make([]string, 0, 2*len(calls))
	v2 := calls[0].version == 2
	for _, c := range calls {
		in, out, stream, failed := c.answer()
		id := rng.Hash(uint64(c.at.UnixMicro()), uint64(c.turn), uint64(len(c.session)))
		for _, b := range []byte(c.session) {
			id = rng.Hash(id, uint64(b))
		}
		attributes, event, status := []string{otlpText("gen_ai.operation.name", "chat"), otlpText("gen_ai.request.model", "pelican"),
			otlpText("gen_ai.response.model", "pelican"), otlpText("tenant.id", fmt.Sprint("team-", c.tenant)),
			fmt.Sprintf(`{"key":"gen_ai.request.stream","value":{"boolValue":%v}}`, stream)}, "", "{}"
		if failed {
			attributes, status = append(attributes, otlpInt("http.response.status_code", 503), otlpText("error.type", "503")), `{"code":2}`
		} else if stream {
			attributes = append(attributes, fmt.Sprintf(`{"key":"gen_ai.response.time_to_first_chunk","value":{"doubleValue":%g}}`, c.duration.Seconds()/4))
		}
		nanos := func(t time.Time) string { return strconv.Quote(strconv.FormatInt(t.UnixNano(), 10)) }
		if v2 {
			nanos = func(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
			attributes = append(attributes, otlpText("gen_ai.conversation.id", c.session), otlpInt("gen_ai.usage.input_tokens", in),
				otlpInt("gen_ai.usage.output_tokens", out), otlpInt("gen_ai.request.choice.count", 1), otlpText("gen_ai.guardrail.name", "none"))
			event = fmt.Sprintf(`{"timeUnixNano":%s,"name":"gen_ai.client.inference.operation.details","attributes":[{"key":"gen_ai.input.messages","value":%s}]}`,
				nanos(c.at), otlpMessages(c.prompt()))
		} else {
			attributes = append(attributes, otlpText("session.id", c.session), otlpInt("gen_ai.usage.prompt_tokens", in),
				otlpInt("gen_ai.usage.completion_tokens", out), otlpText("gen_ai.system", "openai"), otlpText("gen_ai.input.messages", jsonMessages(c.prompt())))
		}
		end := c.at.Add(c.duration)
		spans = append(spans,
			fmt.Sprintf(`{"traceId":"%016x%016x","spanId":"%016x","name":"chat pelican","kind":3,"startTimeUnixNano":%s,"endTimeUnixNano":%s,"attributes":[%s],"events":[%s],"status":%s}`,
				id, id+1, id+2, nanos(c.at), nanos(end), strings.Join(attributes, ","), event, status),
			fmt.Sprintf(`{"traceId":"%016x%016x","spanId":"%016x","parentSpanId":"%016x","name":"llm_request","kind":2,"startTimeUnixNano":%s,"endTimeUnixNano":%s,"attributes":[%s],"status":{}}`,
				id, id+1, id+3, id+2, nanos(c.at), nanos(end), otlpText("gen_ai.response.model", "pelican")))
	}
	return fmt.Appendf(nil, `{"resourceSpans":[{"resource":{"attributes":[%s,%s]},"scopeSpans":[{"scope":{"name":"night"},"spans":[%s]}]}]}`,
		otlpText("service.name", "ai-gateway"), otlpText("k8s.pod.name", "gw-0"), strings.Join(spans, ","))
}

func otlpText(key, value string) string {
	return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%s}}`, key, strconv.Quote(value))
}

func otlpInt(key string, value int) string {
	return fmt.Sprintf(`{"key":%q,"value":{"intValue":"%d"}}`, key, value)
}

// jsonMessages is a prompt as the JSON text that the conventions allow for an attribute.
func jsonMessages(prompt [][2]string) string {
	var list []string
	for _, m := range prompt {
		list = append(list, fmt.Sprintf(`{"role":%q,"parts":[{"type":"text","content":%s}]}`, m[0], strconv.Quote(m[1])))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// otlpMessages is a prompt as a structured value.
func otlpMessages(prompt [][2]string) string {
	var list []string
	for _, m := range prompt {
		part := fmt.Sprintf(`{"kvlistValue":{"values":[%s,%s]}}`, otlpText("type", "text"), otlpText("content", m[1]))
		list = append(list, fmt.Sprintf(`{"kvlistValue":{"values":[%s,{"key":"parts","value":{"arrayValue":{"values":[%s]}}}]}}`, otlpText("role", m[0]), part))
	}
	return `{"arrayValue":{"values":[` + strings.Join(list, ",") + `]}}`
}
