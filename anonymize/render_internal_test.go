package anonymize

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tailgate/internal/rng"
	"tailgate/prompt"
	"tailgate/schemas"
)

// unrender reads a plain rendering back. That it can is the proof that two prompts never render alike. Bytes
// of media come back as their digest.
func unrender(t *testing.T, data []byte) *prompt.Prompt {
	t.Helper()
	p := &prompt.Prompt{State: schemas.PromptFull}
	if len(data) > 0 && (data[0] != rs || !isMarker(data[1])) {
		_, text, _ := nextField(append([]byte{rs, 'X'}, data...))
		p.Messages = []prompt.Message{{Parts: []prompt.Part{{Kind: prompt.Text, Text: text}}}}
		return p
	}
	kinds := map[byte]string{'X': prompt.Text, 'O': prompt.Other, 'I': prompt.Image, 'A': prompt.Audio, 'F': prompt.File}
	for len(data) > 0 {
		marker, value, rest := nextField(data)
		data = rest
		var m *prompt.Message
		if n := len(p.Messages); n > 0 {
			m = &p.Messages[n-1]
		}
		switch marker {
		case 'T':
			p.Tools = append(p.Tools, prompt.Tool{Name: string(value)})
		case 'D':
			p.Tools[len(p.Tools)-1].Description = value
		case 'P':
			p.Tools[len(p.Tools)-1].Parameters = value
		case 'M':
			p.Messages = append(p.Messages, prompt.Message{Role: string(value)})
		case 'N':
			m.Name = string(value)
		case 'R':
			m.ToolCallID = string(value)
		case 'C':
			m.ToolCalls = append(m.ToolCalls, prompt.ToolCall{Name: string(value)})
		case 'J':
			m.ToolCalls[len(m.ToolCalls)-1].ID = string(value)
		case 'G':
			m.ToolCalls[len(m.ToolCalls)-1].Arguments = value
		default:
			kind, ok := kinds[marker]
			if !ok {
				t.Fatalf("marker %q", marker)
			}
			m.Parts = append(m.Parts, prompt.Part{Kind: kind, Text: value})
		}
	}
	return p
}

func isMarker(b byte) bool { return 'A' <= b && b <= 'Z' }

// nextField splits a marker and its unescaped value off data.
func nextField(data []byte) (marker byte, value, rest []byte) {
	marker, data = data[1], data[2:]
	for len(data) > 0 {
		if data[0] != rs {
			value = append(value, data[0])
			data = data[1:]
			continue
		}
		switch {
		case isMarker(data[1]):
			return marker, value, data
		case data[1] == rs:
			value = append(value, rs)
		default:
			value = append(value, data[1]+escapeShift)
		}
		data = data[2:]
	}
	return marker, value, nil
}

