package bpe

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// findNaive is leftmost-longest by its definition.
func findNaive(specials []special, text []byte) (at int, found special, ok bool) {
	for at = range text {
		for _, s := range specials {
			if bytes.HasPrefix(text[at:], []byte(s.text)) && len(s.text) > len(found.text) {
				found, ok = s, true
			}
		}
		if ok {
			return at, found, true
		}
	}
	return 0, special{}, false
}

func TestMatcherFindsLeftmostLongest(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	word := func(n int) string {
		b := make([]byte, 1+random.IntN(n))
		for i := range b {
			b[i] = "<|ab>"[random.IntN(5)]
		}
		return string(b)
	}
	for round := range 1500 {
		texts := map[string]bool{}
		for range 1 + random.IntN(8) {
			texts[word(5)] = true
			if round%3 == 0 { // all begin with the same byte
				texts = map[string]bool{"<" + word(4): true, "<" + word(2): true}
			}
		}
		var specials []special
		for s := range texts {
			specials = append(specials, special{s, uint32(len(specials))})
		}
		slices.SortFunc(specials, func(a, b special) int { return strings.Compare(a.text, b.text) })
		m := newMatcher(specials, nil)
		text := []byte(word(40))
		at, found, ok := m.find(text, 0)
		wantAt, want, wantOK := findNaive(specials, text)
		if at != wantAt || found != want || ok != wantOK {
			t.Fatalf("%v in %q: %d %v %v, want %d %v %v", specials, text, at, found, ok, wantAt, want, wantOK)
		}
	}
}

// T12: the text of a special token is text to Append and the token to AppendSpecial.
// T13: what stands beside a special token is tokenized apart.
func TestT12T13SpecialText(t *testing.T) {
	e := parseFixture(t, "qwen2")
	enc := e.NewEncoder()
	id, ok := e.Special("<|im_start|>")
	if !ok {
		t.Fatal("no such token")
	}
	text := []byte("the<|im_start|> of")
	if slices.Contains(enc.Append(nil, text), id) {
		t.Error("Append gives the special id")
	}
	want := append(append(enc.Append(nil, []byte("the")), id), enc.Append(nil, []byte(" of"))...)
	if d := cmp.Diff(want, enc.AppendSpecial(nil, text)); d != "" {
		t.Error(d)
	}
	// Beside a special token a mark begins a text of its own, and does not compose with what is before it.
	marked := enc.AppendSpecial(nil, []byte("e<|im_start|>\u0301"))
	want = append(append(enc.Append(nil, []byte("e")), id), enc.Append(nil, []byte("\u0301"))...)
	if d := cmp.Diff(want, marked); d != "" {
		t.Error(d)
	}
}

// A text without special tokens is the same to both.
func TestAppendSpecialOfPlainText(t *testing.T) {
	for _, name := range hfFixtures {
		enc := parseFixture(t, name).NewEncoder()
		for _, text := range []string{"", "the < of |> <| x", "\xff<|im_start", "中文\n  e\u0301 "} {
			if d := cmp.Diff(enc.Append(nil, []byte(text)), enc.AppendSpecial(nil, []byte(text))); d != "" {
				t.Errorf("%s, %q: %s", name, text, d)
			}
		}
	}
}

func TestClearForgetsText(t *testing.T) {
	enc := parseFixture(t, "qwen2").NewEncoder()
	enc.Append(nil, []byte("secre\u0301t"))
	if string(enc.norm.out) == "" {
		t.Fatal("the text was not normalized")
	}
	enc.Clear()
	if strings.Trim(string(enc.norm.out[:cap(enc.norm.out)]), "\x00") != "" {
		t.Error("normalized text is kept")
	}
}

// In steady state nothing is allocated, for special tokens and for text that NFC changes neither.
func TestAppendSpecialAllocatesNothing(t *testing.T) {
	enc := parseFixture(t, "qwen2").NewEncoder()
	text := []byte("<|im_start|>user\nthe cafe\u0301 \u1112\u1161\u11ab, a\u0316\u0301 of 12 中大 \xff<|im_end|>\n")
	dst := enc.AppendSpecial(nil, text)
	if n := testing.AllocsPerRun(50, func() { dst = enc.AppendSpecial(dst[:0], text) }); n != 0 {
		t.Errorf("%v allocations a text", n)
	}
}
