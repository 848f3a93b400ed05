package bpe

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tailgate/internal/textcorpus"
)

// randomVocabulary trains a small vocabulary on random text over few letters, so that merges overlap often. With
// shuffle some ids change places, which breaks monotony.
func randomVocabulary(r *rand.Rand, size int, shuffle bool) (tokens [][]byte, merges [][2]uint32) {
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	seen := map[string]bool{}
	letters := []uint32{'a', 'b', 'c'}[:2+r.IntN(2)]
	for len(tokens) < 256+size {
		pick := func() uint32 {
			if r.IntN(3) > 0 && len(tokens) > 256 {
				return uint32(256 + r.IntN(len(tokens)-256))
			}
			return letters[r.IntN(len(letters))]
		}
		l, r := pick(), pick()
		joint := string(tokens[l]) + string(tokens[r])
		if len(joint) > 24 || seen[joint] {
			size--
			continue
		}
		seen[joint] = true
		tokens = append(tokens, []byte(joint))
		merges = append(merges, [2]uint32{l, r})
	}
	if n := len(tokens); shuffle && n > 260 {
		for range 3 {
			i, j := 256+r.IntN(n-256), 256+r.IntN(n-256)
			tokens[i], tokens[j] = tokens[j], tokens[i]
		}
	}
	return tokens, merges
}

func wholeText(text []byte, _ int) int { return len(text) }

// Every way of merging gives what the definition gives, for vocabularies that are monotone and that are not, with merges
// listed and not listed.
func TestMergingIsByRank(t *testing.T) {
	ways := map[string]int{}
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 1))
		tokens, merges := randomVocabulary(r, 1+r.IntN(60), seed%3 == 1)
		s := spec{id: "test", tokens: tokens, whole: r.IntN(2) == 0, split: wholeText}
		if seed%2 == 0 {
			s.merges = merges
			if seed%3 == 1 { // the list no longer fits the ids; list pairs of the shuffled vocabulary
				s.merges = shuffledMerges(r, tokens)
			}
		}
		e, err := newEncoding(s)
		if err != nil {
			t.Fatal(err)
		}
		ways[fmt.Sprintf("greedy %v, listed %v", e.tables().greedy != nil, s.merges != nil)]++
		n, enc := newNaive(e, s.merges), e.NewEncoder()
		for range 60 {
			text := make([]byte, 1+r.IntN(40)*(1+9*r.IntN(2)))
			for i := range text {
				text[i] = "abc"[r.IntN(3)]
			}
			want := n.encode(text)
			for pass := range 2 { // the second from the cache
				if got := enc.Append(nil, text); !slices.Equal(got, want) {
					t.Fatalf("seed %d pass %d: %q gives %v, by definition %v", seed, pass, text, got, want)
				}
			}
			if got := enc.appendByRank(nil, text); !e.whole && !slices.Equal(got, want) {
				t.Fatalf("seed %d: %q by rank gives %v, by definition %v", seed, text, got, want)
			}
		}
	}
	for _, way := range []string{"greedy true, listed true", "greedy true, listed false", "greedy false, listed true", "greedy false, listed false"} {
		if ways[way] < 8 {
			t.Errorf("%s was tried %d times: %v", way, ways[way], ways)
		}
	}
}

// shuffledMerges lists pairs of tokens whose joint is a token, in no order.
func shuffledMerges(r *rand.Rand, tokens [][]byte) (merges [][2]uint32) {
	ids := map[string]uint32{}
	for id, t := range tokens {
		ids[string(t)] = uint32(id)
	}
	for _, t := range tokens[256:] {
		for i := 1; i < len(t); i++ {
			l, lok := ids[string(t[:i])]
			m, rok := ids[string(t[i:])]
			if lok && rok && r.IntN(4) > 0 {
				merges = append(merges, [2]uint32{l, m})
			}
		}
	}
	r.Shuffle(len(merges), func(i, j int) { merges[i], merges[j] = merges[j], merges[i] })
	return merges
}

// Both embedded vocabularies are monotone, so the greedy encoder is right for them.
func TestEmbeddedVocabulariesAreMonotone(t *testing.T) {
	eachWithTables(t, func(t *testing.T, e *Encoding) {
		if e.tables().greedy == nil {
			t.Error("merging falls back to ranks")
		}
	})
}

// Encoders of one vocabulary that go over to its tables at a time, each in the middle of a text, give the same ids as ever.
func TestTablesComeInTheMiddle(t *testing.T) {
	docs := corpus(t, 12_000, textcorpus.Kinds()...)
	for name, load := range map[string]func() (*Encoding, error){"o200k": O200k, "cl100k": Cl100k} {
		late, err := load()
		if err != nil {
			t.Fatal(err)
		}
		late.early = 5000
		enc, want := mustLoad(t, name).NewEncoder(), make([][]uint32, len(docs))
		for i, doc := range docs {
			want[i] = enc.Append(nil, doc)
		}
		var all sync.WaitGroup
		for first := range 3 {
			e := late.NewEncoder()
			if e.tables != nil {
				t.Fatalf("%s has tables at once", name)
			}
			all.Go(func() {
				for i := range docs {
					at := (first*7 + i) % len(docs)
					if !slices.Equal(e.Append(nil, docs[at]), want[at]) {
						t.Errorf("%s: document %d differs", name, at)
					}
				}
				if e.tables == nil || e.tables != late.made.Load() {
					t.Errorf("%s: an encoder merged all without tables, or with its own", name)
				}
			})
		}
		all.Wait()
	}
}

// The three ways of the embedded vocabularies agree with the definition on pieces of every length about the
// borders where one takes over from the other.
func TestWaysAgreeAtTheirBorders(t *testing.T) {
	eachWithTables(t, func(t *testing.T, e *Encoding) {
		n, enc := newNaive(e, nil), e.NewEncoder()
		r := rand.New(rand.NewPCG(7, 7))
		alphabets := [][]string{
			{"a", "e", "t", "n", "i"}, {"的", "是", "一", "不"}, {"=", "-"}, {"\n", " "}, {"0", "1"}, {"а", "о", "т"}, {"😀", "👍🏽", "\u200d"}, {"ก", "า", "่"},
		}
		for size := 1; size < 140; size++ {
			for _, letters := range alphabets {
				var piece []byte
				for len(piece) < size {
					piece = append(piece, letters[r.IntN(len(letters))]...)
				}
				want := n.piece(piece)
				if got := enc.appendPiece(nil, piece); !slices.Equal(got, want) {
					t.Fatalf("%q gives %v, by definition %v", piece, got, want)
				}
				if _, token := n.ranks[string(piece)]; token {
					continue
				}
				if got := enc.appendByRank(nil, piece); !slices.Equal(got, want) {
					t.Fatalf("%q by rank gives %v, by definition %v", piece, got, want)
				}
				if got := enc.appendGreedy(nil, piece); !slices.Equal(got, want) {
					t.Fatalf("%q greedily gives %v, by definition %v", piece, got, want)
				}
			}
		}
		if got := enc.appendByRank(nil, bytes.Repeat([]byte("="), 300)); !slices.Equal(got, n.piece(bytes.Repeat([]byte("="), 300))) {
			t.Error("the heap merges otherwise")
		}
	})
}
