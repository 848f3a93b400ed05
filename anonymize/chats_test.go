package anonymize

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"tailgate/prompt"
	"tailgate/schemas"
)

const templatesDir = "testdata/templates"

// chat is a conversation of testdata/templates/chats.jsonl, in the form of the chat completions API.
type chat struct {
	Name     string `json:"name"`
	Messages []struct {
		Role      string          `json:"role"`
		Name      string          `json:"name"`
		Content   json.RawMessage `json:"content"`
		ToolID    string          `json:"tool_call_id"`
		ToolCalls []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

func (c *chat) prompt(t testing.TB) *prompt.Prompt {
	t.Helper()
	p := &prompt.Prompt{State: schemas.PromptFull, Intact: len(c.Messages)}
	for _, tool := range c.Tools {
		p.Tools = append(p.Tools, prompt.Tool{
			Name: tool.Function.Name, Description: []byte(tool.Function.Description), Parameters: tool.Function.Parameters,
		})
	}
	for _, m := range c.Messages {
		out := prompt.Message{Role: m.Role, Name: m.Name, ToolCallID: m.ToolID, Parts: parts(t, m.Content)}
		for _, call := range m.ToolCalls {
			out.ToolCalls = append(out.ToolCalls, prompt.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: []byte(call.Function.Arguments)})
		}
		p.Messages = append(p.Messages, out)
	}
	return p
}

func parts(t testing.TB, raw json.RawMessage) []prompt.Part {
	t.Helper()
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil
	case json.Unmarshal(raw, &text) == nil:
		return []prompt.Part{{Kind: prompt.Text, Text: []byte(text)}}
	}
	var list []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	var out []prompt.Part
	for _, p := range list {
		if p.Type == "text" {
			out = append(out, prompt.Part{Kind: prompt.Text, Text: []byte(p.Text)})
		} else {
			out = append(out, prompt.Part{Kind: prompt.Image, Text: []byte(p.Image.URL)})
		}
	}
	return out
}

func loadChats(t testing.TB) []*chat {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(templatesDir, "chats.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*chat
	for line := range bytes.Lines(data) {
		c := &chat{}
		if err := json.Unmarshal(line, c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// templateNames are the fast paths and the templates of testdata.
func templateNames(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(templatesDir, "*.jinja"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d templates: %v", len(files), err)
	}
	names := []string{TemplatePlain, TemplateChatML, TemplateLlama3}
	for _, f := range files {
		names = append(names, jinjaPrefix+f)
	}
	return names
}
