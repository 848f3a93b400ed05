package anonymize

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"tailgate/internal/fault"
	"tailgate/prompt"
	"tailgate/schemas"
)

// What is no chat template, or one that is not honoured, is refused when it is read, by name.
func TestTemplatesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return jinjaPrefix + path
	}
	loop := "{% for m in messages %}{{ m.content }}{% endfor %}"
	for _, c := range []struct{ name, want string }{
		{"llama4", `template "llama4" is unknown`},
		{"jinja:", "no path is given"},
		{jinjaPrefix + filepath.Join(dir, "missing.jinja"), "no such file"},
		{jinjaPrefix + dir, "is a directory"},
		{write("prose.jinja", "Dear reader,"), "it reads no messages"},
		{write("binary.jinja", "\x00\xff\x7fELF{{"), "a tag is not closed"},
		{write("open.jinja", "{% for m in messages %}"), `"endfor" is missing`},
		{write("deaf.jinja", "{{ messages | length }}"), "does not write the text of a message"},
		{write("include.jinja", loop+"{% include '/etc/passwd' %}"), `unsupported: the tag "include"`},
		{write("filter.jinja", loop+"{{ x | xmlattr }}"), `unsupported: the filter "xmlattr"`},
		{write("fails.jinja", "{% for m in messages %}{{ m.content.nothing.at_all }}{% endfor %}"), `the attribute "at_all" of an undefined value`},
		{write("endless.jinja", loop+"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"), "too many steps"},
		{write("huge.jinja", strings.Repeat(" ", 2<<20)+loop), "longer than"},
		{write("empty.json", "{}"), "it has no chat_template"},
		{write("broken.json", `{"chat_template": `), "it is no tokenizer_config.json"},
		{write("number.json", `{"chat_template": 3}`), "neither a text nor a list"},
		{write("unnamed.json", `{"chat_template": [{"name": "rag", "template": "x"}]}`), "named default"},
	} {
		_, err := ParseTemplate(c.name)
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.Of(err) != fault.Usage || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: %v, want %q", c.name, err, c.want)
		}
	}
	both := write("both.json", `{"chat_template": [{"name": "default", "template": "D`+loop+`"}, {"name": "tool_use", "template": "T`+loop+`"}], "add_bos_token": true, "bos_token": "<s>"}`)
	tpl, err := ParseTemplate(both)
	if err != nil {
		t.Fatal(err)
	}
	p := &prompt.Prompt{State: schemas.PromptFull, Intact: 1, Messages: []prompt.Message{{Role: "user", Parts: said("hi")}}}
	var r Rendering
	for _, want := range []string{"Dhi", "Thi", "<s>hi"} {
		switch want {
		case "Thi":
			p.Tools = []prompt.Tool{{Name: "f"}}
		case "<s>hi":
			p.Tools, p.Messages[0].Role = nil, ""
		}
		if err := tpl.Render(&r, p); err != nil || string(r.Text) != want {
			t.Errorf("%q, want %q: %v", r.Text, want, err)
		}
	}
	os.WriteFile(filepath.Join(dir, templateName), []byte("F"+loop), 0o600)
	beside := mustTemplate(t, write("beside.json", `{"bos_token": "<s>"}`))
	p.Messages[0].Role = "user"
	if err := beside.Render(&r, p); err != nil || string(r.Text) != "Fhi" {
		t.Errorf("%q from the file beside: %v", r.Text, err)
	}
	if beside.ID() == tpl.ID() || !strings.HasPrefix(tpl.ID(), "jinja/") {
		t.Errorf("ids %s and %s", beside.ID(), tpl.ID())
	}
}

