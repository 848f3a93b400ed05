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
	var text bytes.Buffer
	if present(b.Tools) {
		text.WriteString("<|tools|>\n")
		text.Write(b.Tools)
		text.WriteByte('\n')
	}
	for i := range b.Messages {
		m := &b.Messages[i]
		text.WriteString("<|" + m.Role + "|>\n")
		if !m.render(&text) {
			return prompt{}, badRequest("messages", "messages[%d].content must be a string or a list of parts", i)
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
