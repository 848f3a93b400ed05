package anonymize

import (
	"bytes"
	"slices"
	"testing"

	"tailgate/prompt"
	"tailgate/schemas"
)

func testKeys() *Keys {
	return &Keys{epoch: "b-test", block: [keySize]byte{1}, pseudonym: [keySize]byte{2}}
}

func oneText(role string, text []byte) *prompt.Prompt {
	return &prompt.Prompt{State: schemas.PromptFull, Intact: 1, Messages: []prompt.Message{
		{Role: role, Parts: []prompt.Part{{Kind: prompt.Text, Text: text}}}}}
}

// After use, no buffer that a worker keeps holds text, nor does the memo after Close.
func TestBuffersAreCleared(t *testing.T) {
	for _, tokenizer := range []string{TokenizerChars4, TokenizerBytes, TokenizerO200k} {
		h, err := NewHasher(testKeys(), Options{Tokenizer: tokenizer})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.Blocks(nil, oneText("user", bytes.Repeat([]byte("secret words\xff"), 1000))); err != nil {
			t.Fatal(err)
		}
		w := h.free[0]
		checkZero(t, tokenizer+": rendering", w.text.Text[:cap(w.text.Text)])
		checkZero(t, tokenizer+": tokens", w.tokens[:cap(w.tokens)])
		checkZero(t, tokenizer+": words", w.words[:cap(w.words)])
		checkZero(t, tokenizer+": block", w.chain.buf[:cap(w.chain.buf)])
		used := 0
		h.Close()
		for i := range h.memo.shards {
			s := &h.memo.shards[i]
			for _, g := range []*memoGeneration{&s.young, &s.old} {
				used += cap(g.words)
				checkZero(t, tokenizer+": memo", g.words[:cap(g.words)])
				for _, slot := range g.slots {
					if slot != (memoSlot{}) {
						t.Fatalf("%s: the memo has a key after Close", tokenizer)
					}
				}
			}
		}
		if used == 0 {
			t.Errorf("%s: the memo was not used, so this test shows nothing", tokenizer)
		}
	}
}

func checkZero[T byte | uint32](t *testing.T, what string, b []T) {
	t.Helper()
	if slices.ContainsFunc(b, func(v T) bool { return v != 0 }) {
		t.Errorf("%s is left after use", what)
	}
}

// An array that growth leaves behind is zeroed.
func TestGrowthLeavesNothing(t *testing.T) {
	old := []uint32{1, 2, 3}
	grown := roomFor(old, 10)
	if !slices.Equal(grown, []uint32{1, 2, 3}) || cap(grown) < 13 || slices.Max(old) != 0 {
		t.Errorf("grown to %v (of %d), left behind %v", grown, cap(grown), old)
	}
}

// A 10 MB prompt is hashed, and its buffers are not kept.
func TestLargePrompt(t *testing.T) {
	h, err := NewHasher(testKeys(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids, tokens, err := h.Blocks(nil, oneText("user", bytes.Repeat([]byte("tide"), 10<<18)))
	if err != nil || tokens != 10<<18+2 || len(ids) != (tokens+15)/16 {
		t.Errorf("%d ids over %d tokens: %v", len(ids), tokens, err)
	}
	if w := h.free[0]; cap(w.text.Text) > keepBytes || cap(w.tokens) > keepBytes/wordBytes {
		t.Error("a huge buffer was kept")
	}
}