func mustTemplate(t testing.TB, name string) *Template {
	t.Helper()
	tpl, err := ParseTemplate(name)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// promptFrom builds a prompt out of arbitrary bytes.
func promptFrom(seed uint64, data []byte) *prompt.Prompt {
	r := rng.New(seed, "prompt")
	piece := func() []byte {
		n := min(len(data), r.IntN(9))
		out := bytes.Clone(data[:n])
		data = data[n:]
		return out
	}
	p := &prompt.Prompt{State: schemas.PromptFull}
	for range r.IntN(3) {
		p.Tools = append(p.Tools, prompt.Tool{Name: string(piece()), Description: piece(), Parameters: piece()})
	}
	kinds := []string{prompt.Text, prompt.Text, prompt.Text, prompt.Image, prompt.Audio, prompt.File, prompt.Other}
	for range r.IntN(4) {
		m := prompt.Message{Role: string(piece()), Name: string(piece()), ToolCallID: string(piece())}
		for range r.IntN(4) {
			part := prompt.Part{Kind: kinds[r.IntN(len(kinds))], Text: piece()}
			if part.Kind != prompt.Text {
				part.Text = append(part.Text, 'z') // empty media are gaps
			}
			m.Parts = append(m.Parts, part)
		}
		for range r.IntN(3) {
			m.ToolCalls = append(m.ToolCalls, prompt.ToolCall{ID: string(piece()), Name: string(piece()), Arguments: piece()})
		}
		p.Messages = append(p.Messages, m)
	}
	p.Intact = len(p.Messages)
	return p
}

func checkRoundTrip(t *testing.T, p *prompt.Prompt) {
	t.Helper()
	var r Rendering
	if err := mustTemplate(t, TemplatePlain).Render(&r, p); err != nil {
		t.Fatal(err)
	}
	if r.Gap >= 0 {
		t.Fatal("a whole prompt has a gap")
	}
	for _, b := range r.Text {
		if b >= firstNoUTF8 {
			t.Fatalf("byte %#x in a rendering", b)
		}
	}
	for i := range p.Messages {
		for j := range p.Messages[i].Parts {
			part := &p.Messages[i].Parts[j]
			if _, media := mediaMarker(part.Kind); media {
				sum := sha256.Sum256(part.Text)
				part.Text = []byte(hex.EncodeToString(sum[:]))
			}
		}
	}
	got := unrender(t, r.Text)
	if plainCompletion(p) && len(p.Messages[0].Parts[0].Text) == 0 {
		p.Messages = nil // no text and no prompt are the same
	}
	if diff := cmp.Diff(p, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(prompt.Prompt{}, "Intact")); diff != "" {
		t.Errorf("read back differently:\n%s", diff)
	}
}

func TestRenderingCanBeReadBack(t *testing.T) {
	r := rng.New(3, "bytes")
	for seed := range uint64(600) {
		data := make([]byte, r.IntN(200))
		for i := range data {
			data[i] = "ab\x1e\x1eXM\xf8\xff\x7f\x00"[r.IntN(10)]
		}
		checkRoundTrip(t, promptFrom(seed, data))
	}
}

func FuzzRender(f *testing.F) {
	f.Add(uint64(1), []byte("Which shelf holds the tide tables?"))
	f.Add(uint64(9), []byte("\x1e\x1eXM\xff\xf8\x00潮汐🌊\x1e"))
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) { checkRoundTrip(t, promptFrom(seed, data)) })
}

// No two texts of up to 9 bytes over a hard alphabet give the same tokens.
func TestChars4IsInjective(t *testing.T) {
	r := rng.New(4, "chars4")
	seen := make(map[string]string)
	for range 50_000 {
		raw := make([]byte, r.IntN(6))
		for i := range raw {
			raw[i] = "\x00\xfd\xfea\x1e}"[r.IntN(6)]
		}
		var rend Rendering
		rend.plainText(raw)
		key := ""
		for _, tok := range chars4Append(nil, rend.Text) {
			key += string([]byte{byte(tok), byte(tok >> 8), byte(tok >> 16), byte(tok >> 24)})
		}
		if was, ok := seen[key]; ok && was != string(raw) {
			t.Fatalf("%q and %q have the same tokens", was, raw)
		}
		seen[key] = string(raw)
	}
}

// Wherever an array becomes too small, or a text is written anew, no text is left in what is given up.
func TestTextLeftBehindIsCleared(t *testing.T) {
	text := func(s string) prompt.Part { return prompt.Part{Kind: prompt.Text, Text: []byte(s)} }
	for name, m := range map[string]*prompt.Message{
		"between texts":   {Parts: []prompt.Part{text("quillmere, and tide tables"), text("harbour")}},
		"behind a digest": {Parts: []prompt.Part{text("quillmere"), {Kind: prompt.File, Text: []byte("harbour")}}},
	} {
		whole := Rendering{}
		whole.parts(m, chatMLImage)
		for size := 1; size <= len(whole.Text); size++ {
			old := make([]byte, size)
			r := Rendering{Text: old[:0]}
			r.parts(m, chatMLImage)
			if !bytes.Equal(r.Text, whole.Text) {
				t.Fatalf("%s: %q", name, r.Text)
			}
			if size < len(whole.Text) && len(bytes.Trim(old, "\x00")) > 0 {
				t.Errorf("%s, in %d bytes: %q is left", name, size, old)
			}
		}
	}
	r := Rendering{Text: make([]byte, 0, 1<<10)}
	r.reset()
	r.json([]byte(`["quillmere", "quillmere", "quillmere", "quillmere", quillmere`), 4, 2, false)
	r.Clear()
	if left := bytes.Trim(r.Text[:cap(r.Text)], "\x00"); len(left) > 0 {
		t.Errorf("of JSON that is none, %q is left", left)
	}
}
