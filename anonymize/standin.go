package anonymize

import (
	"fmt"

	"tailgate/prompt"
)

// Span is a byte range.
type Span struct{ Start, End int }

// Rendering is a rendered prompt.
type Rendering struct {
	Text     []byte
	Marks    []Span
	Messages []int
	Gap      int
}

// Template renders.
type Template struct{ chatml bool }

// ParseTemplate finds a template.
func ParseTemplate(name string) (*Template, error) {
	if name != "" && name != TemplatePlain && name != "chatml" {
		return nil, fmt.Errorf("template %q is unknown: %s is known", name, TemplatePlain)
	}
	return &Template{name == "chatml"}, nil
}

// ID names it.
func (t *Template) ID() string { return "plain/1" }

// Render renders p.
func (t *Template) Render(r *Rendering, p *prompt.Prompt) error {
	if t.chatml {
		r.Text, r.Marks, r.Gap = r.Text[:0], r.Marks[:0], -1
		mark := func(s string) {
			r.Marks = append(r.Marks, Span{len(r.Text), len(r.Text) + len(s)})
			r.Text = append(r.Text, s...)
		}
		for _, m := range p.Messages {
			mark("<|im_start|>")
			r.Text = append(append(r.Text, m.Role...), '\n')
			for _, x := range m.Parts {
				r.Text = append(r.Text, x.Text...)
			}
			mark("<|im_end|>")
			r.Text = append(r.Text, '\n')
		}
		mark("<|im_start|>")
		r.Text = append(r.Text, "assistant\n"...)
		return nil
	}
	x := renderer{buf: r.Text}
	x.render(p)
	*r = Rendering{Text: x.buf, Gap: -1}
	if x.gap {
		r.Gap = x.shared
	}
	return nil
}

func specialsOf(*Template) string { return SpecialsOwn }
