package anonymize

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zeebo/xxh3"

	"tailgate/internal/rng"
)

// memoBytes is the memory that a memo has taken.
func memoBytes(m *memo) (n int64) {
	for i := range m.shards {
		s := &m.shards[i]
		for _, g := range []*memoGeneration{&s.young, &s.old} {
			n += int64(cap(g.words))*wordBytes + int64(cap(g.slots))*slotBytes
		}
	}
	return n
}

// What a memo gives is what was put, whatever it forgets, and it never takes more than its size.
func TestMemoForgetsButNeverErrs(t *testing.T) {
	for _, size := range []int64{2 * minGeneration, 10_000, 1 << 20, 3 * bytesPerShard} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			r := rng.New(1, "memo", fmt.Sprint(size))
			m := newMemo(size)
			words := func(i int) []uint32 {
				return slices.Repeat([]uint32{uint32(i)}, i%97) // 0 words are an entry too
			}
			hits, misses := 0, 0
			for range 200_000 {
				i := int(r.ExpFloat64() * 2000)
				key := xxh3.HashString128(fmt.Sprint(i))
				got, ok := m.get(key, []uint32{7})
				if !ok {
					misses++
					m.put(key, words(i))
					continue
				}
				hits++
				if want := append([]uint32{7}, words(i)...); !slices.Equal(want, got) {
					t.Fatalf("entry %d: %v", i, cmp.Diff(want, got))
				}
			}
			if hits == 0 || misses == 0 {
				t.Errorf("%d hits, %d misses: nothing is shown", hits, misses)
			}
			if n := memoBytes(m); n > size {
				t.Errorf("%d bytes, more than %d", n, size)
			}
		})
	}
}

// What is asked for between two turns of the generations stays.
func TestMemoKeepsWhatIsUsed(t *testing.T) {
	m := newMemo(8 << 10)
	used := xxh3.HashString128("used")
	m.put(used, []uint32{1, 2, 3})
	for i := range 10_000 {
		m.put(xxh3.HashString128(fmt.Sprint(i)), make([]uint32, 8))
		if _, ok := m.get(used, nil); !ok {
			t.Fatalf("forgotten after %d others", i)
		}
	}
	if _, ok := m.get(xxh3.HashString128("0"), nil); ok {
		t.Error("what nobody asked for is still there")
	}
	if m.put(xxh3.HashString128("huge"), make([]uint32, 1<<20)); memoBytes(m) > 8<<10 {
		t.Error("a huge entry was taken")
	}
}

// chatText is a rendering of random messages. Texts repeat themselves, also with marks where they had none.
type chatText struct {
	r       *rand.Rand
	phrases []string
}

func newChatText(r *rand.Rand) *chatText {
	c := &chatText{r: r}
	for range 30 {
		var b strings.Builder
		for range 1 + r.IntN(40) {
			b.WriteString([]string{" tide", "潮", "ebb<|endoftext|>", "\n\n", "  ", "é", "<|start|>", "42", "!?", "\x80", "ſ's "}[r.IntN(11)])
		}
		c.phrases = append(c.phrases, b.String())
	}
	return c
}

// grow appends messages to a rendering.
func (c *chatText) grow(text []byte, marks []Span) ([]byte, []Span) {
	mark := func(s string) {
		marks = append(marks, Span{From: len(text), To: len(text) + len(s)})
		text = append(text, s...)
	}
	for range 1 + c.r.IntN(4) {
		mark("<|start|>")
		for range c.r.IntN(4) {
			text = append(text, c.phrases[c.r.IntN(len(c.phrases))]...)
		}
		if c.r.IntN(3) > 0 {
			mark("<|endoftext|>")
		}
	}
	return text, marks
}

// reference hashes a rendering by the definition: mark by mark, without pieces or a memo.
func reference(key []byte, s *setting, scope Scope, text []byte, marks []Span) []int64 {
	c := newCoder(s.vocab)
	chain := newBlockChain(key)
	chain.start(scope)
	return chain.append(nil, c.append(nil, text, marks, 0, s.all))
}

// With any memo, however small, the ids are those of the definition: prompts grow out of each other, as the turns
// of a session do, and share phrases.
func TestMemoChangesNothing(t *testing.T) {
	key := make([]byte, keySize)
	for _, name := range []string{TokenizerChars4, TokenizerBytes, TokenizerO200k} {
		vocab, err := openVocabulary(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{0, 2 * minGeneration, 16 << 10, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				r := rng.New(3, "chats", name)
				chats := newChatText(r)
				w := &worker{chain: newBlockChain(key), memo: newMemo(size), seed: 5, coders: map[*vocabulary]*coder{}}
				settings := []*setting{{vocab: vocab}, {vocab: vocab, all: true, index: 1}}
				type state struct {
					text  []byte
					marks []Span
				}
				known := []state{{}}
				for range 200 {
					from := known[r.IntN(len(known))]
					if len(from.text) > 8000 {
						from = state{}
					}
					text, marks := chats.grow(slices.Clone(from.text), slices.Clone(from.marks))
					if known = append(known, state{text, marks}); len(known) > 40 {
						known = known[1:]
					}
					if r.IntN(4) == 0 { // the same bytes, with other marks
						marks = marks[:r.IntN(len(marks))]
					}
					s := settings[r.IntN(2)]
					scope := Scope{Model: []string{"larch", "birch"}[r.IntN(2)], Tokenizer: vocab.id, BlockSize: []int{1, 2, 16}[r.IntN(3)]}
					w.text = Rendering{Text: slices.Clone(text), Marks: marks, Gap: -1}
					w.chain.start(scope)
					got, tokens := w.hash([]int64{9}, s)
					want := append([]int64{9}, reference(key, s, scope, text, marks)...)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatal(diff)
					}
					if n := (tokens + scope.BlockSize - 1) / scope.BlockSize; n != len(got)-1 {
						t.Fatalf("%d tokens for %d ids", tokens, len(got)-1)
					}
					w.reset()
				}
			})
		}
	}
}

// Workers that share a small memo do not disturb each other.
func TestMemoIsShared(t *testing.T) {
	vocab, err := openVocabulary(TokenizerO200k)
	if err != nil {
		t.Fatal(err)
	}
	m, s, key := newMemo(64<<10), &setting{vocab: vocab}, make([]byte, keySize)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			r := rng.New(uint64(i/2), "shared") // two workers see the same chats
			chats := newChatText(r)
			w := &worker{chain: newBlockChain(key), memo: m, seed: 5, coders: map[*vocabulary]*coder{}}
			var text []byte
			var marks []Span
			for range 100 {
				if text, marks = chats.grow(text, marks); len(text) > 20_000 {
					text, marks = nil, nil
				}
				w.text = Rendering{Text: slices.Clone(text), Marks: marks, Gap: -1}
				w.chain.start(Scope{})
				got, _ := w.hash(nil, s)
				if diff := cmp.Diff(reference(key, s, Scope{}, text, marks), got); diff != "" && len(text) > 0 {
					t.Error(diff)
					return
				}
				w.reset()
			}
		})
	}
	all.Wait()
}
