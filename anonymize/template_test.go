package anonymize

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/prefix"
	"tailgate/prompt"
)

// The fast paths write what the Jinja form of the same template writes, control tokens included.
func TestFastPathsEqualJinja(t *testing.T) {
	for _, name := range []string{TemplateChatML, TemplateLlama3} {
		fast, slow := mustTemplate(t, name), mustTemplate(t, jinjaName(name))
		for _, c := range loadChats(t) {
			if c.Name == "image" { // a template of text alone has no placeholder
				continue
			}
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				p := c.Prompt()
				var a, b Rendering
				if err := errors.Join(fast.Render(&a, p), slow.Render(&b, p)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(b.Text), string(a.Text)); diff != "" {
					t.Errorf("the fast path differs (-jinja +fast):\n%s", diff)
				}
				known := func(r *Rendering) (out []string) {
					controls := append(append([]string{}, chatMLControls...), llama3Controls...)
					for _, m := range r.Marks {
						for _, c := range controls {
							if string(r.Text[m.From:m.To]) == c {
								out = append(out, c)
							}
						}
					}
					return out
				}
				if diff := cmp.Diff(known(&b), known(&a)); diff != "" {
					t.Errorf("other control tokens (-jinja +fast):\n%s", diff)
				}
			})
		}
	}
}

// A turn's prompt, up to where the model begins to answer, is where the next turn's prompt begins.
func TestTurnsContinueTheChain(t *testing.T) {
	for _, name := range []string{TemplatePlain, TemplateChatML, TemplateLlama3, jinjaName("chatml"), jinjaName("turns")} {
		tpl := mustTemplate(t, name)
		for _, c := range loadChats(t) {
			p := c.Prompt()
			for i := 1; i+1 < len(p.Messages); i++ {
				if p.Messages[i].Role != "assistant" || p.Messages[i+1].Role == "assistant" {
					continue
				}
				before, next := *p, *p
				before.Messages, before.Intact = p.Messages[:i], i
				next.Messages, next.Intact = p.Messages[:i+2], i+2
				var a, b Rendering
				err := errors.Join(tpl.Render(&a, &before), tpl.Render(&b, &next))
				if refused := new(TemplateError); errors.As(err, &refused) {
					continue // the template does without arguments that are no JSON
				}
				if err != nil {
					t.Fatalf("%s: %s: %v", name, c.Name, err)
				}
				if n := prefix.Common(a.Text, b.Text); n < len(a.Text) {
					t.Errorf("%s: %s: turn %d shares %d of %d bytes", name, c.Name, i, n, len(a.Text))
				}
			}
		}
	}
}

// Up to Messages[i], the text depends on nothing behind message i.
func TestMessagesAreStable(t *testing.T) {
	for _, name := range []string{TemplatePlain, TemplateChatML, TemplateLlama3} {
		tpl := mustTemplate(t, name)
		for _, c := range loadChats(t) {
			p := c.Prompt()
			var whole, part Rendering
			if err := tpl.Render(&whole, p); err != nil {
				t.Fatal(err)
			}
			if len(whole.Messages) != len(p.Messages) {
				t.Fatalf("%s: %s: %d offsets for %d messages", name, c.Name, len(whole.Messages), len(p.Messages))
			}
			for i := range p.Messages {
				q := *p
				q.Messages = append(p.Messages[:i+1:i+1], prompt.Message{Role: "tool", Parts: said("other")}, prompt.Message{Role: "user", Parts: said("end")})
				q.Intact = len(q.Messages)
				if err := tpl.Render(&part, &q); err != nil {
					t.Fatal(err)
				}
				end := whole.Messages[i]
				if len(part.Text) < end || !bytes.Equal(part.Text[:end], whole.Text[:end]) || part.Messages[i] != end {
					t.Errorf("%s: %s: message %d is not stable", name, c.Name, i)
				}
			}
		}
	}
}

// A template renders for many at once.
func TestTemplatesAreSafeForConcurrentUse(t *testing.T) {
	all := loadChats(t)
	for _, name := range templateNames(t) {
		tpl := mustTemplate(t, name)
		want := make([]string, len(all))
		var r Rendering
		for i, c := range all {
			if tpl.Render(&r, c.Prompt()) == nil {
				want[i] = string(r.Text)
			}
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				var r Rendering
				for i, c := range all {
					if err := tpl.Render(&r, c.Prompt()); err == nil && string(r.Text) != want[i] {
						t.Errorf("%s: %s renders otherwise beside others", name, c.Name)
					}
				}
			})
		}
		group.Wait()
	}
}
