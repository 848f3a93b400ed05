package ingest

import (
	"bytes"
	"encoding/json"
)

// litellmAnswer is what the decoder wants to know of a response: its usage, and whether it holds text.
type litellmAnswer struct {
	Usage   *litellmUsage `json:"usage"`
	Choices []struct {
		Message struct {
			Content   json.RawMessage `json:"content"`
			Reasoning json.RawMessage `json:"reasoning_content"`
			ToolCalls json.RawMessage `json:"tool_calls"`
		} `json:"message"`
		Text json.RawMessage `json:"text"`
	} `json:"choices"`
	Output json.RawMessage `json:"output"` // responses API

	known   bool // the response was logged
	hasText bool
}

// readLiteLLMResponse reads a response leniently: an odd one only means that nothing is known of it.
func readLiteLLMResponse(raw json.RawMessage) litellmAnswer {
	var a litellmAnswer
	if !present(raw) {
		return a
	}
	if isString(raw) {
		return readTextResponse(raw)
	}
	if json.Unmarshal(raw, &a) != nil {
		return litellmAnswer{}
	}
	a.known = len(a.Choices) > 0 || present(a.Output)
	a.hasText = holdsText(a.Output)
	for i := range a.Choices {
		c := &a.Choices[i]
		a.hasText = a.hasText || holdsText(c.Message.Content) || holdsText(c.Message.Reasoning) ||
			holdsText(c.Message.ToolCalls) || holdsText(c.Text)
	}
	return a
}

// readTextResponse reads a response that is a string, raw.
func readTextResponse(raw json.RawMessage) (a litellmAnswer) {
	a.hasText = len(raw) > len(`""`)
	a.known = a.hasText && damageOf(raw) == ""
	return a
}

// holdsText tells whether raw is a value that is not null, "", [] or {}.
func holdsText(raw json.RawMessage) bool {
	return present(raw) && len(bytes.Trim(raw, "\"[]{} \n\t\r")) > 0
}

// litellmParameters are the request's optional parameters.
type litellmParameters struct {
	Stream    flag            `json:"stream"`
	Tools     json.RawMessage `json:"tools"`
	Functions json.RawMessage `json:"functions"`
	CacheSalt text            `json:"cache_salt"`

	known bool
}

func readLiteLLMParameters(raw json.RawMessage) (litellmParameters, error) {
	var p litellmParameters
	if len(raw) == 0 || raw[0] != '{' {
		return p, nil
	}
	p.known = true
	return p, json.Unmarshal(raw, &p)
}

func (p *litellmParameters) tools() json.RawMessage {
	if present(p.Tools) {
		return p.Tools
	}
	return p.Functions
}

// litellmStream tells whether the request streamed. LiteLLM writes null for "no" and for aborted streams; the
// request's own parameters tell them apart.
func litellmStream(logged flag, p *litellmParameters) (streamed, known bool) {
	if logged.v != nil {
		return *logged.v, true
	}
	return p.Stream.is(), p.known
}

// litellmTags reads request_tags: a list of strings, or the same as JSON in a string.
func litellmTags(raw json.RawMessage) [][]byte {
	var list []text
	if isString(raw) {
		var inner text
		if json.Unmarshal(raw, &inner) != nil {
			return nil
		}
		raw = json.RawMessage(inner)
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	tags := make([][]byte, len(list))
	for i, t := range list {
		tags[i] = t
	}
	return tags
}
