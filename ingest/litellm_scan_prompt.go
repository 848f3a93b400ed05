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
func (l *litellmScanner) messages(p *prompt.Prompt) {
	s := &l.scan
	if s.Kind() == '"' {
		l.plain(p)
		return
	}
	if !l.begin('[') {
		return
	}
	for s.More(']') {
		if s.Kind() == '"' {
			l.plain(p)
		} else {
			l.chat(p)
		}
	}
}

// plain reads a completion prompt.
func (l *litellmScanner) plain(p *prompt.Prompt) {
	t := l.text()
	if len(t) == 0 || string(t) == "{}" {
		return
	}
	l.parts = append(l.parts, prompt.Part{Kind: prompt.Text, Text: t})
	n := len(l.parts)
	p.Messages = append(p.Messages, prompt.Message{Parts: l.parts[n-1 : n : n]})
}

// chat reads one message. One that has nothing of a message is odd.
func (l *litellmScanner) chat(p *prompt.Prompt) {
	s := &l.scan
	var m prompt.Message
	parts, calls, content := len(l.parts), len(l.calls), false
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(messageMembers, &seen) {
		case "role":
			m.Role = l.role()
		case "name":
			m.Name = l.name()
		case "content":
			content = l.content()
		case "tool_calls":
			l.toolCalls()
		case "function_call":
			if !s.Null() {
				s.Fail()
			}
		case "tool_call_id":
			m.ToolCallID = l.name()
		default:
			s.Skip()
		}
	}
	if m.Role == "" && !content && len(l.calls) == calls {
		s.Fail()
		return
	}
	m.Parts = l.parts[parts:len(l.parts):len(l.parts)]
	m.ToolCalls = l.calls[calls:len(l.calls):len(l.calls)]
	p.Messages = append(p.Messages, m)
}

func (l *litellmScanner) role() string {
	switch w := l.word(); string(w) {
	case "system":
		return "system"
	case "user":
		return "user"
	case "assistant":
		return "assistant"
	case "tool":
		return "tool"
	default:
		return l.names.text(w)
	}
}

// content reads a string or a list of parts; false for null.
func (l *litellmScanner) content() bool {
	s := &l.scan
	if s.Kind() == '"' {
		l.parts = append(l.parts, prompt.Part{Kind: prompt.Text, Text: l.text()})
		return true
	}
	if !l.begin('[') {
		return false
	}
	for s.More(']') {
		l.part()
	}
	return true
}

// part reads a part of a content. Media fields are read for their bytes only.
func (l *litellmScanner) part() {
	s := &l.scan
	s.Kind() // up to the part
	start := s.Pos()
	var o openAIPart
	var image []byte
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(partMembers, &seen) {
		case "type":
			o.Type = l.word()
		case "text":
			o.Text = l.text()
		case "image_url":
			image = l.image()
		case "input_audio":
			o.InputAudio.Data = l.member(audioMembers)
		case "file":
			o.File.Data = l.member(fileMembers)
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
	l.parts = append(l.parts, p)
}

// image reads an image_url, which is a string or an object with a url.
func (l *litellmScanner) image() []byte {
	if l.scan.Kind() == '"' {
		return l.text()
	}
	return l.member(imageMembers)
}

// member reads the text that is the one member of an object.
func (l *litellmScanner) member(members *jsonscan.Fields) (t []byte) {
	if !l.enter() {
		return nil
	}
	for seen := uint64(0); l.scan.More('}'); {
		if l.scan.Field(members, &seen) != "" {
			t = l.text()
		} else {
			l.scan.Skip()
		}
	}
	return t
}

func (l *litellmScanner) toolCalls() {
	s := &l.scan
	if !l.begin('[') {
		return
	}
	for s.More(']') {
		var c prompt.ToolCall
		var seen uint64
		for s.Enter('{'); s.More('}'); {
			switch s.Field(toolCallMembers, &seen) {
			case "id":
				c.ID = l.name()
			case "function":
				c.Name, c.Arguments = l.called()
			default:
				s.Skip()
			}
		}
		l.calls = append(l.calls, c)
	}
}

// called reads the function of a tool call.
func (l *litellmScanner) called() (name string, arguments []byte) {
	s := &l.scan
	if !l.enter() {
		return "", nil
	}
	for seen := uint64(0); s.More('}'); {
		switch s.Field(functionMembers, &seen) {
		case "name":
			name = l.name()
		case "arguments":
			if s.Kind() == '"' {
				arguments = l.text()
			} else {
				arguments = l.raw()
			}
		case "description":
			l.word()
		default:
			s.Skip()
		}
	}
	return name, arguments
}

// tools reads a list of tool definitions, nested under "function" or flat; false for null.
func (l *litellmScanner) tools(p *prompt.Prompt) bool {
	s := &l.scan
	if !l.begin('[') {
		return false
	}
	for s.More(']') {
		var flat, nested prompt.Tool
		isNested := false
		var seen uint64
		for s.Enter('{'); s.More('}'); {
			switch name := s.Field(toolMembers, &seen); name {
			case "function":
				nested, isNested = l.function()
			default:
				l.toolMember(&flat, name)
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
func (l *litellmScanner) function() (t prompt.Tool, ok bool) {
	if !l.enter() {
		return t, false
	}
	for seen := uint64(0); l.scan.More('}'); {
		l.toolMember(&t, l.scan.Field(functionMembers, &seen))
	}
	return t, true
}

// toolMember reads the member of a function that has this name.
func (l *litellmScanner) toolMember(t *prompt.Tool, name string) {
	switch name {
	case "name":
		t.Name = l.name()
	case "description":
		t.Description = l.text()
	case "parameters":
		if t.Parameters = l.raw(); len(t.Parameters) == 0 {
			l.scan.Fail() // what null means is for the exact decoder to say
		}
	case "input_schema", "toolSpec": // other vendors' definitions
		l.scan.Fail()
	default:
		l.scan.Skip()
	}
}
