// Package chats reads conversations in the form of the chat completions API into prompts, for tests and checks of
// templates. The decoders that ship are in package ingest.
package chats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"tailgate/prompt"
	"tailgate/schemas"
)

// Chat is a named conversation.
type Chat struct {
	Name     string    `json:"name"`
	Messages []message `json:"messages"`
	Tools    []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type message struct {
	Role      string  `json:"role"`
	Name      string  `json:"name"`
	Content   content `json:"content"`
	ToolID    string  `json:"tool_call_id"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// content is null, a text, or a list of parts.
type content []prompt.Part

// UnmarshalJSON reads any of the three.
func (c *content) UnmarshalJSON(raw []byte) error {
	var text string
	switch {
	case string(raw) == "null":
		return nil
	case json.Unmarshal(raw, &text) == nil:
		*c = content{{Kind: prompt.Text, Text: []byte(text)}}
		return nil
	}
	var list []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, p := range list {
		switch p.Type {
		case "text":
			*c = append(*c, prompt.Part{Kind: prompt.Text, Text: []byte(p.Text)})
		case "image_url":
			*c = append(*c, prompt.Part{Kind: prompt.Image, Text: []byte(p.Image.URL)})
		default:
			return fmt.Errorf("a part of type %q", p.Type)
		}
	}
	return nil
}

// Prompt returns the conversation as a decoded prompt, in memory of its own.
func (c *Chat) Prompt() *prompt.Prompt {
	p := &prompt.Prompt{State: schemas.PromptFull, Intact: len(c.Messages)}
	for _, t := range c.Tools {
		f := t.Function
		p.Tools = append(p.Tools, prompt.Tool{Name: f.Name, Description: []byte(f.Description), Parameters: bytes.Clone(f.Parameters)})
	}
	for _, m := range c.Messages {
		out := prompt.Message{Role: m.Role, Name: m.Name, ToolCallID: m.ToolID}
		for _, part := range m.Content {
			out.Parts = append(out.Parts, prompt.Part{Kind: part.Kind, Text: bytes.Clone(part.Text)})
		}
		for _, call := range m.ToolCalls {
			out.ToolCalls = append(out.ToolCalls, prompt.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: []byte(call.Function.Arguments)})
		}
		p.Messages = append(p.Messages, out)
	}
	return p
}

// Load reads a file with one conversation a line.
func Load(path string) ([]*Chat, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []*Chat
	for line := range bytes.Lines(data) {
		c := &Chat{}
		if err := json.Unmarshal(line, c); err != nil {
			return nil, fmt.Errorf("reading %s, line %d: %w", path, len(out)+1, err)
		}
		out = append(out, c)
	}
	return out, nil
}
