package bpe

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wildSpec draws a vocabulary over three letters in any order of ids, with every split of a token as a merge in
// the order of the joints, as converters from tiktoken write it. Tokens of other bytes dilute it.
func wildSpec(random *rand.Rand) spec {
	tokens := make([][]byte, 256)
	ids := map[string]uint32{}
	add := func(t string) {
		if _, twice := ids[t]; !twice {
			ids[t] = uint32(len(tokens))
			tokens = append(tokens, []byte(t))
		}
	}
	for b := range tokens {
		tokens[b] = []byte{byte(b)}
		ids[string(tokens[b])] = uint32(b)
	}
	for range 20 + random.IntN(100) {
		word := make([]byte, 2+random.IntN(5))
		for i := range word {
			word[i] = "abc"[random.IntN(3)]
		}
		add(string(word))
	}
	for i := range 3000 {
		add(string([]byte{0x80 | byte(i>>7), 0x80 | byte(i)}))
	}
	merges := [][2]uint32{}
	for _, t := range tokens {
		for i := 1; i < len(t); i++ {
			l, okL := ids[string(t[:i])]
			r, okR := ids[string(t[i:])]
			if okL && okR {
				merges = append(merges, [2]uint32{l, r})
			}
		}
	}
	return spec{tokens: tokens, merges: merges, split: func(text []byte, _ int) int { return len(text) }, whole: random.IntN(2) == 0}
}

// T1: where some tokens are made of tokens of higher id, the greedy encoder gives what merging by definition gives.
func TestWildTokens(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	wild, unreached := 0, 0
	for range 20 {
		s := wildSpec(random)
		e, err := newEncoding(s)
		if err != nil {
			t.Fatal(err)
		}
		if e.tables().greedy == nil {
			t.Fatal("merged by rank")
		}
		wild += e.tables().greedy.wilds
		for id := 256; id < len(s.tokens); id++ {
			if e.tables().greedy.halves[id][0]&idMask == 0 {
				unreached++
			}
		}
		reference, enc := newNaive(e, s.merges), e.NewEncoder()
		for range 100 {
			text := make([]byte, 1+random.IntN(60))
			for i := range text {
				text[i] = "abc"[random.IntN(3)]
			}
			if d := cmp.Diff(reference.encode(text), enc.Append(nil, text)); d != "" {
				t.Fatalf("%q: %s", text, d)
			}
		}
	}
	if wild < 50 || unreached < 50 {
		t.Errorf("%d wild tokens and %d that nothing merges to: the test tries nothing", wild, unreached)
	}
}

// A vocabulary that is wild all over merges by rank.
func TestTooManyWildTokens(t *testing.T) {
	e := parseFixture(t, "llama3")
	if e.tables().greedy != nil {
		t.Error("ids out of order, but merged greedily")
	}
}
