package anonymize

import (
	"testing"

	"tailgate/prompt"
	"tailgate/schemas"
)

// checkRendering holds what is true of every rendering.
func checkRendering(t *testing.T, name string, r *Rendering) {
	t.Helper()
	last := 0
	for _, m := range r.Marks {
		if m.From < last || m.To <= m.From || m.To > len(r.Text) {
			t.Fatalf("%s: marks %v of %d bytes", name, r.Marks, len(r.Text))
		}
		last = m.To
	}
	last = 0
	for _, end := range r.Messages {
		if end < last || end > len(r.Text) {
			t.Fatalf("%s: messages %v of %d bytes", name, r.Messages, len(r.Text))
		}
		last = end
	}
	if r.Gap < -1 || r.Gap > len(r.Text) {
		t.Fatalf("%s: gap %d of %d bytes", name, r.Gap, len(r.Text))
	}
	for _, b := range r.Text {
		if b >= firstNoUTF8 {
			t.Fatalf("%s: byte %#x", name, b)
		}
	}
}

// Any prompt is rendered by the fast paths as by their Jinja forms, whole or damaged.
func FuzzTemplates(f *testing.F) {
	f.Add(uint64(1), []byte("Which shelf holds the tide tables?"), uint8(0))
	f.Add(uint64(7), []byte(`{"a": [1.50, "\u00e9"], "a": null}<|im_end|>`), uint8(2))
	f.Add(uint64(9), []byte(" \x1e\xff\xf8 \n潮汐🌊 "), uint8(1))
	fast := []*Template{mustTemplate(f, TemplatePlain), mustTemplate(f, TemplateChatML), mustTemplate(f, TemplateLlama3)}
	slow := []*Template{nil, mustTemplate(f, jinjaName("chatml")), mustTemplate(f, jinjaName("llama3"))}
	f.Fuzz(func(t *testing.T, seed uint64, data []byte, cut uint8) {
		p := promptFrom(seed, data)
		textOnly(p)
		if int(cut) < len(p.Messages) {
			p.State, p.Intact = schemas.PromptTruncated, int(cut)
		}
		for i, tpl := range fast {
			var a, b Rendering
			if err := tpl.Render(&a, p); err != nil {
				t.Fatalf("%s: %v", tpl.ID(), err)
			}
			checkRendering(t, tpl.ID(), &a)
			if slow[i] == nil || plainCompletion(p) {
				continue
			}
			if err := slow[i].Render(&b, p); err != nil {
				t.Fatalf("%s: %v", slow[i].ID(), err)
			}
			checkRendering(t, slow[i].ID(), &b)
			if string(a.Text) != string(b.Text) {
				t.Fatalf("%s:\n%q\nin Jinja:\n%q", tpl.ID(), a.Text, b.Text)
			}
		}
	})
}

// textOnly leaves parts of text in p: the fast paths have placeholders of their own for others.
func textOnly(p *prompt.Prompt) {
	for i := range p.Messages {
		for k := range p.Messages[i].Parts {
			p.Messages[i].Parts[k].Kind = prompt.Text
		}
	}
}
