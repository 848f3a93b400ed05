package anonymize

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"tailgate/internal/jinja"
	"tailgate/prompt"
)

// builder makes a template's variables out of a prompt.
type builder struct {
	form   form
	parts  bool // the template goes through the parts of a message
	filler byte
}

func cleanText(b []byte) string {
	if !anyByteF8(b) {
		return string(b)
	}
	return string(appendClean(nil, b))
}

func nameValue(s string) jinja.Value {
	if utf8.ValidString(s) {
		return jinja.Content(s)
	}
	return jinja.Content(string(appendClean(nil, s)))
}

// roles are written by templates inside of control tokens, so these count as the template's own text.
func roleValue(m *prompt.Message) jinja.Value {
	switch m.Role {
	case "":
		return "user"
	case "system", "user", "assistant", "tool", "developer", "function", "ipython", "model":
		return m.Role
	}
	return nameValue(m.Role)
}

func (b *builder) messages(p *prompt.Prompt) jinja.Value {
	list := &jinja.List{Items: make([]jinja.Value, len(p.Messages))}
	for i := range p.Messages {
		m := &p.Messages[i]
		d := &jinja.Dict{}
		d.Set("role", roleValue(m))
		d.Set("content", b.content(m))
		if m.Name != "" {
			d.Set("name", nameValue(m.Name))
		}
		if len(m.ToolCalls) > 0 {
			d.Set("tool_calls", b.calls(m))
		}
		if m.ToolCallID != "" {
			d.Set("tool_call_id", nameValue(m.ToolCallID))
		}
		list.Items[i] = d
	}
	return list
}

func (b *builder) content(m *prompt.Message) jinja.Value {
	single := len(m.Parts) == 1 && m.Parts[0].Kind == prompt.Text
	switch {
	case len(m.Parts) == 0 && len(m.ToolCalls) > 0 && b.form.none:
		return nil
	case len(m.Parts) == 0:
		return ""
	case b.form.lists || b.parts && !single:
		return b.list(m)
	case single:
		return jinja.Content(cleanText(m.Parts[0].Text))
	}
	var s strings.Builder
	was := ""
	for i := range m.Parts {
		part := &m.Parts[i]
		if part.Kind == prompt.Text && was == prompt.Text {
			s.WriteByte('\n')
		}
		s.WriteString(b.part(part))
		was = part.Kind
	}
	return jinja.Content(s.String())
}

// part is a part as text: media by digest.
func (b *builder) part(p *prompt.Part) string {
	switch p.Kind {
	case prompt.Image, prompt.Audio, prompt.File:
		return "[" + p.Kind + " " + b.digest(p.Text) + "]"
	case prompt.Text:
		return cleanText(p.Text)
	}
	if len(p.Text) == 0 {
		return string('0' + rune(b.filler))
	}
	return cleanText(p.Text)
}

func (b *builder) digest(data []byte) string {
	if len(data) == 0 {
		data = []byte{b.filler}
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// list is content as a list of parts. A template writes a placeholder for media, without what tells one image from
// another, so their digest follows as text.
func (b *builder) list(m *prompt.Message) jinja.Value {
	list := &jinja.List{}
	add := func(kind string, text string) {
		d := &jinja.Dict{}
		d.Set("type", kind)
		if kind == prompt.Text {
			d.Set("text", jinja.Content(text))
		}
		list.Items = append(list.Items, d)
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case prompt.Image, prompt.Audio:
			add(p.Kind, "")
			add(prompt.Text, b.digest(p.Text))
		default:
			add(prompt.Text, b.part(p))
		}
	}
	return list
}

func (b *builder) calls(m *prompt.Message) jinja.Value {
	list := &jinja.List{}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		f := &jinja.Dict{}
		f.Set("name", nameValue(c.Name))
		f.Set("arguments", b.arguments(c.Arguments))
		d := &jinja.Dict{}
		if c.ID != "" {
			d.Set("id", nameValue(c.ID))
		}
		d.Set("type", "function")
		d.Set("function", f)
		list.Items = append(list.Items, d)
	}
	return list
}

// arguments are what their JSON says, as engines hand them to a template; what is no JSON stays a text.
func (b *builder) arguments(raw []byte) jinja.Value {
	empty := len(bytes.TrimSpace(raw)) == 0
	switch {
	case b.form.quoted && empty:
		return "{}"
	case b.form.quoted:
		return jinja.Content(cleanText(raw))
	case empty:
		return &jinja.Dict{}
	}
	return jsonOrText(raw)
}

func jsonOrText(raw []byte) jinja.Value {
	clean := cleanText(raw)
	if v, err := jinja.ParseJSON([]byte(clean)); err == nil {
		return v
	}
	return jinja.Content(clean)
}

func (b *builder) tools(p *prompt.Prompt) jinja.Value {
	list := &jinja.List{}
	for i := range p.Tools {
		t := &p.Tools[i]
		f := &jinja.Dict{}
		f.Set("name", nameValue(t.Name))
		if len(t.Description) > 0 {
			f.Set("description", jinja.Content(cleanText(t.Description)))
		}
		if len(bytes.TrimSpace(t.Parameters)) > 0 {
			f.Set("parameters", jsonOrText(t.Parameters))
		}
		d := &jinja.Dict{}
		d.Set("type", "function")
		d.Set("function", f)
		list.Items = append(list.Items, d)
	}
	return list
}
