package ingest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"tailgate/prompt"
)

// Names under which instrumentations have written content over the years.
const (
	genAIDetails   = "gen_ai.client.inference.operation.details" // from 1.37 on: event with the content attributes
	genAIChoice    = "gen_ai.choice"                             // up to 1.36: one event per message, and this one
	contentPrompt  = "gen_ai.content.prompt"                     // before: the whole prompt in one event
	contentAnswer  = "gen_ai.content.completion"
	indexedPrompt  = "gen_ai.prompt"     // gen_ai.prompt.N.content: no convention, but common
	indexedAnswer  = "gen_ai.completion" // gen_ai.completion.N.content
	openInferIn    = "llm.input_messages"
	openInferOut   = "llm.output_messages"
	openInferTexts = "llm.prompts"
	openInferTools = "llm.tools"
)

// messageEvents maps the events of conventions up to 1.36 to roles.
var messageEvents = map[string]string{
	"gen_ai.system.message": "system", "gen_ai.user.message": "user",
	"gen_ai.assistant.message": "assistant", "gen_ai.tool.message": "tool",
}

// content reads prompt and answer of a span from the newest of the layouts that it uses.
func (s *otlpSpan) content(r *reader, a *attributes, p *prompt.Prompt) (answerState, error) {
	for _, read := range [...]func(r *reader, a *attributes, p *prompt.Prompt) (answerState, error){
		readGenAI, s.eventContent, readIndexed, readOpenInference,
	} {
		answer, err := read(r, a, p)
		if err != nil || len(p.Messages) > 0 || answer.known {
			return answer, err
		}
	}
	return answerState{}, nil
}

// readGenAI reads the content attributes of conventions from 1.37 on.
func readGenAI(r *reader, a *attributes, p *prompt.Prompt) (answerState, error) {
	if err := readGenAIPrompt(r, a, p); err != nil {
		return answerState{}, err
	}
	raw := a.json("gen_ai.output.messages")
	if !present(raw) {
		return answerState{}, nil
	}
	r.said.Clear()
	defer r.said.Clear()
	if err := r.genAIMessages(raw, &r.said); err != nil {
		return answerState{}, err
	}
	return r.answer(&r.said), nil
}

// eventContent reads span events of conventions up to 1.36, where each message is an event.
func (s *otlpSpan) eventContent(r *reader, _ *attributes, p *prompt.Prompt) (answerState, error) {
	var events messageList
	for i := range s.Events {
		if !isMessageEvent(s.Events[i].Name) {
			continue
		}
		if err := events.add(r, string(s.Events[i].Name), newAttributes(s.Events[i].Attributes), nil); err != nil {
			return answerState{}, err
		}
	}
	return events.finish(p)
}

// isMessageEvent tells an event that messageList takes.
func isMessageEvent(name []byte) bool {
	_, message := messageEvents[string(name)]
	return message || string(name) == genAIChoice || string(name) == contentPrompt || string(name) == contentAnswer
}

// messageList gathers the messages of one call from its events.
type messageList struct {
	in, out  prompt.Prompt
	answered bool
}

// add takes one event; body is that of a log record. Events of other kinds are passed over.
func (l *messageList) add(r *reader, name string, a *attributes, body json.RawMessage) error {
	role, isMessage := messageEvents[name]
	switch {
	case isMessage:
		return readEventMessage(role, a, body, &l.in)
	case name == genAIChoice:
		l.answered = true
		return readEventMessage("assistant", a, choiceMessage(body), &l.out)
	case name == contentPrompt:
		return r.prompt(a.json("gen_ai.prompt"), &l.in)
	case name == contentAnswer:
		l.answered = true
		return r.prompt(a.json("gen_ai.completion"), &l.out)
	}
	return nil
}

// finish moves the gathered prompt into p.
func (l *messageList) finish(p *prompt.Prompt) (answerState, error) {
	p.Messages = append(p.Messages, l.in.Messages...)
	if !l.answered {
		return answerState{}, nil
	}
	defer l.out.Clear()
	return answerOf(&l.out), nil
}

