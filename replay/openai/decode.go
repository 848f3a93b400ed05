package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

var errBadJSON = errors.New("not a JSON object")

// decodeChunk reads any event or whole answer by encoding/json. It is the measure of what scanChunk may say.
// Members of an unexpected type count as absent.
func decodeChunk(data []byte) (chunk, error) {
	c := emptyChunk()
	top, err := decodeObject(data)
	if err != nil {
		return c, err
	}
	list, _ := top["choices"].([]any)
	for _, v := range list {
		c.choices = true
		choice, _ := v.(map[string]any)
		c.addChoice(choice)
	}
	usage, _ := top["usage"].(map[string]any)
	c.addUsage(usage)
	if metrics, ok := top["metrics"].(map[string]any); ok {
		c.queueMs, c.prefillMs = millis(metrics["queue_time_ms"]), millis(metrics["time_to_first_token_ms"])
	}
	if timings, ok := top["timings"].(map[string]any); ok { // llama.cpp
		c.prefillMs = millis(timings["prompt_ms"])
		if c.cached < 0 {
			c.cached = count(timings["cache_n"])
		}
	}
	c.addError(top)
	return c, nil
}

// decodeObject reads data, which must be one JSON object.
func decodeObject(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var top map[string]any
	if err := d.Decode(&top); err != nil || top == nil {
		return nil, errBadJSON
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errBadJSON
	}
	return top, nil
}

func (c *chunk) addChoice(choice map[string]any) {
	c.output = c.output || filled(choice["text"])
	if reason, ok := choice["finish_reason"].(string); ok && reason != "" {
		c.finish = true
		c.abort = c.abort || isAbort(reason)
	}
	if ids, ok := choice["token_ids"].([]any); ok {
		c.tokenIDs = max(c.tokenIDs, 0) + len(ids)
	}
	for _, name := range []string{"delta", "message"} {
		delta, _ := choice[name].(map[string]any)
		c.output = c.output || filled(delta["content"]) || called(delta["function_call"])
		c.reasoning = c.reasoning || filled(delta["reasoning_content"]) || filled(delta["reasoning"])
		calls, _ := delta["tool_calls"].([]any)
		for _, v := range calls {
			call, _ := v.(map[string]any)
			c.output = c.output || called(call["function"])
		}
	}
}

func (c *chunk) addUsage(usage map[string]any) {
	c.prompt, c.completion = count(usage["prompt_tokens"]), count(usage["completion_tokens"])
	details, _ := usage["prompt_tokens_details"].(map[string]any)
	c.cached = count(details["cached_tokens"])
	details, _ = usage["completion_tokens_details"].(map[string]any)
	c.reasoned = count(details["reasoning_tokens"])
	if c.reasoned < 0 {
		c.reasoned = count(usage["reasoning_tokens"])
	}
}

// addError finds an error in all the places where engines put one: a member error that is neither null nor
// empty, or a flat body (object "error", or message and code without choices).
func (c *chunk) addError(top map[string]any) {
	switch e := top["error"].(type) {
	case map[string]any:
		if len(e) > 0 {
			c.addFault(e)
		}
	case string:
		if e != "" {
			c.addFault(map[string]any{"message": e, "code": top["code"]})
		}
	case []any:
		c.failed = c.failed || len(e) > 0
	case bool:
		c.failed = c.failed || e
	case json.Number:
		if e != "0" {
			c.addFault(map[string]any{"code": e})
		}
	}
	_, message := top["message"].(string)
	_, choices := top["choices"]
	flat := top["object"] == "error" || message && top["code"] != nil && !choices
	if flat && !c.failed {
		c.addFault(top)
	}
}

// addFault reads an error object: code, http_status_code or the name in code or type, and the message for what
// no code tells.
func (c *chunk) addFault(e map[string]any) {
	c.failed = true
	for _, name := range []string{"code", "http_status_code", "type"} {
		if c.code == 0 {
			c.code = code(e[name])
		}
	}
	message, _ := e["message"].(string)
	kind, _ := e["code"].(string)
	c.tooLong = saysTooLong(message) || saysTooLong(kind)
}

// filled tells a non-empty string.
func filled(v any) bool {
	s, ok := v.(string)
	return ok && s != ""
}

// called tells a function with a name or arguments.
func called(v any) bool {
	f, ok := v.(map[string]any)
	return ok && (filled(f["name"]) || filled(f["arguments"]))
}

// count reads a token count; -1 = none.
func count(v any) int32 {
	n, ok := v.(json.Number)
	if !ok {
		return -1
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return -1
	}
	return int32(f)
}

// millis reads a non-negative time; -1 = none.
func millis(v any) float64 {
	n, ok := v.(json.Number)
	if !ok {
		return -1
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > 1e12 {
		return -1
	}
	return f
}

// code reads an error code that is a number, a string of digits, or the name of an overload; 0 = none.
func code(v any) int {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	}
	switch strings.ToLower(strings.ReplaceAll(text, " ", "_")) {
	case "rate_limit_exceeded", "ratelimiterror", "rate_limit_error":
		return http.StatusTooManyRequests
	case "service_unavailable", "overloaded", "server_is_overloaded":
		return http.StatusServiceUnavailable
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
