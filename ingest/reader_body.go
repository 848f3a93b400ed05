package ingest

import (
	"encoding/json"

	"tailgate/internal/jsonscan"
	"tailgate/prompt"
)

// The members that requestBody, responseBody and responseUsage have. TestReaderKnowsEveryMember holds them together.
var (
	bodyMembers = jsonscan.NewFields("model", "cache_salt", "stream", "messages", "prompt", "input", "system",
		"instructions", "tools", "functions", "toolConfig")
	toolConfigMembers = jsonscan.NewFields("tools")
	responseMembers   = jsonscan.NewFields("model", "usage", "choices", "content", "output", "error")
	choicesMembers    = jsonscan.NewFields("message", "delta", "text")
	countMembers      = jsonscan.NewFields("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens",
		"cache_read_input_tokens", "cache_creation_input_tokens", "prompt_tokens_details", "input_tokens_details",
		"completion_tokens_details", "output_tokens_details")
)

// prompt reads what readOpenAIPrompt reads.
func (r *reader) prompt(raw json.RawMessage, p *prompt.Prompt) error {
	if !present(raw) || r.try(raw, p, (*reader).messages) {
		return nil
	}
	return readOpenAIPrompt(raw, p)
}

// toolList reads what readOpenAITools reads.
func (r *reader) toolList(raw json.RawMessage, p *prompt.Prompt) error {
	if !present(raw) || r.try(raw, p, func(r *reader, p *prompt.Prompt) { r.tools(p) }) {
		return nil
	}
	return readOpenAITools(raw, p)
}

// partList reads what openAIParts reads.
func (r *reader) partList(raw json.RawMessage) (list []prompt.Part, err error) {
	if !present(raw) {
		return nil, nil
	}
	start := len(r.parts)
	if r.try(raw, &r.said, func(r *reader, _ *prompt.Prompt) { r.content() }) {
		return r.parts[start:len(r.parts):len(r.parts)], nil
	}
	return openAIParts(raw)
}

// body reads the fields of a request's body, an object that lies in inner, into r.asked; false if it is odd.
func (r *reader) body(raw json.RawMessage, inner []byte) bool {
	r.asked = requestBody{inner: inner}
	return r.try(raw, &r.said, func(r *reader, _ *prompt.Prompt) { r.bodyFields(&r.asked) })
}

func (r *reader) bodyFields(b *requestBody) {
	s := &r.scan
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(bodyMembers, &seen) {
		case "model":
			b.Model = r.text()
		case "cache_salt":
			b.CacheSalt = r.text()
		case "stream":
			b.Stream = r.aloud()
		case "messages":
			b.Messages = r.unlessNull()
		case "prompt":
			b.Prompt = r.unlessNull()
		case "input":
			b.Input = r.unlessNull()
		case "system":
			b.System = r.unlessNull()
		case "instructions":
			b.Instructions = r.unlessNull()
		case "tools":
			b.Tools = r.unlessNull()
		case "functions":
			b.Functions = r.unlessNull()
		case "toolConfig":
			b.ToolsSpec = r.toolConfig()
		default:
			s.Skip()
		}
	}
}

// unlessNull returns a value where it stands, nil for null.
func (r *reader) unlessNull() json.RawMessage {
	if r.scan.Null() {
		return nil
	}
	return r.scan.Raw()
}

func (r *reader) toolConfig() (tools json.RawMessage) {
	r.lone(toolConfigMembers, func() { tools = r.unlessNull() })
	return tools
}

// loggedError stands for any error that an answer's body holds.
var loggedError = json.RawMessage(`{}`)

// answerBody reads what exactResponse reads, into r.answers; false if it is odd. Texts are copied.
func (r *reader) answerBody(raw json.RawMessage) (answer answerState, ok bool) {
	r.said.Clear()
	r.answers = responseBody{}
	var known bool
	ok = r.try(raw, &r.said, func(r *reader, p *prompt.Prompt) { known = r.answerFields(&r.answers, p) })
	if ok && known {
		answer = r.answer(&r.said)
	}
	r.said.Clear()
	return answer, ok
}

