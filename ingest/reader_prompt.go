package ingest

import (
	"tailgate/internal/jsonscan"
	"tailgate/prompt"
)

// The members that openAIMessage and the types in it have. TestScannerKnowsEveryMember holds the two together.
var (
	messageMembers  = jsonscan.NewFields("role", "name", "content", "tool_calls", "function_call", "tool_call_id")
	toolCallMembers = jsonscan.NewFields("id", "function")
	functionMembers = jsonscan.NewFields("name", "arguments", "description", "parameters", "input_schema")
	partMembers     = jsonscan.NewFields("type", "text", "image_url", "input_audio", "file", "source")
	imageMembers    = jsonscan.NewFields("url")
	audioMembers    = jsonscan.NewFields("data")
	fileMembers     = jsonscan.NewFields("file_data")
	toolMembers     = jsonscan.NewFields("name", "arguments", "description", "parameters", "input_schema", "function", "toolSpec")
)

// messages reads what readOpenAIPrompt reads: a string, or a list of strings and messages.
func (r *reader) messages(p *prompt.Prompt) {
	s := &r.scan
	if s.Kind() == '"' {
		r.plain(p)
		return
	}
	if !r.begin('[') {
		return
	}
	for s.More(']') {
		if s.Kind() == '"' {
			r.plain(p)
		} else {
			r.chat(p)
		}
	}
}

// plain reads a completion prompt.
func (r *reader) plain(p *prompt.Prompt) {
	t := r.text()
	if len(t) == 0 || string(t) == "{}" {
		return
	}
	r.sayText(p, t)
}

// chat reads one message into p. One that has nothing of a message is odd.
func (r *reader) chat(p *prompt.Prompt) {
	m, content := r.message()
	if m.Role == "" && !content && len(m.ToolCalls) == 0 {
		r.scan.Fail()
		return
	}
	p.Messages = append(p.Messages, m)
}

// message reads one message and tells whether it has a content.
func (r *reader) message() (m prompt.Message, content bool) {
	s := &r.scan
	parts, calls := len(r.parts), len(r.calls)
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(messageMembers, &seen) {
		case "role":
			m.Role = r.role()
		case "name":
			m.Name = r.name()
		case "content":
			content = r.content()
		case "tool_calls":
			r.toolCalls()
		case "function_call":
			if !s.Null() {
				s.Fail()
			}
		case "tool_call_id":
			m.ToolCallID = r.name()
		default:
			s.Skip()
		}
	}
	r.hold(&m, parts, calls)
	return m, content
}

// hold gives m what was read since there were so many parts and calls.
func (r *reader) hold(m *prompt.Message, parts, calls int) {
	m.Parts = r.parts[parts:len(r.parts):len(r.parts)]
	m.ToolCalls = r.calls[calls:len(r.calls):len(r.calls)]
}

func (r *reader) role() string {
	switch w := r.word(); string(w) {
	case "system":
		return "system"
	case "user":
		return "user"
	case "assistant":
		return "assistant"
	case "tool":
		return "tool"
	default:
		return r.names.text(w)
	}
}

// content reads a string or a list of parts; false for null.
func (r *reader) content() bool {
	s := &r.scan
	if s.Kind() == '"' {
		r.parts = append(r.parts, prompt.Part{Kind: prompt.Text, Text: r.text()})
		return true
	}
	if !r.begin('[') {
		return false
	}
	for s.More(']') {
		r.part()
	}
	return true
}

// part reads a part of a content. Media fields are read for their bytes only.
func (r *reader) part() {
	s := &r.scan
	s.Kind() // up to the part
	start := s.Pos()
	var o openAIPart
	var image []byte
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(partMembers, &seen) {
		case "type":
			o.Type = r.word()
		case "text":
			o.Text = r.text()
		case "image_url":
			image = r.image()
		case "input_audio":
			o.InputAudio.Data = r.member(audioMembers)
		case "file":
			o.File.Data = r.member(fileMembers)
		case "source": // another vendor's image
			s.Fail()
		default:
			s.Skip()
		}
	}
	p := o.part(s.Since(start))
	if p.Kind == prompt.Image {
		p.Text = dataURI(image)
	}
	r.parts = append(r.parts, p)
}

// image reads an image_url, which is a string or an object with a url.
func (r *reader) image() []byte {
	if r.scan.Kind() == '"' {
		return r.text()
	}
	return r.member(imageMembers)
}

// member reads the text that is the one member of an object.
func (r *reader) member(members *jsonscan.Fields) (t []byte) {
	r.lone(members, func() { t = r.text() })
	return t
}

func (r *reader) toolCalls() {
	s := &r.scan
	if !r.begin('[') {
		return
	}
	for s.More(']') {
		var c prompt.ToolCall
		var seen uint64
		for s.Enter('{'); s.More('}'); {
			switch s.Field(toolCallMembers, &seen) {
			case "id":
				c.ID = r.name()
			case "function":
				c.Name, c.Arguments = r.called()
			default:
				s.Skip()
			}
		}
		r.calls = append(r.calls, c)
	}
}

// called reads the function of a tool call.
func (r *reader) called() (name string, arguments []byte) {
	s := &r.scan
	if !r.enter() {
		return "", nil
	}
	for seen := uint64(0); s.More('}'); {
		switch s.Field(functionMembers, &seen) {
		case "name":
			name = r.name()
		case "arguments":
			if s.Kind() == '"' {
				arguments = r.text()
			} else {
				arguments = r.raw()
			}
		case "description":
			r.word()
		default:
			s.Skip()
		}
	}
	return name, arguments
}

// tools reads a list of tool definitions, nested under "function" or flat; false for null.
func (r *reader) tools(p *prompt.Prompt) bool {
	s := &r.scan
	if !r.begin('[') {
		return false
	}
	for s.More(']') {
		var flat, nested prompt.Tool
		isNested := false
		var seen uint64
		for s.Enter('{'); s.More('}'); {
			switch name := s.Field(toolMembers, &seen); name {
			case "function":
				nested, isNested = r.function()
			default:
				r.toolMember(&flat, name)
			}
		}
		if isNested {
			flat = nested
		}
		p.Tools = append(p.Tools, flat)
	}
	return true
}

// function reads the function of a tool; false for null.
func (r *reader) function() (t prompt.Tool, ok bool) {
	if !r.enter() {
		return t, false
	}
	for seen := uint64(0); r.scan.More('}'); {
		r.toolMember(&t, r.scan.Field(functionMembers, &seen))
	}
	return t, true
}

// toolMember reads the member of a function that has this name.
func (r *reader) toolMember(t *prompt.Tool, name string) {
	switch name {
	case "name":
		t.Name = r.name()
	case "description":
		t.Description = r.text()
	case "parameters":
		if t.Parameters = r.raw(); len(t.Parameters) == 0 {
			r.scan.Fail() // what null means is for the exact decoder to say
		}
	case "input_schema", "toolSpec": // other vendors' definitions
		r.scan.Fail()
	default:
		r.scan.Skip()
	}
}
