package ingest

import (
	"encoding/json"

	"tailgate/internal/jsonscan"
	"tailgate/prompt"
)

// The members that genAIMessage and genAIPart have. TestReaderKnowsEveryMember holds them together.
var (
	genAIMembers     = jsonscan.NewFields("role", "name", "parts", "content")
	genAIPartMembers = jsonscan.NewFields("type", "content", "modality", "id", "name", "arguments", "response", "result")
)

// genAIMessages reads what readGenAIMessages reads.
func (r *reader) genAIMessages(raw json.RawMessage, p *prompt.Prompt) error {
	if r.try(raw, p, (*reader).genAIList) {
		return nil
	}
	return readGenAIMessages(raw, p)
}

// genAISystem reads what readGenAISystem reads.
func (r *reader) genAISystem(raw json.RawMessage, p *prompt.Prompt) error {
	if !present(raw) || r.try(raw, p, (*reader).genAIInstructions) {
		return nil
	}
	return readGenAISystem(raw, p)
}

func (r *reader) genAIList(p *prompt.Prompt) {
	s := &r.scan
	if s.Kind() == '"' {
		r.sayText(p, r.text())
		return
	}
	for s.Enter('['); s.More(']'); {
		var m prompt.Message
		parts, calls, lists := len(r.parts), len(r.calls), 0
		var seen uint64
		for s.Enter('{'); s.More('}'); {
			switch s.Field(genAIMembers, &seen) {
			case "role":
				m.Role = r.role()
			case "name":
				m.Name = r.name()
			case "content":
				lists += r.asOne(r.content())
			case "parts":
				lists += r.asOne(r.genAIParts(&m))
			default:
				s.Skip()
			}
		}
		if lists > 1 { // which comes first is for the exact decoder to say
			s.Fail()
		}
		r.hold(&m, parts, calls)
		p.Messages = append(p.Messages, m)
	}
}

func (r *reader) asOne(there bool) int {
	if there {
		return 1
	}
	return 0
}

// genAIInstructions reads a text, or a list of parts, as a leading system message.
func (r *reader) genAIInstructions(p *prompt.Prompt) {
	m := prompt.Message{Role: "system"}
	parts, calls := len(r.parts), len(r.calls)
	if r.scan.Kind() == '"' {
		r.content()
	} else {
		r.genAIParts(&m)
	}
	r.hold(&m, parts, calls)
	p.Messages = append(p.Messages, m)
}

// genAIParts reads a list of parts; false for null.
func (r *reader) genAIParts(m *prompt.Message) bool {
	if !r.begin('[') {
		return false
	}
	for r.scan.More(']') {
		r.genAIPart(m)
	}
	return true
}

func (r *reader) genAIPart(m *prompt.Message) {
	s := &r.scan
	s.Kind() // up to the part
	start := s.Pos()
	var kind, modality text
	var id, name string
	var content, arguments, response, result []byte
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(genAIPartMembers, &seen) {
		case "type":
			kind = r.word()
		case "content":
			content = r.textOrRaw()
		case "modality":
			modality = r.word()
		case "id":
			id = r.name()
		case "name":
			name = r.name()
		case "arguments":
			arguments = r.textOrRaw()
		case "response":
			response = r.textOrRaw()
		case "result":
			result = r.textOrRaw()
		default:
			s.Skip()
		}
	}
	part := prompt.Part{Kind: prompt.Text, Text: content}
	switch string(kind) {
	case "text":
	case "tool_call":
		r.calls = append(r.calls, prompt.ToolCall{ID: id, Name: name, Arguments: arguments})
		return
	case "tool_call_response":
		m.ToolCallID = id
		if part.Text = response; response == nil {
			part.Text = result
		}
	case "blob", "file", "uri":
		part = prompt.Part{Kind: mediaKind(modality), Text: mediaBytes(content)}
	default:
		part = prompt.Part{Kind: prompt.Other, Text: r.keep(s.Since(start))}
	}
	r.parts = append(r.parts, part)
}

// textOrRaw reads the text of a string, or copies any other value as it stands; nil for null.
func (r *reader) textOrRaw() []byte {
	if r.scan.Kind() == '"' {
		t := r.text()
		if t == nil {
			t = []byte{} // the empty text is there
		}
		return t
	}
	return r.raw()
}
