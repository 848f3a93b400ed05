package anonymize

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tailgate/internal/fault"
	"tailgate/internal/jinja"
	"tailgate/prompt"
)

// Span is a half-open range of bytes.
type Span = jinja.Span

// Rendering is a prompt as the template of the served model writes it, before it is tokenized. Its memory is
// reused by the next rendering into it.
type Rendering struct {
	Text []byte
	// Marks are the control tokens that the template wrote itself, ascending and disjoint. Text of the prompt
	// that only looks like one is not among them.
	Marks []Span
	// Messages has, per message, the offset up to which Text depends on no later message: what two prompts with
	// equal leading messages share at least. Empty where the template does not write messages one by one.
	Messages []int
	// Gap is −1, or the offset from which Text depends on what was cut, redacted or not logged. (Of the tokens in
	// front of it the last may depend on what follows, too.)
	Gap int

	used int // bytes of Text's array that may hold text, beside len(Text)
}

// Clear zeroes the text and empties the rendering for reuse.
func (r *Rendering) Clear() {
	clear(r.Text[:max(len(r.Text), min(r.used, cap(r.Text)))])
	r.Text = r.Text[:0]
	r.reset()
	r.used = 0
}

func (r *Rendering) reset() {
	r.used = max(r.used, len(r.Text))
	r.Text, r.Marks, r.Messages, r.Gap = r.Text[:0], r.Marks[:0], r.Messages[:0], -1
}

// stopSharing notes a gap here; the first one counts.
func (r *Rendering) stopSharing() {
	if r.Gap < 0 {
		r.Gap = len(r.Text)
	}
}

// room makes space for n more bytes. The array that is left behind holds text, so it is cleared.
func (r *Rendering) room(n int) {
	if cap(r.Text)-len(r.Text) >= n {
		return
	}
	grown := make([]byte, len(r.Text), 2*cap(r.Text)+n)
	copy(grown, r.Text)
	clear(r.Text[:max(len(r.Text), min(r.used, cap(r.Text)))])
	r.Text, r.used = grown, 0
}

// What special-token text in the prompt's own content is to the engine.
const (
	SpecialsOwn = "own" // text: gateways of OpenAI's kind encode it as such
	SpecialsAll = "all" // the token: engines parse the rendered text whole
)

// renderer writes a prompt by one template, up to where the model begins to answer.
type renderer interface {
	render(r *Rendering, p *prompt.Prompt) error
}

// Template writes prompts as a served model's template does. It is immutable and safe for concurrent use.
type Template struct {
	id       string
	specials string
	renderer renderer
}

// jinjaPrefix is what the name of a template from a file begins with.
const jinjaPrefix = "jinja:"

// Templates names what ParseTemplate knows, for people.
const Templates = "plain, chatml, llama3, jinja:PATH"

// ParseTemplate returns a template by name: "plain", "chatml", "llama3", or "jinja:PATH" with the path of a .jinja
// file or of a tokenizer_config.json (see docs/templates.md). "" is plain. Faults are of kind fault.Usage.
func ParseTemplate(name string) (*Template, error) {
	switch {
	case name == "", name == TemplatePlain:
		return &Template{id: "plain/1", specials: SpecialsOwn, renderer: plain{}}, nil
	case name == TemplateChatML:
		return &Template{id: "chatml/1", specials: SpecialsAll, renderer: chatML{}}, nil
	case name == TemplateLlama3:
		return &Template{id: "llama3/1", specials: SpecialsAll, renderer: llama3{}}, nil
	case strings.HasPrefix(name, jinjaPrefix):
		return parseJinja(strings.TrimPrefix(name, jinjaPrefix))
	}
	return nil, fault.Mark(fmt.Errorf("template %q is unknown", name), fault.Usage, "known are "+Templates)
}

// ID names the template and its version; of a template from a file it has a digest.
func (t *Template) ID() string { return t.id }

// Specials is SpecialsOwn or SpecialsAll: whether special-token text in content is text, or the token. With
// SpecialsOwn, only Marks are tokens.
func (t *Template) Specials() string { return t.specials }

// With returns the template with another treatment of special-token text ("" = as it is) and, for a template from
// a file, the special tokens of the tokenizer, which it then marks (nil = those of its tokenizer_config.json). The
// templates that have a name know their own.
func (t *Template) With(specials string, tokens []string) (*Template, error) {
	c := *t
	switch specials {
	case "":
	case SpecialsOwn, SpecialsAll:
		c.specials = specials
	default:
		return nil, fault.Mark(fmt.Errorf("specials %q must be %s or %s", specials, SpecialsOwn, SpecialsAll), fault.Usage, "")
	}
	if j, ok := c.renderer.(*jinjaTemplate); ok && tokens != nil {
		marked := *j
		marked.marker = newMarker(slices.Clone(tokens))
		c.renderer = &marked
	}
	return &c, nil
}

// Render writes p up to where the model begins its answer. Errors never hold text of the prompt: a *TemplateError
// tells that a template from a file refuses the prompt or is not honoured in what it does.
func (t *Template) Render(r *Rendering, p *prompt.Prompt) error {
	r.reset()
	if p == nil {
		return errors.New("rendering a prompt: there is none")
	}
	if p.Intact < 0 || p.Intact > len(p.Messages) {
		return fmt.Errorf("rendering a prompt: %d of %d messages are said to be intact", p.Intact, len(p.Messages))
	}
	return t.renderer.render(r, p)
}

// TemplateError is a prompt that a template from a file does not render. It holds no text of the prompt.
type TemplateError struct {
	Line int    // of the template, 0 where it is not known
	What string // why
}

// Error names the place in the template.
func (e *TemplateError) Error() string {
	if e.Line == 0 {
		return "rendering a prompt: " + e.What
	}
	return fmt.Sprintf("rendering a prompt: line %d of the template: %s", e.Line, e.What)
}

// plainCompletion tells that p is one text without a role, which engines take without a template.
func plainCompletion(p *prompt.Prompt) bool {
	if len(p.Tools) != 0 || len(p.Messages) != 1 {
		return false
	}
	m := &p.Messages[0]
	return m.Role == "" && m.Name == "" && m.ToolCallID == "" && len(m.ToolCalls) == 0 &&
		len(m.Parts) == 1 && m.Parts[0].Kind == prompt.Text
}
