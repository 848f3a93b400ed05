package anonymize

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"tailgate/prompt"
	"tailgate/schemas"
)

// session is a conversation as agents have them: tools, a system message, and turns of mixed text.
func session(turns int) *prompt.Prompt {
	text := func(i int) []prompt.Part {
		return said(string(bytes.Repeat(fmt.Appendf(nil, "Turn %d asks where the tide tables of the delta are kept. 潮汐表 — \"quoted\", `code`;\n", i), 8)))
	}
	p := &prompt.Prompt{State: schemas.PromptFull, Messages: []prompt.Message{{Role: "system", Parts: text(0)}}}
	for i := range turns {
		p.Messages = append(p.Messages, prompt.Message{Role: "user", Parts: text(i)}, prompt.Message{Role: "assistant", Parts: text(i)})
	}
	p.Messages = append(p.Messages, prompt.Message{Role: "user", Parts: text(turns)})
	p.Intact = len(p.Messages)
	return p
}

func withTools(p *prompt.Prompt) *prompt.Prompt {
	for i := range 4 {
		p.Tools = append(p.Tools, prompt.Tool{
			Name: fmt.Sprintf("tool_%d", i), Description: []byte("Looks something up.\nCarefully."),
			Parameters: []byte(`{"type":"object","properties":{"place":{"type":"string","description":"A \"place\""},"hours":{"type":"integer","default":1.0}},"required":["place"]}`),
		})
	}
	for i := 2; i+1 < len(p.Messages); i += 4 {
		p.Messages[i].ToolCalls = []prompt.ToolCall{{ID: "call", Name: "tool_1", Arguments: []byte(`{"place": "Husum\n", "hours": 3, "list": [1, 2.5, true]}`)}}
	}
	return p
}

// contentBytes is the text that a rendering has to carry.
func contentBytes(p *prompt.Prompt) (n int) {
	for i := range p.Messages {
		for k := range p.Messages[i].Parts {
			n += len(p.Messages[i].Parts[k].Text)
		}
		for _, c := range p.Messages[i].ToolCalls {
			n += len(c.Arguments)
		}
	}
	for _, t := range p.Tools {
		n += len(t.Description) + len(t.Parameters)
	}
	return n
}

func copyText(dst []byte, p *prompt.Prompt) []byte {
	for i := range p.Messages {
		for k := range p.Messages[i].Parts {
			dst = append(dst, p.Messages[i].Parts[k].Text...)
		}
	}
	return dst
}

// BenchmarkTemplate renders sessions of 20 turns; x_vs_copy is the time against copying their texts in the same run.
func BenchmarkTemplate(b *testing.B) {
	const jinjaChatML = "jinja_chatml"
	for name, p := range map[string]*prompt.Prompt{"text": session(20), "tools": withTools(session(20))} {
		var dst []byte
		copied := bestOf(func() { dst = copyText(dst[:0], p) })
		b.Run(name+"/copy", func(b *testing.B) {
			b.SetBytes(int64(contentBytes(p)))
			for b.Loop() {
				dst = copyText(dst[:0], p)
			}
		})
		for _, tn := range []string{TemplatePlain, TemplateChatML, TemplateLlama3, jinjaChatML} {
			of := tn
			if tn == jinjaChatML {
				of = jinjaName(TemplateChatML)
			}
			tpl := mustTemplate(b, of)
			b.Run(name+"/"+tn, func(b *testing.B) {
				var r Rendering
				b.SetBytes(int64(contentBytes(p)))
				b.ReportAllocs()
				var err error
				for b.Loop() {
					err = errors.Join(err, tpl.Render(&r, p))
				}
				if err != nil {
					b.Fatal(err)
				}
				once := bestOf(func() { err = tpl.Render(&r, p) })
				b.ReportMetric(float64(once)/float64(copied), "x_vs_copy")
			})
		}
	}
}

// bestOf is the best time of f over some runs.
func bestOf(f func()) time.Duration {
	best := time.Hour
	for range 200 {
		began := time.Now()
		f()
		best = min(best, time.Since(began))
	}
	return best
}

// The fast paths allocate nothing once their buffers have grown.
func TestFastPathsDoNotAllocate(t *testing.T) {
	p := withTools(session(20))
	for _, name := range []string{TemplatePlain, TemplateChatML, TemplateLlama3} {
		tpl := mustTemplate(t, name)
		var r Rendering
		if n := testing.AllocsPerRun(20, func() {
			if err := tpl.Render(&r, p); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
