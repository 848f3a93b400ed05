package anonymize_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/anonymize"
	"tailgate/internal/fault"
	"tailgate/internal/prefix"
	"tailgate/internal/rng"
	"tailgate/prompt"
	"tailgate/schemas"
)

// completion is a prompt that is rendered as text alone: 4 bytes a token.
func completion(text string) *prompt.Prompt {
	return &prompt.Prompt{State: schemas.PromptFull, Intact: 1, Model: "larch-32b",
		Messages: []prompt.Message{{Parts: []prompt.Part{{Kind: prompt.Text, Text: []byte(text)}}}}}
}

func blocks(t *testing.T, h *anonymize.Hasher, p *prompt.Prompt) []int64 {
	t.Helper()
	ids, tokens, err := h.Blocks(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	if want := (tokens + h.BlockSize() - 1) / h.BlockSize(); len(ids) != want {
		t.Fatalf("%d ids for %d tokens in blocks of %d, want %d", len(ids), tokens, h.BlockSize(), want)
	}
	return ids
}

func shared(a, b []int64) int {
	set := make(map[int64]bool)
	for _, id := range a {
		set[id] = true
	}
	n := 0
	for _, id := range b {
		if set[id] {
			n++
		}
	}
	return n
}

func TestPartialLastBlock(t *testing.T) {
	h := freshHasher(t, anonymize.Options{BlockSize: 512})
	for tokens, want := range map[int]int{0: 0, 1: 1, 511: 1, 512: 1, 513: 2, 1024: 2, 1025: 3} {
		ids, n, err := h.Blocks(nil, completion(strings.Repeat("tide", tokens)))
		if err != nil || n != tokens || len(ids) != want {
			t.Errorf("%d tokens: %d ids over %d tokens, want %d ids (%v)", tokens, len(ids), n, want, err)
		}
	}
	whole := blocks(t, h, completion(strings.Repeat("tide", 512)))
	again := blocks(t, h, completion(strings.Repeat("tide", 513)))
	longer := blocks(t, h, completion(strings.Repeat("tide", 514)))
	if whole[0] != again[0] || again[1] == longer[1] {
		t.Error("a tail is shared by equal tails only, the block before it by all three")
	}
}

// Each letter stands for a block of text; ids are named by first appearance.
func TestChainedHashAndSecret(t *testing.T) {
	block := func(letter string) string { return strings.Repeat(letter, 64) }
	prompts := [][]string{{"s", "d", "1"}, {"s", "d", "2"}, {"a", "d", "1"}, {"s", "d", "1"}}
	h, other := freshHasher(t, anonymize.Options{}), freshHasher(t, anonymize.Options{})
	names := make(map[int64]rune)
	var got []string
	var all, elsewhere []int64
	for _, p := range prompts {
		text := ""
		for _, letter := range p {
			text += block(letter)
		}
		row := ""
		for _, id := range blocks(t, h, completion(text)) {
			if _, ok := names[id]; !ok {
				names[id] = rune('a' + len(names))
			}
			row += string(names[id])
			all = append(all, id)
		}
		got = append(got, row)
		elsewhere = append(elsewhere, blocks(t, other, completion(text))...)
	}
	if diff := cmp.Diff([]string{"abc", "abd", "efg", "abc"}, got); diff != "" {
		t.Error(diff)
	}
	if n := shared(all, elsewhere); n != 0 {
		t.Errorf("%d ids in common with another secret, want 0", n)
	}
}

func randomText(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "ab\x1eX\xf8\xff\x00"[r.IntN(7)]
	}
	return b
}

// The common prefix of two id lists is that of the prompts' full blocks, plus the tail when all is equal.
func TestCommonPrefixLaw(t *testing.T) {
	r := rng.New(1, "prefix")
	h := freshHasher(t, anonymize.Options{BlockSize: 2})
	for range 1000 {
		a := randomText(r, r.IntN(40))
		b := append([]byte(nil), a[:r.IntN(len(a)+1)]...)
		b = append(b, randomText(r, r.IntN(12))...)
		pa, pb := completion(string(a)), completion(string(b))
		ta, tb := tokensOf(a), tokensOf(b)
		want := prefix.Common(ta, tb) / 2
		if len(ta) == len(tb) && prefix.Common(ta, tb) == len(ta) {
			want = (len(ta) + 1) / 2
		}
		if got := prefix.Common(blocks(t, h, pa), blocks(t, h, pb)); got != want {
			t.Fatalf("%q and %q share %d ids, want %d", a, b, got, want)
		}
	}
}

