package sim

import (
	"bytes"
	"encoding/json"
)

// message is one chat message. Content is a string, null, or a list of parts.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// chatPrompt renders a conversation to the text that is counted and hashed:
//
//	<|tools|>\n TOOLS \n  <|ROLE|>\n TEXT TOOL_CALLS \n …  <|assistant|>\n
//
// (without the blanks), tools and tool calls as the JSON that was sent. The next turn's prompt begins with this
// turn's, as a chat template's does. Parts that are no text count for nothing.
func chatPrompt(b *body) (prompt, *apiError) {
	if len(b.Messages) == 0 {
		return prompt{}, badRequest("messages", "messages must not be empty")
	}
	return render(b.Tools, "messages", b.Messages)
}

// responsePrompt renders the instructions, as a system message, and the input of a response: a text, or a list of
// messages and other items. Of these the JSON counts, as it was sent.
func responsePrompt(b *body) (prompt, *apiError) {
	var list []message
	if b.Instructions != "" {
		list = append(list, message{Role: "system", Content: json.RawMessage(quote(b.Instructions))})
	}
	input := bytes.TrimSpace(b.Input)
	switch {
	case !present(input):
		return prompt{}, badRequest("input", "input is required")
	case input[0] == '"':
		list = append(list, message{Role: "user", Content: input})
	case input[0] == '[':
		var items []json.RawMessage
		if json.Unmarshal(input, &items) != nil || len(items) == 0 {
			return prompt{}, badRequest("input", "input must not be empty")
		}
		for i, item := range items {
			var m message
			if json.Unmarshal(item, &m) != nil {
				return prompt{}, badRequest("input", "input[%d] must be an object", i)
			}
			if m.Role == "" {
				m = message{Role: "item", ToolCalls: item}
			}
			list = append(list, m)
		}
	default:
		return prompt{}, badRequest("input", "input must be a string or a list of items")
	}
	return render(b.Tools, "input", list)
}

// render writes out a conversation; field is where the messages stand in the request.
func render(tools json.RawMessage, field string, list []message) (prompt, *apiError) {
	var text bytes.Buffer
	if present(tools) {
		text.WriteString("<|tools|>\n")
		text.Write(tools)
		text.WriteByte('\n')
	}
	for i := range list {
		m := &list[i]
		text.WriteString("<|" + m.Role + "|>\n")
		if !m.render(&text) {
			return prompt{}, badRequest(field, "%s[%d].content must be a string or a list of parts", field, i)
		}
		if present(m.ToolCalls) {
			text.Write(m.ToolCalls)
		}
		text.WriteByte('\n')
	}
	text.WriteString("<|assistant|>\n")
	return prompt{text: text.Bytes()}, nil
}

// render appends the message's text; false when the content is neither text nor parts.
func (m *message) render(text *bytes.Buffer) bool {
	content := bytes.TrimSpace(m.Content)
	if !present(content) {
		return true
	}
	if content[0] == '"' {
		var s string
		ok := json.Unmarshal(content, &s) == nil
		text.WriteString(s)
		return ok
	}
	var parts []part
	if json.Unmarshal(content, &parts) != nil {
		return false
	}
	for _, p := range parts {
		text.WriteString(p.Text)
	}
	return true
}

// present tells a JSON value from an absent or null one.
func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }
