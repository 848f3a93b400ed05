package ingest

import (
	"bytes"
	"encoding/json"

	"tailgate/internal/jsonscan"
	"tailgate/prompt"
)

// openAIMessage is a message of the chat completions API.
type openAIMessage struct {
	Role         text             `json:"role"`
	Name         text             `json:"name"`
	Content      json.RawMessage  `json:"content"`
	ToolCalls    []openAIToolCall `json:"tool_calls"`
	FunctionCall *openAIFunction  `json:"function_call"` // before tools
	ToolCallID   text             `json:"tool_call_id"`
}

type openAIToolCall struct {
	ID       text           `json:"id"`
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name        text            `json:"name"`
	Arguments   json.RawMessage `json:"arguments"`
	Description text            `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	InputSchema json.RawMessage `json:"input_schema"` // Anthropic
}

// openAIPart is a part of a message's content. Media fields are read for their bytes only.
type openAIPart struct {
	Type       text            `json:"type"`
	Text       text            `json:"text"`
	ImageURL   json.RawMessage `json:"image_url"`
	Source     json.RawMessage `json:"source"` // Anthropic
	InputAudio struct {
		Data text `json:"data"`
	} `json:"input_audio"`
	File struct {
		Data text `json:"file_data"`
	} `json:"file"`
}

type openAITool struct {
	Function *openAIFunction `json:"function"`
	ToolSpec *struct {       // Bedrock
		Name        text            `json:"name"`
		Description text            `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	} `json:"toolSpec"`
	openAIFunction
}

