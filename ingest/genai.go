package ingest

import (
	"bytes"
	"encoding/json"

	"tailgate/prompt"
)

// genAIMessage is a message of gen_ai.input.messages.
type genAIMessage struct {
	Role  text              `json:"role"`
	Name  text              `json:"name"`
	Parts []json.RawMessage `json:"parts"`
	// Content is how older instrumentations write it.
	Content json.RawMessage `json:"content"`
}

// genAIPart is one part of a message. Which fields are set depends on its type.
type genAIPart struct {
	Type      text            `json:"type"`
	Content   json.RawMessage `json:"content"`
	Modality  text            `json:"modality"`
	ID        text            `json:"id"`
	Name      text            `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Response  json.RawMessage `json:"response"`
	Result    json.RawMessage `json:"result"`
}

// readGenAIPrompt appends the content attributes of a span: instructions, messages and tool definitions.
// Without messages the rest is not the prompt and is left out.
func readGenAIPrompt(r *reader, a *attributes, p *prompt.Prompt) error {
	raw := a.json("gen_ai.input.messages")
	if !holdsText(raw) {
		return nil
	}
	if err := r.genAISystem(a.json("gen_ai.system_instructions"), p); err != nil {
		return err
	}
	if err := r.genAIMessages(raw, p); err != nil {
		return err
	}
	return r.toolList(a.json("gen_ai.tool.definitions"), p)
}

// readGenAIMessages appends a text, or a list of messages.
func readGenAIMessages(raw json.RawMessage, p *prompt.Prompt) error {
	if isString(raw) {
		t, err := textOrJSON(raw)
		p.Messages = append(p.Messages, plainMessage(t))
		return err
	}
	var list []genAIMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for i := range list {
		if err := list[i].appendTo(p); err != nil {
			return err
		}
	}
	return nil
}

// readGenAISystem reads the instructions, a list of parts or plain text, as a leading system message.
func readGenAISystem(raw json.RawMessage, p *prompt.Prompt) error {
	if !present(raw) {
		return nil
	}
	m := genAIMessage{Role: text("system")}
	if isString(raw) {
		m.Content = raw
	} else if err := json.Unmarshal(raw, &m.Parts); err != nil {
		return err
	}
	return m.appendTo(p)
}

func (m *genAIMessage) appendTo(p *prompt.Prompt) error {
	out := prompt.Message{Role: string(m.Role), Name: string(m.Name)}
	parts, err := openAIParts(m.Content)
	if err != nil {
		return err
	}
	out.Parts = parts
	for _, raw := range m.Parts {
		var part genAIPart
		if err := json.Unmarshal(raw, &part); err != nil {
			return err
		}
		if err := part.appendTo(&out, raw); err != nil {
			return err
		}
	}
	p.Messages = append(p.Messages, out)
	return nil
}

// appendTo adds the part, whose bytes are raw, to a message.
func (g *genAIPart) appendTo(m *prompt.Message, raw []byte) error {
	switch string(g.Type) {
	case "text":
		t, err := textOrJSON(g.Content)
		m.Parts = append(m.Parts, prompt.Part{Kind: prompt.Text, Text: t})
		return err
	case "tool_call":
		args, err := textOrJSON(g.Arguments)
		m.ToolCalls = append(m.ToolCalls, prompt.ToolCall{ID: string(g.ID), Name: string(g.Name), Arguments: args})
		return err
	case "tool_call_response":
		result := g.Response
		if !present(result) {
			result = g.Result
		}
		t, err := textOrJSON(result)
		m.ToolCallID = string(g.ID)
		m.Parts = append(m.Parts, prompt.Part{Kind: prompt.Text, Text: t})
		return err
	case "blob", "file", "uri":
		t, err := textOrJSON(g.Content)
		m.Parts = append(m.Parts, prompt.Part{Kind: mediaKind(g.Modality), Text: mediaBytes(t)})
		return err
	}
	m.Parts = append(m.Parts, prompt.Part{Kind: prompt.Other, Text: bytes.Clone(raw)})
	return nil
}

func mediaKind(modality []byte) string {
	switch string(modality) {
	case "image":
		return prompt.Image
	case "audio":
		return prompt.Audio
	}
	return prompt.File
}