// tokensOf cuts an escaped text in fours by itself.
func tokensOf(text []byte) []string {
	var esc []byte
	for _, b := range text {
		switch {
		case b == 0x1e:
			esc = append(esc, b, b)
		case b >= 0xf8:
			esc = append(esc, 0x1e, b-0x80)
		default:
			esc = append(esc, b)
		}
	}
	var out []string
	for ; len(esc) > 4; esc = esc[4:] {
		out = append(out, string(esc[:4]))
	}
	if len(esc) > 0 {
		out = append(out, string(esc))
	}
	return out
}

// A change in token j changes every id from block ⌊j/16⌋ on, and none before.
func TestChangeRunsToTheEnd(t *testing.T) {
	h := freshHasher(t, anonymize.Options{})
	const tokens = 100
	text := []byte(strings.Repeat("tide", tokens))
	before := blocks(t, h, completion(string(text)))
	for j := range tokens {
		text[4*j+j%4] ^= 1
		after := blocks(t, h, completion(string(text)))
		text[4*j+j%4] ^= 1
		if got := prefix.Common(before, after); got != j/16 {
			t.Fatalf("token %d: first %d ids kept, want %d", j, got, j/16)
		}
		if n := shared(before[j/16:], after[j/16:]); n != 0 {
			t.Fatalf("token %d: %d ids after the change are the same", j, n)
		}
	}
}

func TestScopesShareNothing(t *testing.T) {
	text := strings.Repeat("a tide table, ", 40)
	base := func() *prompt.Prompt { return completion(text) }
	scopes := map[string]func(p *prompt.Prompt){
		"model":      func(p *prompt.Prompt) { p.Model = "larch-8b" },
		"adapter":    func(p *prompt.Prompt) { p.Adapter = "lora-7" },
		"cache_salt": func(p *prompt.Prompt) { p.CacheSalt = "pepper" },
	}
	h := freshHasher(t, anonymize.Options{})
	for name, change := range scopes {
		p := base()
		change(p)
		if n := shared(blocks(t, h, base()), blocks(t, h, p)); n != 0 {
			t.Errorf("another %s shares %d ids", name, n)
		}
	}
	tenant := base()
	tenant.Tenant = "quillmere"
	if !cmp.Equal(blocks(t, h, base()), blocks(t, h, tenant)) {
		t.Error("tenants are split though the scope does not ask for it")
	}
	scoped := freshHasher(t, anonymize.Options{TenantScope: true})
	if n := shared(blocks(t, scoped, base()), blocks(t, scoped, tenant)); n != 0 {
		t.Errorf("tenants share %d ids in tenant scope", n)
	}
	fine := freshHasher(t, anonymize.Options{BlockSize: 8})
	if n := shared(blocks(t, h, base()), blocks(t, fine, base())); n != 0 {
		t.Errorf("block sizes share %d ids", n)
	}
}

// What was not logged whole must not look like sharing: the ids end before the gap.
func TestGapsShareNothing(t *testing.T) {
	h := freshHasher(t, anonymize.Options{})
	text := func(n int) prompt.Part {
		return prompt.Part{Kind: prompt.Text, Text: []byte(strings.Repeat("tide", n))}
	}
	chat := func(state string, intact int, parts ...prompt.Part) *prompt.Prompt {
		return &prompt.Prompt{State: state, Intact: intact, Messages: []prompt.Message{
			{Role: "system", Parts: []prompt.Part{text(40)}}, {Role: "user", Parts: parts}}}
	}
	image := prompt.Part{Kind: prompt.Image}
	for name, tc := range map[string]struct {
		p    *prompt.Prompt
		want int
	}{
		"whole":                      {chat(schemas.PromptFull, 2, text(40)), 6},
		"second message cut":         {chat(schemas.PromptTruncated, 1, text(40)), 2},
		"all cut":                    {chat(schemas.PromptRedacted, 0, text(40)), 0},
		"cut behind the end":         {chat(schemas.PromptTruncated, 2, text(40)), 5},
		"image without bytes":        {chat(schemas.PromptFull, 2, text(20), image, text(40)), 4},
		"image without bytes, first": {chat(schemas.PromptFull, 2, image, text(40)), 2},
		"nothing":                    {&prompt.Prompt{State: schemas.PromptAbsent}, 0},
	} {
		ids := blocks(t, h, tc.p)
		if len(ids) != tc.want {
			t.Errorf("%s: %d ids, want %d", name, len(ids), tc.want)
		}
		if n := prefix.Common(ids, blocks(t, h, chat(schemas.PromptFull, 2, text(40)))); n != tc.want {
			t.Errorf("%s: what came before the gap shares %d ids with the whole prompt, want %d", name, n, tc.want)
		}
	}
}

