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
type Template struct{}

// ParseTemplate finds a template.
func ParseTemplate(name string) (*Template, error) {
	if name != "" && name != TemplatePlain {
		return nil, fmt.Errorf("template %q is unknown: %s is known", name, TemplatePlain)
	}
	return &Template{}, nil
}

// ID names it.
func (t *Template) ID() string { return "plain/1" }

// Render renders p.
func (t *Template) Render(r *Rendering, p *prompt.Prompt) error {
	x := renderer{buf: r.Text}
	x.render(p)
	*r = Rendering{Text: x.buf, Gap: -1}
	if x.gap {
		r.Gap = x.shared
	}
	return nil
}

func specialsOf(*Template) string { return SpecialsOwn }
