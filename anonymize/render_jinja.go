package anonymize

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"unicode/utf8"

	"tailgate/internal/jinja"
	"tailgate/prompt"
)

// jinjaTemplate is a template from a file. Texts become strings of Go on the way, which cannot be cleared: they
// are left to the garbage collector.
type jinjaTemplate struct {
	chat, tools *jinja.Template        // for prompts without and with tools
	vars        map[string]jinja.Value // tokens
	begin       string                 // what the tokenizer puts before a plain completion
	form        form
	marker      *marker
}

// form is how a template wants what templates differ in.
type form struct {
	lists  bool // a text as a list of one part, not as a string
	none   bool // None as the content of a message that only calls tools, not ""
	quoted bool // arguments as JSON text, not as what it says
}

func (j *jinjaTemplate) render(r *Rendering, p *prompt.Prompt, more bool) error {
	r.Clear()
	if err := j.write(r, p, more, 0, jinja.Limits{}); err != nil {
		return err
	}
	if !p.Full() && p.Intact == 0 {
		r.Gap = 0
		return nil
	}
	if !p.Full() {
		r.Gap = len(r.Text)
	}
	return j.findGap(r, p, more)
}

// write renders p. Filler stands for the bytes of media that were not logged.
func (j *jinjaTemplate) write(r *Rendering, p *prompt.Prompt, more bool, filler byte, limits jinja.Limits) error {
	if plainCompletion(p) {
		r.contentString(j.begin)
		if j.begin != "" {
			r.Marks = append(r.Marks, Span{From: 0, To: len(j.begin)})
		}
		r.content(p.Messages[0].Parts[0].Text)
		return nil
	}
	b := &builder{form: j.form, filler: filler}
	t := j.chat
	vars := make(map[string]jinja.Value, len(j.vars)+4)
	for name, v := range j.vars {
		vars[name] = v
	}
	vars["tools"], vars["documents"], vars["add_generation_prompt"] = nil, nil, more
	if len(p.Tools) > 0 {
		t = j.tools
		vars["tools"] = b.tools(p)
	}
	b.parts = j.form.lists || t.LoopsOver("content")
	vars["messages"] = b.messages(p)
	out := jinja.Output{Text: r.Text}
	err := t.Render(context.Background(), &out, vars, limits)
	r.Text = out.Text
	if err != nil {
		r.Clear()
		var fault *jinja.Error
		if errors.As(err, &fault) {
			return &TemplateError{Line: fault.Line, What: fault.What}
		}
		return err
	}
	r.Marks = j.marker.find(r.Marks, r.Text, out.Spans)
	return nil
}

// endings are what may have stood in the place of what was cut: each is a prompt whose rendering parts from the
// others' as early as the template lets it.
var endings = [][]prompt.Message{
	{},
	{{Role: "user", Parts: said("0")}},
	{{Role: "assistant", Parts: said("1")}},
	{{Role: "tool", Parts: said("2")}},
	{{Role: "system", Parts: said("3")}},
	{{Role: "user", Parts: said("<tool_response>\n4\n</tool_response>")}},
	{{Role: "assistant", Parts: said("<think>\n5\n</think>\n\n6")}},
	{{Role: "assistant", ToolCalls: []prompt.ToolCall{{ID: "call_7", Name: "seven", Arguments: []byte("{}")}}}, {Role: "tool", Parts: said("7")}},
	{{Role: "user", Parts: said("8")}, {Role: "assistant", Parts: said("9")}, {Role: "user", Parts: said("10")}},
	{{Role: "assistant", Parts: said("11")}, {Role: "user", Parts: said("12")}},
}

func said(text string) []prompt.Part { return []prompt.Part{{Kind: prompt.Text, Text: []byte(text)}} }

// findGap sets Gap to the first byte that would be another had the damaged parts been others: p is rendered again
// with each ending in place of what was cut, and with other bytes for media that are missing.
func (j *jinjaTemplate) findGap(r *Rendering, p *prompt.Prompt, more bool) error {
	var again Rendering
	compare := func(q *prompt.Prompt, more bool, filler byte) {
		again.Clear()
		if j.write(&again, q, more, filler, jinja.Limits{}) == nil {
			n := commonPrefix(r.Text, again.Text)
			if n < len(r.Text) || n < len(again.Text) {
				if r.Gap < 0 || n < r.Gap {
					r.Gap = n
				}
			}
		}
	}
	if missingMedia(p) {
		before := r.Gap
		compare(p, more, 1)
		if r.Gap == before && before < 0 {
			r.Gap = len(r.Text) // the template does not show it
		}
	}
	if !p.Full() {
		q := *p
		for _, end := range endings {
			q.Messages = append(p.Messages[:p.Intact:p.Intact], end...)
			compare(&q, more, 1)
			compare(&q, false, 1)
			clear(q.Messages[p.Intact:])
		}
	}
	again.Clear()
	return nil
}

func missingMedia(p *prompt.Prompt) bool {
	for i := range p.Messages {
		for k := range p.Messages[i].Parts {
			if part := &p.Messages[i].Parts[k]; part.Kind != prompt.Text && len(part.Text) == 0 {
				return true
			}
		}
	}
	return false
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// builder makes a template's variables out of a prompt.
type builder struct {
	form   form
	parts  bool // the template goes through the parts of a message
	filler byte
}

func cleanText(b []byte) string {
	if utf8.Valid(b) {
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
