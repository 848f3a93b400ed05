package ingest

import (
	"bytes"
	"encoding/json"

	"tailgate/internal/jsonscan"
	"tailgate/prompt"
)

// requestBody is the body of a request to any of the usual APIs: OpenAI's chat, completions and responses,
// Anthropic's messages, Bedrock's Converse. Its raw values point into the record, or into inner.
type requestBody struct {
	Model, CacheSalt text
	Stream           flag

	Messages, Prompt, Input     json.RawMessage
	System, Instructions        json.RawMessage // Anthropic and Bedrock; responses
	Tools, Functions, ToolsSpec json.RawMessage // ToolsSpec is Bedrock's

	inner []byte // the body where it came as a string
}

// Slots of a request body's fields.
const (
	bodyModel = iota
	bodyCacheSalt
	bodyStream
	bodyMessages
	bodyPrompt
	bodyInput
	bodySystem
	bodyInstructions
	bodyTools
	bodyFunctions
	bodyToolsSpec
	bodySlots
)

var bodyPaths = func() *pathTree {
	t := &pathTree{}
	for slot, key := range []string{
		bodyModel: "model", bodyCacheSalt: "cache_salt", bodyStream: "stream", bodyMessages: "messages", bodyPrompt: "prompt",
		bodyInput: "input", bodySystem: "system", bodyInstructions: "instructions", bodyTools: "tools", bodyFunctions: "functions",
	} {
		t.add([]step{{key: key}}, slot)
	}
	t.add([]step{{key: "toolConfig"}, {key: "tools"}}, bodyToolsSpec)
	return t
}()

// requestBody reads a valid JSON object, or one in a string.
func (r *reader) requestBody(raw json.RawMessage) (requestBody, error) {
	if !isString(raw) {
		return r.requestObject(raw, nil)
	}
	inner := r.unquoted(raw)
	raw = json.RawMessage(trimJSON(inner))
	if len(raw) > 0 && !jsonscan.Valid(raw) || heavy(raw) {
		return requestBody{inner: inner}, errValue
	}
	return r.requestObject(raw, inner)
}

// requestObject reads a valid JSON value that lies in inner, where it came in a string.
func (r *reader) requestObject(raw json.RawMessage, inner []byte) (requestBody, error) {
	switch {
	case !present(raw):
		return requestBody{inner: inner}, nil
	case raw[0] != '{' || inner != nil && heavy(raw):
		return requestBody{inner: inner}, errValue
	}
	if r.body(raw, inner) {
		return r.asked, nil
	}
	return exactRequest(r, raw, inner)
}

// exactRequest is requestObject for an object that may be odd.
func exactRequest(r *reader, raw json.RawMessage, inner []byte) (requestBody, error) {
	b := requestBody{inner: inner}
	var slots [bodySlots]json.RawMessage
	bodyPaths.walk(r, raw, &capture{values: slots[:]})
	for i := range slots {
		if !present(slots[i]) {
			slots[i] = nil
		}
	}
	b.Messages, b.Prompt, b.Input = slots[bodyMessages], slots[bodyPrompt], slots[bodyInput]
	b.System, b.Instructions = slots[bodySystem], slots[bodyInstructions]
	b.Tools, b.Functions, b.ToolsSpec = slots[bodyTools], slots[bodyFunctions], slots[bodyToolsSpec]
	for _, f := range [...]struct {
		slot int
		to   json.Unmarshaler
	}{{bodyModel, &b.Model}, {bodyCacheSalt, &b.CacheSalt}, {bodyStream, &b.Stream}} {
		if slots[f.slot] == nil {
			continue
		}
		if err := f.to.UnmarshalJSON(slots[f.slot]); err != nil {
			return b, err
		}
	}
	return b, nil
}

// appendTo adds the body's prompt to p: system text, then the messages, then the tools. The raw values are not
// to be read any more.
func (b *requestBody) appendTo(r *reader, p *prompt.Prompt) error {
	defer clear(b.inner)
	for _, raw := range []json.RawMessage{b.System, b.Instructions} {
		if err := readSystem(r, raw, p); err != nil {
			return err
		}
	}
	for _, raw := range []json.RawMessage{b.Messages, b.Prompt, b.Input} {
		if present(raw) {
			if err := r.prompt(raw, p); err != nil {
				return err
			}
			break
		}
	}
	for _, raw := range []json.RawMessage{b.Tools, b.ToolsSpec, b.Functions} {
		if present(raw) {
			return r.toolList(raw, p)
		}
	}
	return nil
}

