package bpe

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// randomText is a text of words, marks, digits and whatever else borders them.
func randomText(random *rand.Rand) []byte {
	parts := []string{"the ", " of", "request", "Cache", " 12", "345", "\n", "  ", "\r\n", "中大", "来", "のに", "e\u0301", "'s", "!", "...", "{\n\t", "🙂", "\u00a0", "é", "ﬁ", "\x00", "\u3099", "ー", "·"}
	var text []byte
	for range random.IntN(60) {
		if random.IntN(6) == 0 {
			text = append(text, string(rune(random.IntN(0x3100)))...)
		} else {
			text = append(text, parts[random.IntN(len(parts))]...)
		}
	}
	return text
}

// T1, T2: vocabularies whose ids are out of the order of merges, and tokens that no merge leads to, give what
// merging by definition gives.
func TestHFMergesByDefinition(t *testing.T) {
	greedy, byRank := 0, 0
	for _, name := range hfFixtures {
		s, err := readHF(readFixture(t, name))
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEncoding(s)
		if err != nil {
			t.Fatal(err)
		}
		if e.tables().greedy != nil {
			greedy++
		} else {
			byRank++
		}
		reference, enc := newNaive(e, s.merges), e.NewEncoder()
		random := rand.New(rand.NewPCG(5, 6))
		var n normalizer
		for range 150 {
			text := randomText(random)
			want := text
			if s.nfc {
				want = n.nfc(text)
			}
			if d := cmp.Diff(reference.encode(want), enc.Append(nil, text)); d != "" {
				t.Fatalf("%s: %+q: %s", name, text, d)
			}
		}
	}
	if greedy == 0 || byRank == 0 {
		t.Errorf("%d files are merged greedily and %d by rank: both must be tried", greedy, byRank)
	}
}

// FuzzHFAppend holds every fixture to merging by definition.
func FuzzHFAppend(f *testing.F) {
	type pair struct {
		enc       *Encoder
		reference *naive
		nfc       bool
	}
	var pairs []pair
	for _, name := range hfFixtures {
		s, err := readHF(readFixture(f, name))
		if err != nil {
			f.Fatal(err)
		}
		e, err := newEncoding(s)
		if err != nil {
			f.Fatal(err)
		}
		pairs = append(pairs, pair{e.NewEncoder(), newNaive(e, s.merges), s.nfc})
	}
	f.Add([]byte("the request <|im_start|>of 123 中文 e\u0301!"))
	f.Add([]byte("\xff\xe4\xb8A<both> \r\n カー゛x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		for i, p := range pairs {
			want := appendRepaired(nil, text)
			if p.nfc {
				var n normalizer
				want = n.nfc(want)
			}
			if d := cmp.Diff(p.reference.encode(want), p.enc.Append(nil, text)); d != "" {
				t.Fatalf("%s: %+q: %s", hfFixtures[i], text, d)
			}
		}
	})
}