func TestBrokenPromptsAreErrors(t *testing.T) {
	h := freshHasher(t, anonymize.Options{})
	secret := completion("the secret word")
	secret.State = "sideways"
	for name, p := range map[string]*prompt.Prompt{
		"none": nil, "unknown state": secret, "intact beyond the end": {State: schemas.PromptTruncated, Intact: 1},
	} {
		given := []int64{7}
		ids, tokens, err := h.Blocks(given, p)
		if err == nil || tokens != 0 || !cmp.Equal(ids, given) {
			t.Errorf("%s: ids %v, tokens %d, error %v", name, ids, tokens, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: text in the error: %v", name, err)
		}
	}
}

func TestKindsAndEpochsCannotBeJoined(t *testing.T) {
	a, b := freshHasher(t, anonymize.Options{}), freshHasher(t, anonymize.Options{})
	pattern := regexp.MustCompile(`^[a-z]_[a-z2-7]{13}$`)
	seen := make(map[string]string)
	for _, h := range []*anonymize.Hasher{a, b} {
		for _, kind := range []string{"tenant", "session", "request", "model", "topic", "clock", "user", "unlisted", "listless"} {
			tok := h.Token(kind, []byte("quillmere"))
			if !pattern.MatchString(tok) {
				t.Errorf("token %q does not match its pattern", tok)
			}
			if was, ok := seen[tok[2:]]; ok {
				t.Errorf("%s and %s give the same token", was, kind)
			}
			seen[tok[2:]] = kind
			if tok != h.Token(kind, []byte("quillmere")) {
				t.Errorf("%s is not stable", kind)
			}
		}
	}
	if a.Key("request", []byte("ab"), []byte("c")) == a.Key("request", []byte("a"), []byte("bc")) {
		t.Error("borders between parts do not count")
	}
}

func TestConcurrentUse(t *testing.T) {
	h := freshHasher(t, anonymize.Options{})
	texts := []string{strings.Repeat("tide", 300), strings.Repeat("moon", 7), "", strings.Repeat("潮", 999)}
	want := make([][]int64, len(texts))
	for i, text := range texts {
		want[i] = blocks(t, h, completion(text))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				k := i % len(texts)
				if ids, _, err := h.Blocks(nil, completion(texts[k])); err != nil || !cmp.Equal(ids, want[k]) {
					t.Errorf("text %d hashed differently at the same time as others (%v)", k, err)
					return
				}
				h.Token("session", []byte(texts[k]))
			}
		})
	}
	wg.Wait()
}

func TestNoAllocationPerBlock(t *testing.T) {
	for name, o := range map[string]anonymize.Options{
		"chars4": {Memo: -1}, "o200k": {Tokenizer: "o200k", Memo: -1}, "memo": {Tokenizer: "o200k"},
	} {
		h := freshHasher(t, o)
		p := completion(strings.Repeat("tide", 16*1000))
		var ids []int64
		for range 6 { // until the tokenizer has made its tables
			ids, _, _ = h.Blocks(ids[:0], p)
		}
		if n := testing.AllocsPerRun(20, func() { ids, _, _ = h.Blocks(ids[:0], p) }); n > 10 || len(ids) < 500 {
			t.Errorf("%s: %v allocations for %d blocks", name, n, len(ids))
		}
	}
}

func TestOptions(t *testing.T) {
	err := anonymize.Options{Tokenizer: "bpe", Template: "jinja", BlockSize: -1}.Validate()
	if fault.Of(err) != fault.Usage {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"bpe", "jinja", "block_size"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named: %v", want, err)
		}
	}
	if _, err := anonymize.NewHasher(nil, anonymize.Options{}); fault.Of(err) != fault.Key || fault.Hint(err) == "" {
		t.Errorf("without a key: %v", err)
	}
	h := freshHasher(t, anonymize.Options{Tokenizer: "chars4"})
	if h.BlockSize() != 16 || h.TokenizerID() != "chars4/1" || !strings.HasPrefix(h.Epoch(), "b-2026") {
		t.Errorf("block size %d, tokenizer %s, epoch %s", h.BlockSize(), h.TokenizerID(), h.Epoch())
	}
}

func BenchmarkBlocks(b *testing.B) {
	for _, size := range []int{16, 512} {
		b.Run(fmt.Sprintf("block=%d", size), func(b *testing.B) {
			h := freshHasher(b, anonymize.Options{BlockSize: size, Memo: -1})
			p := completion(strings.Repeat("The harbour keeps tide tables. ", 400))
			var ids []int64
			total := 0
			b.ReportAllocs()
			for b.Loop() {
				var n int
				ids, n, _ = h.Blocks(ids[:0], p)
				total += n
			}
			b.SetBytes(int64(4 * total / b.N))
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