// readOpenAIPrompt appends what a request's messages (a string, one message or a list) hold to p.
func readOpenAIPrompt(raw json.RawMessage, p *prompt.Prompt) error {
	switch {
	case !present(raw):
		return nil
	case isString(raw):
		var t text
		if err := json.Unmarshal(raw, &t); err != nil {
			return err
		}
		if len(t) > 0 && string(t) != "{}" {
			p.Messages = append(p.Messages, plainMessage(t))
		}
		return nil
	case raw[0] == '{':
		var one openAIMessage
		if err := json.Unmarshal(raw, &one); err != nil {
			return err
		}
		if !present(one.Content) && len(one.ToolCalls) == 0 {
			return nil
		}
		return appendOpenAIMessage(&one, p)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, r := range list {
		switch {
		case isString(r): // a list of completion prompts
			if err := readOpenAIPrompt(r, p); err != nil {
				return err
			}
			continue
		case isDigit(r[0]) || r[0] == '[': // token ids: the text is not known
			p.Clear()
			return nil
		}
		var m openAIMessage
		if err := json.Unmarshal(r, &m); err != nil {
			return err
		}
		if m.bare() { // an item of the responses API, for example a call or its output
			p.Messages = append(p.Messages, prompt.Message{Parts: []prompt.Part{{Kind: prompt.Other, Text: bytes.Clone(r)}}})
			continue
		}
		if err := appendOpenAIMessage(&m, p); err != nil {
			return err
		}
	}
	return nil
}

// bare tells that nothing of the value was understood as a message.
func (m *openAIMessage) bare() bool {
	return len(m.Role) == 0 && !present(m.Content) && len(m.ToolCalls) == 0 && m.FunctionCall == nil
}

func plainMessage(t []byte) prompt.Message {
	return prompt.Message{Parts: []prompt.Part{{Kind: prompt.Text, Text: t}}}
}

func appendOpenAIMessage(m *openAIMessage, p *prompt.Prompt) error {
	out := prompt.Message{Role: string(m.Role), Name: string(m.Name), ToolCallID: string(m.ToolCallID)}
	parts, err := openAIParts(m.Content)
	if err != nil {
		return err
	}
	out.Parts = parts
	if f := m.FunctionCall; f != nil {
		m.ToolCalls = append(m.ToolCalls, openAIToolCall{Function: *f})
	}
	for _, c := range m.ToolCalls {
		args, err := textOrJSON(c.Function.Arguments)
		if err != nil {
			return err
		}
		out.ToolCalls = append(out.ToolCalls, prompt.ToolCall{
			ID: string(c.ID), Name: string(c.Function.Name), Arguments: args,
		})
	}
	p.Messages = append(p.Messages, out)
	return nil
}

// openAIParts reads the content of a message: a string or a list of parts.
func openAIParts(raw json.RawMessage) ([]prompt.Part, error) {
	if !present(raw) {
		return nil, nil
	}
	if isString(raw) {
		t, err := textOrJSON(raw)
		return []prompt.Part{{Kind: prompt.Text, Text: t}}, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	parts := make([]prompt.Part, 0, len(list))
	for _, r := range list {
		var o openAIPart
		if err := json.Unmarshal(r, &o); err != nil {
			return nil, err
		}
		parts = append(parts, o.part(r))
	}
	return parts, nil
}

// part reads o, whose bytes are raw. A part of an unknown type counts with all its JSON, so that two different
// ones never look alike.
func (o *openAIPart) part(raw []byte) prompt.Part {
	switch kind := string(o.Type); {
	case kind == "text", kind == "input_text", kind == "output_text", kind == "" && len(o.Text) > 0:
		return prompt.Part{Kind: prompt.Text, Text: o.Text}
	case kind == "image_url", kind == "input_image", kind == "image":
		if present(o.Source) {
			return prompt.Part{Kind: prompt.Image, Text: sourceBytes(o.Source)}
		}
		return prompt.Part{Kind: prompt.Image, Text: imageBytes(o.ImageURL)}
	case kind == "input_audio":
		return prompt.Part{Kind: prompt.Audio, Text: mediaBytes(o.InputAudio.Data)}
	case kind == "file", kind == "input_file":
		return prompt.Part{Kind: prompt.File, Text: mediaBytes(o.File.Data)}
	}
	return prompt.Part{Kind: prompt.Other, Text: bytes.Clone(raw)}
}

// imageBytes returns the data URI of an image_url value, which is an object or a string; nil when it is a
// link or a placeholder.
func imageBytes(raw json.RawMessage) []byte {
	if !present(raw) {
		return nil
	}
	var obj struct {
		URL text `json:"url"`
	}
	if isString(raw) {
		if json.Unmarshal(raw, &obj.URL) != nil {
			return nil
		}
	} else if json.Unmarshal(raw, &obj) != nil {
		return nil
	}
	return dataURI(obj.URL)
}

// dataURI returns b if it is a data URI that holds its bytes.
func dataURI(b []byte) []byte {
	if !bytes.HasPrefix(b, []byte("data:")) {
		return nil
	}
	return mediaBytes(b)
}

// sourceBytes returns the data of Anthropic's source object, nil when it is a link or a placeholder.
func sourceBytes(raw json.RawMessage) []byte {
	var source struct {
		Data text `json:"data"`
	}
	if json.Unmarshal(raw, &source) != nil {
		return nil
	}
	return mediaBytes(source.Data)
}

// mediaBytes returns b unless a gateway put a placeholder in the place of the bytes.
func mediaBytes(b []byte) []byte {
	if len(b) == 0 || damageOf(b) != "" {
		return nil
	}
	return b
}

// readOpenAITools appends tool definitions, nested under "function" or flat. A text in their place, as redaction
// leaves it, counts as one tool.
func readOpenAITools(raw json.RawMessage, p *prompt.Prompt) error {
	if !present(raw) {
		return nil
	}
	if isString(raw) {
		t, err := textOrJSON(raw)
		if len(t) > 0 {
			p.Tools = append(p.Tools, prompt.Tool{Description: t})
		}
		return err
	}
	var list []openAITool
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, t := range list {
		f := t.openAIFunction
		if t.Function != nil {
			f = *t.Function
		}
		if s := t.ToolSpec; s != nil {
			f = openAIFunction{Name: s.Name, Description: s.Description, Parameters: s.InputSchema}
		}
		if !present(f.Parameters) {
			f.Parameters = f.InputSchema
		}
		p.Tools = append(p.Tools, prompt.Tool{
			Name: string(f.Name), Description: f.Description, Parameters: bytes.Clone(f.Parameters),
		})
	}
	return nil
}

// textOrJSON returns the text of a JSON string, or any other value as it stands.
func textOrJSON(raw json.RawMessage) ([]byte, error) {
	if !present(raw) {
		return nil, nil
	}
	if !isString(raw) {
		return bytes.Clone(raw), nil
	}
	if t, ok := jsonscan.Unquote(raw); ok {
		return t, nil
	}
	if len(raw) < 2 {
		return nil, errValue
	}
	return unquote(raw[1 : len(raw)-1]), nil // it has been checked with what it is part of
}
