package openai

import (
	"bytes"
	"strings"
)

// The events of /v1/responses carry their type in the data; the event line repeats it, and is not relied on.
// There is no [DONE]: response.completed, .incomplete or .failed ends an answer, and usage comes with it alone.

// Deltas that bear tokens, by what they are.
const (
	outputDelta    = 1
	reasoningDelta = 2
)

// deltaKind tells what the delta of an event type is; 0 = no token in it.
func deltaKind(kind []byte) int {
	rest, ok := bytes.CutPrefix(kind, []byte("response."))
	if !ok {
		return 0
	}
	rest, ok = bytes.CutSuffix(rest, []byte(".delta"))
	if !ok {
		return 0
	}
	switch string(rest) {
	case "output_text", "refusal", "function_call_arguments", "custom_tool_call_input", "mcp_call_arguments",
		"code_interpreter_call_code", "shell_call_command", "audio", "audio.transcript":
		return outputDelta
	case "reasoning_text", "reasoning_summary_text", "reasoning":
		return reasoningDelta
	}
	return 0
}

// readEvent reads an event of a responses stream.
func readEvent(data []byte) (chunk, error) {
	if c, ok := scanEvent(data); ok {
		return c, nil
	}
	return decodeEvent(data)
}

// scanEvent reads a delta in one pass, as scanChunk does; every other event is left to decodeEvent.
func scanEvent(data []byte) (chunk, bool) {
	s := scanner{b: data, c: emptyChunk()}
	kind, filled := 0, false
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			s.blank()
			raw, escaped, ok := s.str()
			kind = deltaKind(raw)
			return ok && !escaped && kind != 0 && s.once(&s.seenTop, 1)
		case "delta":
			s.blank()
			raw, _, ok := s.str()
			filled = len(raw) > 0
			return ok && s.once(&s.seenTop, 2)
		case "error", "response", "code", "message", "object":
			return false
		}
		return s.skip(0)
	})
	s.blank()
	if !ok || s.i != len(s.b) || s.seenTop != 3 {
		return s.c, false
	}
	s.c.addDelta(kind, filled)
	return s.c, true
}

func (c *chunk) addDelta(kind int, filled bool) {
	if !filled {
		return
	}
	c.choices = true
	c.output = c.output || kind == outputDelta
	c.reasoning = c.reasoning || kind == reasoningDelta
}

// decodeEvent reads any event by encoding/json. It is the measure of what scanEvent may say.
func decodeEvent(data []byte) (chunk, error) {
	c := emptyChunk()
	top, err := decodeObject(data)
	if err != nil {
		return c, err
	}
	kind, _ := top["type"].(string)
	switch {
	case deltaKind([]byte(kind)) != 0:
		c.addDelta(deltaKind([]byte(kind)), filled(top["delta"]))
	case kind == "response.output_item.added":
		c.addItemName(top["item"])
	case strings.HasSuffix(kind, ".done"):
		c.addRepeat(strings.TrimSuffix(kind, ".done")+".delta", top)
	case kind == "response.completed", kind == "response.incomplete", kind == "response.failed":
		response, _ := top["response"].(map[string]any)
		c.addResponse(response)
		c.last = true
		c.failed = c.failed || kind == "response.failed"
	case kind == "error":
		delete(top, "type") // of the event, not of the error
		c.addFault(top)
	}
	c.addError(top)
	return c, nil
}

// addItemName finds the name of a tool call: it comes with the item and in no delta.
func (c *chunk) addItemName(item any) {
	m, _ := item.(map[string]any)
	kind, _ := m["type"].(string)
	if strings.HasSuffix(kind, "_call") && filled(m["name"]) {
		c.addDelta(outputDelta, true)
	}
}

// addRepeat reads an event that repeats whole what deltas said, for servers that send none.
func (c *chunk) addRepeat(delta string, top map[string]any) {
	kind := deltaKind([]byte(delta))
	if kind == 0 {
		return
	}
	for _, name := range []string{"text", "arguments", "refusal", "input", "code"} {
		if filled(top[name]) {
			c.addDelta(kind, true)
			c.repeat = true
		}
	}
}

// addResponse reads a response object: a whole answer, or what a stream ends with.
func (c *chunk) addResponse(response map[string]any) {
	status, _ := response["status"].(string)
	details, _ := response["incomplete_details"].(map[string]any)
	reason, _ := details["reason"].(string)
	switch status {
	case "completed":
		c.finish = true
	case "incomplete": // the normal end of an answer that has all the tokens that it may have
		c.finish = true
		c.abort = isAbort(reason)
	case "cancelled":
		c.finish, c.abort = true, true
	case "failed":
		c.failed = true
	}
	c.addOutput(response)
	usage, _ := response["usage"].(map[string]any)
	c.prompt, c.completion = count(usage["input_tokens"]), count(usage["output_tokens"])
	details, _ = usage["input_tokens_details"].(map[string]any)
	c.cached = count(details["cached_tokens"])
	details, _ = usage["output_tokens_details"].(map[string]any)
	c.reasoned = count(details["reasoning_tokens"])
	if e, ok := response["error"].(map[string]any); ok && len(e) > 0 {
		c.addFault(e)
	}
}

// addOutput tells whether a whole answer holds output and reasoning. In a stream these were events before.
func (c *chunk) addOutput(response map[string]any) {
	items, _ := response["output"].([]any)
	for _, v := range items {
		item, _ := v.(map[string]any)
		kind, _ := item["type"].(string)
		parts, _ := item["content"].([]any)
		for _, v := range parts {
			p, _ := v.(map[string]any)
			if !filled(p["text"]) && !filled(p["refusal"]) {
				continue
			}
			c.output = c.output || kind != "reasoning"
			c.reasoning = c.reasoning || kind == "reasoning"
		}
		c.output = c.output || strings.HasSuffix(kind, "_call") && (filled(item["name"]) || filled(item["arguments"]))
	}
}

// decodeWhole reads an answer that was not streamed.
func decodeWhole(api string, data []byte) (chunk, error) {
	if api != APIResponses {
		return decodeChunk(data)
	}
	c := emptyChunk()
	top, err := decodeObject(data)
	if err != nil {
		return c, err
	}
	c.addResponse(top)
	c.addError(top)
	return c, nil
}
