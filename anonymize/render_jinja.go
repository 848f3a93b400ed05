package anonymize

import (
	"context"
	"errors"

	"tailgate/internal/jinja"
	"tailgate/internal/prefix"
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

func (j *jinjaTemplate) render(r *Rendering, p *prompt.Prompt) error {
	r.Clear()
	if err := j.write(r, p, true, 0, jinja.Limits{}); err != nil {
		return err
	}
	if !p.Full() && p.Intact == 0 {
		r.Gap = 0
		return nil
	}
	if !p.Full() {
		r.Gap = len(r.Text)
	}
	return j.findGap(r, p)
}

// write renders p; with more, up to where the model begins to answer. Filler stands for the bytes of media that were not logged.
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
func (j *jinjaTemplate) findGap(r *Rendering, p *prompt.Prompt) error {
	var again Rendering
	compare := func(q *prompt.Prompt, more bool, filler byte) {
		again.Clear()
		if j.write(&again, q, more, filler, jinja.Limits{}) == nil {
			n := prefix.Common(r.Text, again.Text)
			if n < len(r.Text) || n < len(again.Text) {
				if r.Gap < 0 || n < r.Gap {
					r.Gap = n
				}
			}
		}
	}
	if missingMedia(p) {
		before := r.Gap
		compare(p, true, 1)
		if r.Gap == before && before < 0 {
			r.Gap = len(r.Text) // the template does not show it
		}
	}
	if !p.Full() {
		q := *p
		for _, end := range endings {
			q.Messages = append(p.Messages[:p.Intact:p.Intact], end...)
			compare(&q, true, 1)
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