// answerFields reads the body, and what the answer says into p; known tells whether it has one.
func (r *reader) answerFields(b *responseBody, p *prompt.Prompt) (known bool) {
	s := &r.scan
	var choices, content, output json.RawMessage
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(responseMembers, &seen) {
		case "model":
			b.Model = r.text()
		case "usage":
			r.counts(&b.Usage)
		case "choices":
			choices = r.unlessNull()
		case "content":
			content = r.unlessNull()
		case "output":
			output = r.unlessNull()
		case "error":
			if r.unlessNull() != nil {
				b.Error = loggedError
			}
		default:
			s.Skip()
		}
	}
	if !s.OK() || !s.AtEnd() {
		s.Fail()
		return false
	}
	outer := r.scan
	for i, raw := range [...]json.RawMessage{choices, content, output} {
		if raw == nil {
			continue
		}
		r.scan.Reset(raw)
		if i == 0 {
			known = r.choices(p)
		} else {
			r.answered(p)
			known = true
		}
		if !r.scan.OK() {
			return false
		}
	}
	r.scan = outer
	return known
}

func (r *reader) choices(p *prompt.Prompt) (some bool) {
	s := &r.scan
	for s.Enter('['); s.More(']'); some = true {
		said := 0
		var seen uint64
		for s.Enter('{'); s.More('}'); {
			switch s.Field(choicesMembers, &seen) {
			case "message", "delta":
				if s.Null() {
					continue
				}
				if m, content := r.message(); content || len(m.ToolCalls) > 0 {
					p.Messages = append(p.Messages, m)
					said++
				}
			case "text":
				if !s.Null() {
					r.sayText(p, r.text())
					said++
				}
			default:
				s.Skip()
			}
		}
		if said > 1 { // in which order is for the exact decoder to say
			s.Fail()
		}
	}
	return some
}

// sayText adds a message of one text.
func (r *reader) sayText(p *prompt.Prompt, t []byte) {
	r.parts = append(r.parts, prompt.Part{Kind: prompt.Text, Text: t})
	n := len(r.parts)
	p.Messages = append(p.Messages, prompt.Message{Parts: r.parts[n-1 : n : n]})
}

// answered reads an answer that is a text, a list of parts, or an object that counts with all its JSON.
func (r *reader) answered(p *prompt.Prompt) {
	if r.scan.Kind() == '{' {
		r.sayText(p, r.raw())
		return
	}
	start := len(r.parts)
	r.content()
	p.Messages = append(p.Messages, prompt.Message{Parts: r.parts[start:len(r.parts):len(r.parts)]})
}

// counts reads a usage.
func (r *reader) counts(u *responseUsage) {
	if !r.enter() {
		return
	}
	for seen := uint64(0); r.scan.More('}'); {
		switch r.scan.Field(countMembers, &seen) {
		case "prompt_tokens":
			u.Prompt = r.count()
		case "completion_tokens":
			u.Completion = r.count()
		case "input_tokens":
			u.Input = r.count()
		case "output_tokens":
			u.Output = r.count()
		case "cache_read_input_tokens":
			u.CacheRead = r.count()
		case "cache_creation_input_tokens":
			u.CacheCreation = r.count()
		case "prompt_tokens_details":
			u.PromptDetails.Cached = r.countIn(cachedMembers)
		case "input_tokens_details":
			u.InputDetails.Cached = r.countIn(cachedMembers)
		case "completion_tokens_details":
			u.CompletionDetails.Reasoning = r.countIn(reasoningMembers)
		case "output_tokens_details":
			u.OutputDetails.Reasoning = r.countIn(reasoningMembers)
		default:
			r.scan.Skip()
		}
	}
}

// countIn reads the count that is the one member of an object.
func (r *reader) countIn(members *jsonscan.Fields) (v number) {
	r.lone(members, func() { v = r.count() })
	return v
}

// answer is answerOf with the text in the arena.
func (r *reader) answer(p *prompt.Prompt) answerState {
	if r.exact {
		return answerOf(p)
	}
	s, arena := appendAnswer(r.arena, p)
	r.arena = arena
	return s
}