// Prompts of every bad shape are rendered, or refused without a word of theirs.
func TestBadPrompts(t *testing.T) {
	deep := bytes.Repeat([]byte("["), 5000)
	secret := "s3cret-text"
	for name, p := range map[string]*prompt.Prompt{
		"empty":                {},
		"no message":           {Tools: []prompt.Tool{{Name: "f"}}},
		"no content":           {Messages: []prompt.Message{{Role: "user"}, {}}},
		"only calls":           {Messages: []prompt.Message{{Role: "assistant", ToolCalls: []prompt.ToolCall{{}, {Name: secret}}}}},
		"nested calls":         {Messages: []prompt.Message{{Role: "assistant", ToolCalls: []prompt.ToolCall{{Name: "f", Arguments: []byte(`{"tool_calls": [{"function": {"arguments": "{\"tool_calls\": []}"}}]}`)}}}}},
		"deep arguments":       {Messages: []prompt.Message{{Role: "assistant", ToolCalls: []prompt.ToolCall{{Name: "f", Arguments: deep}}}}},
		"many names":           {Tools: []prompt.Tool{{Name: "f", Parameters: manyNames(3000)}}},
		"parameters no JSON":   {Tools: []prompt.Tool{{Name: "f", Parameters: []byte(secret)}}},
		"lone surrogate":       {Messages: []prompt.Message{{Role: "assistant", ToolCalls: []prompt.ToolCall{{Name: "f", Arguments: []byte(`{"a": "\ud800", "b": "\udc00\ud800x"}`)}}}}},
		"broken UTF-8":         {Messages: []prompt.Message{{Role: "us\xff\xfeer", Name: "\xf8", Parts: said("\xed\xa0\x80\xff\xf0\x9f\x98A" + secret), ToolCallID: "\xc0"}}},
		"broken UTF-8 in JSON": {Messages: []prompt.Message{{Role: "assistant", ToolCalls: []prompt.ToolCall{{Name: "\xff", Arguments: []byte("{\"\xff\": \"\xfe\\n\"}")}}}}},
		"unknown role":         {Messages: []prompt.Message{{Role: secret, Parts: said("x")}}},
		"part of no kind":      {Messages: []prompt.Message{{Role: "user", Parts: []prompt.Part{{}, {Kind: secret, Text: []byte("x")}}}}},
	} {
		p.State, p.Intact = schemas.PromptFull, len(p.Messages)
		for _, tn := range templateNames(t) {
			var r Rendering
			err := mustTemplate(t, tn).Render(&r, p)
			if err != nil {
				if refused := new(TemplateError); !errors.As(err, &refused) || !strings.HasPrefix(tn, jinjaPrefix) {
					t.Errorf("%s: %s: %v", tn, name, err)
				}
				for e := err; e != nil; e = errors.Unwrap(e) {
					if strings.Contains(fmt.Sprintf("%v %+v", e, e), secret) {
						t.Errorf("%s: %s: the error tells the text: %v", tn, name, e)
					}
				}
				if len(r.Text) != 0 {
					t.Errorf("%s: %s: text is left behind an error", tn, name)
				}
				continue
			}
			if bytes.ContainsFunc(r.Text, func(c rune) bool { return c == 0xFFFE }) {
				t.Errorf("%s: %s: a non-character", tn, name)
			}
			for _, b := range r.Text {
				if b >= firstNoUTF8 {
					t.Fatalf("%s: %s: byte %#x", tn, name, b)
				}
			}
		}
	}
	for _, tn := range templateNames(t) {
		tpl := mustTemplate(t, tn)
		if tpl.Render(&Rendering{}, nil) == nil || tpl.Render(&Rendering{}, &prompt.Prompt{Intact: 1}) == nil {
			t.Errorf("%s: a prompt that is none is rendered", tn)
		}
	}
}

func manyNames(n int) []byte {
	b := []byte("{")
	for i := range n {
		b = fmt.Appendf(b, `"name%d": %d, `, i%(n-1), i)
	}
	return append(b, `"last": []}`...)
}

// Lone surrogates and broken bytes read as U+FFFD; 10 MB of content come out whole.
func TestLargeAndBrokenText(t *testing.T) {
	for _, tn := range templateNames(t) {
		if tn == TemplatePlain {
			continue // it keeps broken bytes apart
		}
		words := 1 << 14
		if tn == TemplateChatML || tn == jinjaName("thinking") {
			words = 1 << 20
		}
		p := &prompt.Prompt{State: schemas.PromptFull, Messages: []prompt.Message{
			{Role: "user", Parts: said("a\xffb")}, {Role: "assistant", Parts: said("ok")},
			{Role: "user", Parts: []prompt.Part{{Kind: prompt.Text, Text: bytes.Repeat([]byte("tide ära "), words)}}},
		}, Intact: 3}
		var r Rendering
		if err := mustTemplate(t, tn).Render(&r, p); err != nil {
			t.Fatalf("%s: %v", tn, err)
		}
		if n := bytes.Count(r.Text, []byte("tide ära")); n != words {
			t.Errorf("%s: %d of %d words", tn, n, words)
		}
		if !bytes.Contains(r.Text, []byte("a\uFFFDb")) || !utf8.Valid(r.Text) {
			t.Errorf("%s: a broken byte is no U+FFFD", tn)
		}
	}
}

// After Clear, no array that a rendering had holds text.
func TestRenderingsAreCleared(t *testing.T) {
	for _, tn := range templateNames(t) {
		tpl := mustTemplate(t, tn)
		var r Rendering
		for _, n := range []int{5000, 10} { // the second does not cover the first
			p := &prompt.Prompt{State: schemas.PromptFull, Intact: 1, Messages: []prompt.Message{{Role: "user", Parts: said(strings.Repeat("secret", n))}}}
			if err := tpl.Render(&r, p); err != nil {
				t.Fatal(err)
			}
		}
		text := r.Text
		r.Clear()
		if bytes.Contains(text[:cap(text)], []byte("secret")) {
			t.Errorf("%s: text is left", tn)
		}
	}
}

func TestAnyByteF8(t *testing.T) {
	for n := range 40 {
		text := bytes.Repeat([]byte{0xF7}, n)
		if anyByteF8(text) {
			t.Errorf("%d bytes of 0xF7 have one", n)
		}
		for i := range n {
			for _, b := range []byte{0xF8, 0xFB, 0xFF} {
				text[i] = b
				if !anyByteF8(text) {
					t.Errorf("byte %#x at %d of %d is not seen", b, i, n)
				}
			}
			text[i] = 0xF7
		}
	}
}
