package anonymize

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"tailgate/prompt"
	"tailgate/schemas"
)

// Every special token of the fixtures stands in the content of this prompt, in every place that content has.
func hostile(tokens []string) *prompt.Prompt {
	bad := strings.Join(tokens, "")
	text := func() []prompt.Part { return said(bad + "x" + bad) }
	return &prompt.Prompt{State: schemas.PromptFull, Intact: 5, Messages: []prompt.Message{
		{Role: "system", Parts: text()},
		{Role: "user", Name: bad, Parts: text()},
		{Role: "assistant", Parts: text(), ToolCalls: []prompt.ToolCall{{ID: bad, Name: "f" + bad, Arguments: []byte(`{"k` + bad + `":"` + bad + `"}`)}}},
		{Role: "tool", ToolCallID: bad, Parts: text()},
		{Role: "user", Parts: text()},
	}, Tools: []prompt.Tool{{Name: "t" + bad, Description: []byte(bad), Parameters: []byte(`{"type":"object","properties":{"p` + bad + `":{"type":"string","description":"` + bad + `"}}}`)}}}
}

// harmless is the same prompt with the tokens spelt in a way that no tokenizer takes for one.
func harmless(tokens []string) *prompt.Prompt {
	spelt := make([]string, len(tokens))
	for i, t := range tokens {
		spelt[i] = strings.Repeat("_", len(t))
	}
	return hostile(spelt)
}

// The marks are the template's own tokens: the same where the prompt spells tokens out and where it does not.
func TestMarksAreTheTemplatesOwn(t *testing.T) {
	tokens := append(append([]string{}, chatMLControls...), llama3Controls...)
	tokens = append(tokens, "[INST]", "[/INST]", "<s>", "</s>", "<start_of_turn>", "<end_of_turn>", "<｜User｜>", "<｜Assistant｜>", "<|user|>", "<|end|>")
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	for _, name := range templateNames(t) {
		t.Run(name, func(t *testing.T) {
			tpl, err := mustTemplate(t, name).With(SpecialsOwn, tokens)
			if err != nil {
				t.Fatal(err)
			}
			if tpl.Specials() != SpecialsOwn {
				t.Error("specials are not own")
			}
			// The templates that tell reasoning from answers look for its tags.
			safe := slices.DeleteFunc(slices.Clone(tokens), func(s string) bool { return strings.Contains(s, "tool_response") })
			var a, b Rendering
			if err := tpl.Render(&a, hostile(safe)); err != nil {
				t.Fatal(err)
			}
			if err := tpl.Render(&b, harmless(safe)); err != nil {
				t.Fatal(err)
			}
			if len(b.Marks) < 4 {
				t.Errorf("only %d marks", len(b.Marks))
			}
			if !slices.Equal(a.Marks, b.Marks) {
				t.Errorf("%d marks with tokens in the content, %d without: %v %v", len(a.Marks), len(b.Marks), a.Marks, b.Marks)
			}
			last := 0
			for _, m := range a.Marks {
				own := slices.Contains(tokens, string(a.Text[m.From:m.To]))
				if name == TemplatePlain {
					own = m.To == m.From+2 && a.Text[m.From] == rs
				}
				if m.From < last || m.To > len(a.Text) || !own {
					t.Errorf("mark %v is no token", m)
				}
				last = m.To
			}
			if n := bytes.Count(a.Text, []byte("<|im_start|>")); n < 8 {
				t.Errorf("the content is not whole: %d", n)
			}
		})
	}
}

func TestWith(t *testing.T) {
	for name, want := range map[string]string{TemplatePlain: SpecialsOwn, TemplateChatML: SpecialsAll, TemplateLlama3: SpecialsAll, jinjaName("turns"): SpecialsAll} {
		if got := mustTemplate(t, name).Specials(); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	base := mustTemplate(t, TemplateChatML)
	own, err := base.With(SpecialsOwn, nil)
	if err != nil || own.Specials() != SpecialsOwn || base.Specials() != SpecialsAll {
		t.Errorf("With changed %s to %s: %v", base.Specials(), own.Specials(), err)
	}
	if _, err := base.With("some", nil); err == nil {
		t.Error("unknown specials are taken")
	}
}
