package bpe

import "testing"

func TestBorder(t *testing.T) {
	specials := []special{{"<|end|>", 300}, {"<|in|>", 301}, {"<x<|in|>", 302}, {"a<|le", 303}, {"<|left|>", 304}, {"<mask>", 305}, {"<norm>", 306}}
	e := &Encoding{}
	err := e.setSpecials(spec{specials: specials, rules: map[uint32]specialRule{305: {left: true}, 306: {normalized: true}}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"<|end|>":  true,
		"<x<|in|>": true,
		"<|in|>":   false, // a part of another
		"<|left|>": false, // another can reach into it
		"<mask>":   false, // takes white space
		"<norm>":   false, // found later
		"<none>":   false,
	} {
		if got := e.Border(text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
