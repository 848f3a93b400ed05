package anonymize

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tailgate/internal/prefix"
	"tailgate/internal/rng"
	"tailgate/prompt"
	"tailgate/schemas"
)

// Two prompts that are alike as far as one of them is whole share what lies before its gap, whatever the other goes on
// with: nothing behind the gap may be compared, and nothing before it may be wrong.
func TestNothingBehindAGapIsShared(t *testing.T) {
	r := rng.New(5, "gaps")
	for _, name := range templateNames(t) {
		tpl := mustTemplate(t, name)
		shared, gaps := 0, 0
		for _, c := range loadChats(t) {
			whole := c.Prompt()
			for k := 0; k <= len(whole.Messages); k += 1 + k/8 {
				state := []string{schemas.PromptTruncated, schemas.PromptRedacted, schemas.PromptEncrypted}[r.IntN(3)]
				cut := damaged(c.Prompt(), k, state, r)
				var a, b Rendering
				if tpl.Render(&a, cut) != nil || tpl.Render(&b, whole) != nil {
					continue // a template from a file may refuse either
				}
				if a.Gap < 0 || a.Gap > len(a.Text) {
					t.Fatalf("%s: %s: a prompt that is %s after %d messages has gap %d of %d", name, c.Name, state, k, a.Gap, len(a.Text))
				}
				if k == 0 && a.Gap != 0 && name != TemplateLlama3 && name != TemplatePlain {
					t.Errorf("%s: %s: gap %d, but perhaps the tools were damaged", name, c.Name, a.Gap)
				}
				if n := prefix.Common(a.Text, b.Text); n < a.Gap {
					t.Errorf("%s: %s: %s after %d messages: gap %d, but the whole prompt parts at %d: %q", name, c.Name, state, k, a.Gap, n, a.Text[n:a.Gap])
				}
				shared += a.Gap
				gaps++
			}
		}
		if name == jinjaName("wide") {
			continue // system messages move to its front, also those that were cut: hardly anything is sure
		}
		if gaps < 100 || shared < 50*gaps {
			t.Errorf("%s: %d gaps with %d bytes before them: the test sees nothing", name, gaps, shared)
		}
	}
}

// damaged is p with all from message k on damaged: cut, replaced, or gone.
func damaged(p *prompt.Prompt, k int, state string, r *rand.Rand) *prompt.Prompt {
	p.State, p.Intact = state, k
	switch r.IntN(3) {
	case 0:
		p.Messages = p.Messages[:k]
	case 1:
		for i := k; i < len(p.Messages); i++ {
			p.Messages[i].Parts = said(fmt.Sprintf("[redacted %d]", i))
		}
	default:
		if k < len(p.Messages) {
			p.Messages = p.Messages[:k+1]
			for i := range p.Messages[k].Parts {
				part := &p.Messages[k].Parts[i]
				part.Text = part.Text[:len(part.Text)/2]
			}
			p.Messages[k].ToolCalls = nil
		}
	}
	return p
}

func mediaPrompt(kind string, data string) *prompt.Prompt {
	return &prompt.Prompt{State: schemas.PromptFull, Intact: 3, Messages: []prompt.Message{
		{Role: "system", Parts: said("Describe.")},
		{Role: "user", Parts: []prompt.Part{{Kind: prompt.Text, Text: []byte("Look:")}, {Kind: kind, Text: []byte(data)}, {Kind: prompt.Text, Text: []byte("well?")}}},
		{Role: "assistant", Parts: said("Fine.")},
	}}
}

// Different media never share from where they stand, equal ones do, and missing bytes are a gap there.
func TestMedia(t *testing.T) {
	for _, name := range templateNames(t) {
		tpl := mustTemplate(t, name)
		for _, kind := range []string{prompt.Image, prompt.Audio, prompt.File, prompt.Other} {
			var a, b, same, missing Rendering
			for _, c := range []struct {
				r    *Rendering
				data string
			}{{&a, "one picture"}, {&same, "one picture"}, {&b, "two pictures"}, {&missing, ""}} {
				if err := tpl.Render(c.r, mediaPrompt(kind, c.data)); err != nil {
					t.Fatalf("%s: %s: %v", name, kind, err)
				}
			}
			if string(a.Text) != string(same.Text) {
				t.Errorf("%s: equal %s parts differ", name, kind)
			}
			n := prefix.Common(a.Text, b.Text)
			if n == len(a.Text) || n == len(b.Text) {
				t.Errorf("%s: different %s parts are alike", name, kind)
			}
			if a.Gap >= 0 {
				t.Errorf("%s: a whole %s part is a gap", name, kind)
			}
			if m := prefix.Common(a.Text, missing.Text); missing.Gap < 0 || missing.Gap > m || missing.Gap == 0 {
				t.Errorf("%s: a missing %s part has gap %d, the common prefix is %d", name, kind, missing.Gap, m)
			}
		}
	}
}

// A template that does not write a part at all shares two pictures; that it does is a reason not to use it.
func TestMediaUnseenIsAGap(t *testing.T) {
	tpl, err := newJinja("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}{% if c.type == 'image' %}<img>{% endif %}{% endfor %}{% endif %}{% endfor %}", "", &tokenizerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var r Rendering
	if err := tpl.Render(&r, mediaPrompt(prompt.Image, "")); err != nil {
		t.Fatal(err)
	}
	if r.Gap < 0 {
		t.Error("a missing picture is no gap")
	}
}