// readEventMessage reads a message from an event's body, from the JSON that stands in its place in span events,
// or from its attributes.
func readEventMessage(role string, a *attributes, body json.RawMessage, p *prompt.Prompt) error {
	if !present(body) {
		body = a.json("gen_ai.event.content")
	}
	m := openAIMessage{}
	switch {
	case isString(body):
		m.Content = body
	case present(body):
		if err := json.Unmarshal(body, &m); err != nil {
			return err
		}
	default:
		m.Content, m.ToolCallID = a.content("content"), a.text("id")
		if calls := a.json("tool_calls"); present(calls) {
			if err := json.Unmarshal(calls, &m.ToolCalls); err != nil {
				return err
			}
		}
	}
	if len(m.Role) == 0 {
		m.Role = text(role)
	}
	return appendOpenAIMessage(&m, p)
}

// choiceMessage takes the message out of a choice event's body.
func choiceMessage(body json.RawMessage) json.RawMessage {
	var choice struct {
		Message json.RawMessage `json:"message"`
	}
	if !present(body) || json.Unmarshal(body, &choice) != nil || !present(choice.Message) {
		return body
	}
	return choice.Message
}

// readIndexed reads gen_ai.prompt.N.role and .content, with the answer beside it.
func readIndexed(_ *reader, a *attributes, p *prompt.Prompt) (answerState, error) {
	if err := readIndexedMessages(a.indexed(indexedPrompt), p); err != nil {
		return answerState{}, err
	}
	answers := a.indexed(indexedAnswer)
	if len(answers) == 0 {
		return answerState{}, nil
	}
	var out prompt.Prompt
	defer out.Clear()
	err := readIndexedMessages(answers, &out)
	return answerOf(&out), err
}

func readIndexedMessages(list []*attributes, p *prompt.Prompt) error {
	for _, e := range list {
		m := openAIMessage{Role: e.text("role"), Content: e.content("content"), ToolCallID: e.text("tool_call_id")}
		for _, c := range e.indexed("tool_calls") {
			m.ToolCalls = append(m.ToolCalls, openAIToolCall{
				ID: c.text("id"), Function: openAIFunction{Name: c.text("name"), Arguments: c.json("arguments")},
			})
		}
		if err := appendOpenAIMessage(&m, p); err != nil {
			return err
		}
	}
	return nil
}

// answerOf tells what p, which holds an answer's messages, says. A message without any part does not say that
// the answer was empty: its content may have been left out.
func answerOf(p *prompt.Prompt) answerState {
	s, _ := appendAnswer(nil, p)
	return s
}

// appendAnswer is answerOf with the text appended to dst.
func appendAnswer(dst []byte, p *prompt.Prompt) (answerState, []byte) {
	s, start := answerState{known: true}, len(dst)
	for i := range p.Messages {
		s.empty = s.empty || len(p.Messages[i].Parts) > 0
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		s.empty = s.empty && len(m.ToolCalls) == 0
		for _, part := range m.Parts {
			s.empty = s.empty && len(part.Text) == 0
			if damageOf(part.Text) != "" {
				clear(dst[start:])
				return answerState{known: true}, dst[:start] // some text was there
			}
			dst = append(dst, part.Text...)
		}
	}
	s.text = dst[start:len(dst):len(dst)]
	return s, dst
}

// content is the content of a message: a list of parts, or a text, also one that happens to be JSON.
func (a *attributes) content(key string) json.RawMessage {
	raw := a.json(key)
	if len(raw) > 0 && !isString(raw) && raw[0] != '[' {
		return appendQuoted(nil, raw)
	}
	return raw
}

// maxIndex bounds N in attributes such as gen_ai.prompt.N.content.
const maxIndex = 1 << 16

