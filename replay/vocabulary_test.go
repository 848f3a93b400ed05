package replay_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"tailgate/internal/bpe"
	"tailgate/replay"
	"tailgate/schemas"
)

// tokenizer asks an embedded vocabulary and counts the questions.
type tokenizer struct {
	enc   *bpe.Encoder
	asked int
}

func newTokenizer(t testing.TB, make func() (*bpe.Encoding, error)) *tokenizer {
	t.Helper()
	e, err := make()
	if err != nil {
		t.Fatal(err)
	}
	return &tokenizer{enc: e.NewEncoder()}
}

func (k *tokenizer) ids(text string) ([]int32, error) {
	k.asked++
	var out []int32
	for _, id := range k.enc.Append(nil, []byte(text)) {
		out = append(out, int32(id))
	}
	return out, nil
}

// fourBytes counts four bytes as a token, as the simulator does.
func fourBytes(text string) ([]int32, error) {
	var out []int32
	for b := []byte(text); len(b) > 0; b = b[min(4, len(b)):] {
		id := int32(0)
		for _, c := range b[:min(4, len(b))] {
			id = id<<7 | int32(c)
		}
		out = append(out, id&0x7fffffff)
	}
	return out, nil
}

func TestTextsHaveExactlyTheAskedTokens(t *testing.T) {
	o200k, cl100k := newTokenizer(t, bpe.O200k), newTokenizer(t, bpe.Cl100k)
	for _, tok := range []struct {
		name  string
		ids   func(string) ([]int32, error)
		least int
	}{{"o200k", o200k.ids, 800}, {"cl100k", cl100k.ids, 800}, {"four bytes", fourBytes, 100}} {
		words, err := replay.NewVocabulary(tok.ids)
		if err != nil {
			t.Fatalf("%s: %v", tok.name, err)
		}
		if words.Size() < tok.least {
			t.Errorf("%s: %d words", tok.name, words.Size())
		}
		for _, prose := range []bool{false, true} {
			p := &replay.Prompts{BlockSize: 16, Seed: 7, Words: words, Prose: prose}
			for _, n := range []int32{1, 15, 16, 17, 100, 3000} {
				r := row(int64(n), n, 5, 6, 7, 8)
				got, _ := tok.ids(textOf(p, r))
				if len(got) != int(n) {
					t.Errorf("%s, prose %v: %d tokens, want %d", tok.name, prose, len(got), n)
				}
				if want := tokenIDs(p, r); prose && !slices.Equal(got, want) {
					t.Errorf("%s: the ids of prose are not those of its text", tok.name)
				}
			}
		}
	}
	if o200k.asked > 600 {
		t.Errorf("a vocabulary that has the words was asked %d times", o200k.asked)
	}
}

func TestProseIsReadable(t *testing.T) {
	words, err := replay.NewVocabulary(newTokenizer(t, bpe.O200k).ids)
	if err != nil {
		t.Fatal(err)
	}
	p := &replay.Prompts{BlockSize: 512, Words: words, Prose: true}
	text := textOf(p, row(0, 512, 1))
	if n := strings.Count(text, ". "); n < 20 || n > 120 {
		t.Errorf("%d sentences in 512 tokens: %s", n, text)
	}
	seen := map[string]bool{}
	for id := range int64(5000) {
		block := textOf(p, row(0, 64, id))
		if seen[block] {
			t.Fatalf("id %d repeats another block", id)
		}
		seen[block] = true
	}
}

func TestRangesArePartsOfTheWhole(t *testing.T) {
	words, err := replay.NewVocabulary(fourBytes)
	if err != nil {
		t.Fatal(err)
	}
	r := row(3, 70, 1, 2)
	for _, p := range []*replay.Prompts{{BlockSize: 16}, {BlockSize: 16, Words: words}, {BlockSize: 16, Words: words, Prose: true}} {
		ids, text := tokenIDs(p, r), textOf(p, r)
		for from := int32(0); from < 70; from += 7 {
			for to := from; to <= 70; to += 9 {
				var part []int32
				if err := json.Unmarshal([]byte("["+string(p.AppendIDs(nil, r, from, to))+"]"), &part); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(part, ids[from:to]) {
					t.Errorf("ids [%d, %d) differ", from, to)
				}
				if got := string(p.AppendWords(nil, r, from, to)); got != text[4*from:4*to] {
					t.Errorf("words [%d, %d) are %q", from, to, got)
				}
			}
		}
	}
}

func TestForcedAnswersAreAPureFunction(t *testing.T) {
	p := &replay.Prompts{Seed: 4, Salt: "a"}
	again := &replay.Prompts{Seed: 4, Salt: "b"}
	one, other := string(p.AppendAnswer(nil, row(1, 1), 5)), string(p.AppendAnswer(nil, row(2, 1), 5))
	if one == other || one != string(again.AppendAnswer(nil, row(1, 1), 5)) || strings.Count(one, ",") != 4 {
		t.Errorf("%s; %s", one, other)
	}
}

func TestVocabularyRefusesTokenizersThatJoinWords(t *testing.T) {
	whole := func(text string) ([]int32, error) { return []int32{int32(len(text))}, nil }
	if _, err := replay.NewVocabulary(whole); err == nil {
		t.Error("a tokenizer that makes one token of any text was accepted")
	}
	down := errors.New("down")
	if _, err := replay.NewVocabulary(func(string) ([]int32, error) { return nil, down }); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
}

func BenchmarkPrompt(b *testing.B) {
	words, err := replay.NewVocabulary(fourBytes)
	if err != nil {
		b.Fatal(err)
	}
	r := &schemas.TraceRow{InputTokens: 8192, HashIDs: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}
	for _, c := range []struct {
		name   string
		p      *replay.Prompts
		append func(*replay.Prompts, []byte) []byte
	}{
		{"ids", &replay.Prompts{}, func(p *replay.Prompts, dst []byte) []byte { return p.AppendIDs(dst, r, 0, r.InputTokens) }},
		{"words", &replay.Prompts{Words: words}, func(p *replay.Prompts, dst []byte) []byte { return p.AppendText(dst, r) }},
		{"prose", &replay.Prompts{Words: words, Prose: true}, func(p *replay.Prompts, dst []byte) []byte { return p.AppendText(dst, r) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var dst []byte
			for b.Loop() {
				dst = c.append(c.p, dst[:0])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/8192, "ns/token")
		})
	}
}