// readSystem adds a system text, or a list of its parts, as a leading message.
func readSystem(r *reader, raw json.RawMessage, p *prompt.Prompt) error {
	if !holdsText(raw) {
		return nil
	}
	parts, err := r.partList(raw)
	p.Messages = append(p.Messages, prompt.Message{Role: "system", Parts: parts})
	return err
}

// responseBody is what a decoder wants to know of an answer of any of the usual APIs.
type responseBody struct {
	Model   text          `json:"model"`
	Usage   responseUsage `json:"usage"`
	Choices []struct {
		Message openAIMessage   `json:"message"`
		Delta   openAIMessage   `json:"delta"`
		Text    json.RawMessage `json:"text"`
	} `json:"choices"`
	Content json.RawMessage `json:"content"` // Anthropic
	Output  json.RawMessage `json:"output"`  // responses: a list of items; Bedrock: {message}
	Error   json.RawMessage `json:"error"`
}

// responseUsage knows the counts by all their names. Names that leave the cache out come with their own
// cache counts.
type responseUsage struct {
	Prompt        number `json:"prompt_tokens"`
	Completion    number `json:"completion_tokens"`
	Input         number `json:"input_tokens"`
	Output        number `json:"output_tokens"`
	CacheRead     number `json:"cache_read_input_tokens"`     // Anthropic
	CacheCreation number `json:"cache_creation_input_tokens"` // Anthropic
	PromptDetails struct {
		Cached number `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputDetails struct {
		Cached number `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	CompletionDetails struct {
		Reasoning number `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	OutputDetails struct {
		Reasoning number `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// counts returns the usage. Anthropic's input count leaves the cache out, which its cache counts give away.
func (u *responseUsage) counts(source string) usage {
	return usage{
		in: firstNumber(u.Prompt, u.Input), out: firstNumber(u.Completion, u.Output),
		cached:     firstNumber(u.PromptDetails.Cached, u.InputDetails.Cached, u.CacheRead),
		cacheWrite: u.CacheCreation,
		reasoning:  firstNumber(u.CompletionDetails.Reasoning, u.OutputDetails.Reasoning),
		source:     source, excludesCache: !u.Prompt.set && u.CacheRead.set,
	}
}

// responseBody reads an answer leniently: of an odd one nothing is known. A string is the answer's text, or JSON in
// a string.
func (r *reader) responseBody(raw json.RawMessage) (b responseBody, answer answerState) {
	if isString(raw) {
		inner := r.unquoted(raw)
		defer clear(inner)
		trimmed := bytes.TrimSpace(inner)
		if len(trimmed) == 0 || trimmed[0] != '{' || !jsonscan.Valid(trimmed) {
			return b, r.answer(&prompt.Prompt{Messages: []prompt.Message{plainMessage(inner)}})
		}
		raw = json.RawMessage(trimmed)
	}
	if len(raw) == 0 || raw[0] != '{' || heavy(raw) {
		return b, answer
	}
	if answer, ok := r.answerBody(raw); ok {
		return r.answers, answer
	}
	return exactResponse(raw)
}

// exactResponse is responseBody for an object that may be odd.
func exactResponse(raw json.RawMessage) (responseBody, answerState) {
	var b responseBody
	if json.Unmarshal(raw, &b) != nil {
		return responseBody{}, answerState{}
	}
	return b, b.answer()
}

func (b *responseBody) answer() answerState {
	var p prompt.Prompt
	defer p.Clear()
	known := len(b.Choices) > 0
	for i := range b.Choices {
		c := &b.Choices[i]
		for _, m := range []*openAIMessage{&c.Message, &c.Delta, {Content: c.Text}} {
			if present(m.Content) || len(m.ToolCalls) > 0 {
				if appendOpenAIMessage(m, &p) != nil {
					return answerState{}
				}
			}
		}
	}
	for _, raw := range []json.RawMessage{b.Content, b.Output} {
		switch {
		case !present(raw):
			continue
		case raw[0] == '{':
			p.Messages = append(p.Messages, plainMessage(bytes.Clone(raw)))
		default:
			parts, err := openAIParts(raw)
			if err != nil {
				return answerState{}
			}
			p.Messages = append(p.Messages, prompt.Message{Parts: parts})
		}
		known = true
	}
	if !known {
		return answerState{}
	}
	return answerOf(&p)
}