// indexed returns the attributes under prefix.N., in the order of N, without prefix and number.
func (a *attributes) indexed(prefix string) []*attributes {
	var groups map[int]*attributes
	for i := range a.list {
		key := a.list[i].key
		if len(key) <= len(prefix) || string(key[:len(prefix)]) != prefix || key[len(prefix)] != '.' {
			continue
		}
		number, name, ok := bytes.Cut(key[len(prefix)+1:], []byte{'.'})
		n, err := strconv.Atoi(string(number))
		if !ok || err != nil || n < 0 || n > maxIndex {
			continue
		}
		if groups == nil {
			groups = map[int]*attributes{}
		}
		if groups[n] == nil {
			groups[n] = &attributes{}
		}
		groups[n].set(name, a.list[i].value)
	}
	if groups == nil {
		return nil
	}
	order := make([]int, 0, len(groups))
	for n := range groups {
		order = append(order, n)
	}
	slices.Sort(order)
	list := make([]*attributes, len(order))
	for i, n := range order {
		list[i] = groups[n]
	}
	return list
}

// openInferenceImageLimit is the length at which gateways cut base64 images in spans.
const openInferenceImageLimit = 32_000

// readOpenInference reads llm.input_messages.N.message.…, llm.prompts.N.… or, when there is nothing else,
// input.value.
func readOpenInference(r *reader, a *attributes, p *prompt.Prompt) (answerState, error) {
	for _, t := range a.indexed(openInferTools) {
		if err := r.toolList(listOf(t.json("tool.json_schema")), p); err != nil {
			return answerState{}, err
		}
	}
	for _, e := range a.indexed(openInferIn) {
		p.Messages = append(p.Messages, openInferenceMessage(e))
	}
	for _, e := range a.indexed(openInferTexts) {
		if t := e.text("prompt.text"); len(p.Messages) == 0 || len(t) > 0 {
			p.Messages = append(p.Messages, plainMessage(bytes.Clone(t)))
		}
	}
	if len(p.Messages) == 0 {
		if err := readInputValue(r, a.json("input.value"), p); err != nil {
			return answerState{}, err
		}
	}
	answers := a.indexed(openInferOut)
	if len(answers) == 0 {
		return answerState{}, nil
	}
	var out prompt.Prompt
	defer out.Clear()
	for _, e := range answers {
		out.Messages = append(out.Messages, openInferenceMessage(e))
	}
	return answerOf(&out), nil
}

func openInferenceMessage(e *attributes) prompt.Message {
	m := prompt.Message{
		Role: string(e.text("message.role")), Name: string(e.text("message.name")), ToolCallID: string(e.text("message.tool_call_id")),
	}
	if t := e.text("message.content"); len(t) > 0 {
		m.Parts = append(m.Parts, prompt.Part{Kind: prompt.Text, Text: bytes.Clone(t)})
	}
	for _, c := range e.indexed("message.contents") {
		switch string(c.text("message_content.type")) {
		case "image":
			url := c.text("message_content.image.image.url")
			if !bytes.HasPrefix(url, []byte("data:")) || len(url) == openInferenceImageLimit {
				url = nil
			}
			m.Parts = append(m.Parts, prompt.Part{Kind: prompt.Image, Text: bytes.Clone(mediaBytes(url))})
		default:
			m.Parts = append(m.Parts, prompt.Part{Kind: prompt.Text, Text: bytes.Clone(c.text("message_content.text"))})
		}
	}
	for _, c := range e.indexed("message.tool_calls") {
		m.ToolCalls = append(m.ToolCalls, prompt.ToolCall{
			ID: string(c.text("tool_call.id")), Name: string(c.text("tool_call.function.name")),
			Arguments: bytes.Clone(c.text("tool_call.function.arguments")),
		})
	}
	return m
}

// readInputValue reads a whole request body, or a text.
func readInputValue(r *reader, raw json.RawMessage, p *prompt.Prompt) error {
	if len(raw) == 0 || raw[0] != '{' {
		return r.prompt(raw, p)
	}
	body, err := r.requestBody(raw)
	if err != nil {
		return err
	}
	return body.appendTo(r, p)
}

func listOf(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return raw
	}
	return slices.Concat([]byte{'['}, raw, []byte{']'})
}
