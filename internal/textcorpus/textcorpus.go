// Package textcorpus draws texts of many kinds from a seed, to prove and to time tokenizers on: prose in a dozen
// scripts, program text, JSON, emoji, digits, white space, ill-formed UTF-8, random code points, and single
// pieces of 100 KB and more. Words come from the vocabulary that the caller hands in, by Zipf's law on its order:
// no text of anybody's is in it.
package textcorpus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"tailgate/internal/rng"
)

// Kinds of text, in the order of a report.
const (
	English    = "en"
	Code       = "code"
	JSON       = "json"
	Chinese    = "zh"      // with markup, punctuation and some English
	PureHan    = "zhlines" // long lines of nothing but Han
	Japanese   = "ja"
	Others     = "multi" // Russian, Korean, Arabic, Greek, Thai, Hindi, Hebrew, accented Latin
	Emoji      = "emoji"
	Digits     = "digits" // numbers, UUIDs, base64, hex
	WhiteSpace = "ws"
	Broken     = "bad"   // prose with ill-formed UTF-8
	Fuzz       = "fuzz"  // random code points, borders of the patterns over-represented
	Giants     = "giant" // one piece of 100–200 KB
	Marks      = "marks" // combining marks, jamo, forms that decompose: for vocabularies that normalize
	Mix        = "mix"   // 40 % English, 20 code, 10 JSON, 15 Chinese, 5 Japanese, 8 others, 2 emoji and digits
)

// Kinds lists all kinds but Marks and Mix.
func Kinds() []string {
	return []string{English, Code, JSON, Chinese, PureHan, Japanese, Others, Emoji, Digits, WhiteSpace, Broken, Fuzz, Giants}
}

// Source draws documents. It is not safe for concurrent use; equal seeds and vocabularies give equal documents.
type Source struct {
	r     *rand.Rand
	words *words
	n     int
}

// New returns a source over a vocabulary, its tokens by id (frequent first).
func New(seed uint64, tokens [][]byte) *Source {
	w := sortWords(tokens)
	w.compose(rng.New(seed, "textcorpus", "lexicons"))
	return &Source{r: rng.New(seed, "textcorpus"), words: w}
}

// Document appends one document of a kind to dst: 400 to 8,000 bytes, giants 100 to 200 KB. It fails for
// a kind that there is not.
func (s *Source) Document(dst []byte, kind string) ([]byte, error) {
	draw, ok := map[string]func(*builder){
		English: english, Code: code, JSON: jsonText, Chinese: chinese, PureHan: pureHan, Japanese: japanese, Others: others,
		Emoji: emojiChat, Digits: digits, WhiteSpace: whiteSpace, Broken: broken, Fuzz: fuzz, Giants: giant, Marks: marks,
	}[kind]
	if kind == Mix {
		return s.Document(dst, s.mixed())
	}
	if !ok {
		return dst, fmt.Errorf("drawing a text: no kind %q; there are %s and %s", kind, strings.Join(Kinds(), ", "), Mix)
	}
	s.n++
	b := &builder{r: s.r, words: s.words, limit: 400 + s.r.IntN(7600), serial: s.n}
	draw(b)
	return append(dst, b.text...), nil
}

// mixed draws a kind by the shares of Mix.
func (s *Source) mixed() string {
	shares := []struct {
		kind  string
		share int
	}{{English, 40}, {Code, 20}, {JSON, 10}, {Chinese, 15}, {Japanese, 5}, {Others, 8}, {Emoji, 1}, {Digits, 1}}
	x := s.r.IntN(100)
	for _, k := range shares {
		if x -= k.share; x < 0 {
			return k.kind
		}
	}
	return English
}

// Documents draws documents of a kind until they have at least size bytes together.
func (s *Source) Documents(kind string, size int) ([][]byte, error) {
	var out [][]byte
	for total := 0; total < size; {
		d, err := s.Document(nil, kind)
		if err != nil {
			return nil, err
		}
		out = append(out, slices.Clip(d))
		total += len(d)
	}
	return out, nil
}

// builder is a document in the making.
type builder struct {
	r      *rand.Rand
	words  *words
	text   []byte
	limit  int // bytes, about
	serial int
	names  []string // identifiers of this document
}

func (b *builder) full() bool { return len(b.text) >= b.limit }

func (b *builder) add(s string) { b.text = append(b.text, s...) }

func (b *builder) addf(format string, args ...any) { b.text = fmt.Appendf(b.text, format, args...) }

func (b *builder) chance(percent int) bool { return b.r.IntN(100) < percent }

func pick[T any](b *builder, list []T) T { return list[b.r.IntN(len(list))] }
