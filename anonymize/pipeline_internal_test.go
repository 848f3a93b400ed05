package anonymize

import (
	"bytes"
	"fmt"
	"hash"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"tailgate/internal/rng"
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

// The common prefix of two lists of ids is that of the prompts' full blocks of tokens, plus the tail where all is
// equal.
func TestCommonPrefixLawOfVocabularies(t *testing.T) {
	h, err := NewHasher(testKeys(), Options{Tokenizer: TokenizerO200k, Template: TemplateChatML, BlockSize: 2, Memo: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	tokensOf := func(p *prompt.Prompt) []uint32 {
		var r Rendering
		if err := h.def.template.Render(&r, p); err != nil {
			t.Fatal(err)
		}
		return newCoder(h.def.vocab).append(nil, r.Text, r.Marks, 0, h.def.all)
	}
	r := rng.New(2, "prefix")
	text := func() []byte {
		var b []byte
		for range r.IntN(60) {
			b = append(b, []string{" tide", "潮", "ebb", "\n", "  ", "é", "4", "!", "'s", "<|im_end|>"}[r.IntN(10)]...)
		}
		return b
	}
	for range 150 {
		a := text()
		b := append(bytes.Clone(a[:r.IntN(len(a)+1)]), text()...)
		pa, pb := oneText("user", a), oneText("user", b)
		ta, tb := tokensOf(pa), tokensOf(pb)
		same := 0
		for same < min(len(ta), len(tb)) && ta[same] == tb[same] {
			same++
		}
		want := same / 2
		if same == len(ta) && same == len(tb) {
			want = (same + 1) / 2
		}
		ia, na, errA := h.Blocks(nil, pa)
		ib, nb, errB := h.Blocks(nil, pb)
		if errA != nil || errB != nil || na != len(ta) || nb != len(tb) {
			t.Fatalf("%d and %d tokens, want %d and %d (%v, %v)", na, nb, len(ta), len(tb), errA, errB)
		}
		got := 0
		for got < min(len(ia), len(ib)) && ia[got] == ib[got] {
			got++
		}
		if got != want {
			t.Fatalf("%d ids in common, want %d", got, want)
		}
	}
}

// Ten thousand different prompts take no more memory than one thousand.
func TestMemoryIsBounded(t *testing.T) {
	const memo = 4 << 20
	h, err := NewHasher(testKeys(), Options{Tokenizer: TokenizerO200k, Template: TemplateChatML, Memo: memo})
	if err != nil {
		t.Fatal(err)
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var ids []int64
	var after int64
	for i := range 10_000 {
		text := fmt.Appendf(nil, "%d ferries of pier %d leave at %d, says table %d; ", i, i*7, i*13, i*31)
		if ids, _, err = h.Blocks(ids[:0], oneText("user", bytes.Repeat(text, 10))); err != nil {
			t.Fatal(err)
		}
		if i == 1000 {
			after = heap()
		}
	}
	if grown := heap() - after; grown > memo+1<<20 {
		t.Errorf("the heap grew by %d bytes over 9,000 prompts", grown)
	}
	if n := memoBytes(h.memo); n > memo || n < memo/2 {
		t.Errorf("the memo has %d bytes of %d", n, memo)
	}
}

// A hash keeps the bytes that do not fill its block: none of them are left of a prompt or a name.
func TestNothingStaysInAHash(t *testing.T) {
	c := newBlockChain(bytes.Repeat([]byte{1}, keySize))
	c.start(Scope{BlockSize: 3})
	c.append(nil, []uint32{0x51756c6c, 0x6d657265, 0x54696465, 0x5175})
	k := &Keys{}
	h, err := NewHasher(k, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.Token(KindTenant, []byte("Quillmere"))
	h.Key(KindTenant, []byte("Quillmere"))
	name := h.kind(KindTenant).states.Get().(*kindState)
	for what, mac := range map[string]hash.Hash{"tokens": c.mac, "a name": name.mac} {
		if held := bytesIn(reflect.ValueOf(mac), 0); bytes.Contains(held, []byte("uQ")) || bytes.Contains(held, []byte("Quill")) || len(held) < 128 {
			t.Errorf("%s: %q", what, held)
		}
	}
}

// bytesIn are all bytes that a value holds or points to.
func bytesIn(v reflect.Value, depth int) (out []byte) {
	if depth > 8 {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return bytesIn(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out = append(out, bytesIn(v.Field(i), depth+1)...)
		}
	case reflect.Array, reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			for i := range v.Len() {
				out = append(out, byte(v.Index(i).Uint()))
			}
		}
	}
	return out
}
