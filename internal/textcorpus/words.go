package textcorpus

import (
	"math"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words are the tokens of a vocabulary that are words or parts of words, by script, in the order of their ids.
type words struct {
	latin    []string // small ASCII letters, no blank
	accented []string // Latin beyond ASCII
	han      []string
	hanOne   []string // of one character
	kana     []string // with Hiragana or Katakana
	scripts  [][]string

	// What no vocabulary has as one token comes again and again in real text: names, terms, set phrases.
	compounds []string   // of latin
	phrases   []string   // of han
	clauses   []string   // of kana and han
	foreign   [][]string // of scripts and accented
}

// scriptsOf are the other scripts that words.scripts has, in this order.
var scriptsOf = []*unicode.RangeTable{
	unicode.Cyrillic, unicode.Hangul, unicode.Arabic, unicode.Greek, unicode.Thai, unicode.Devanagari, unicode.Hebrew,
	unicode.Armenian, unicode.Georgian, unicode.Bengali, unicode.Tamil,
}

const lexicon = 20_000 // compounds and phrases of a language

// compose fills the lexicons.
func (w *words) compose(r *rand.Rand) {
	b := &builder{r: r, words: w}
	made := func(n int, draw func()) []string {
		list := make([]string, n)
		for i := range list {
			b.text = b.text[:0]
			draw()
			list[i] = string(b.text)
		}
		return list
	}
	tail := w.latin[len(w.latin)/20:]
	w.compounds = made(compounds, func() { b.add(b.zipf(w.latin) + b.zipf(tail)) })
	w.phrases = made(lexicon, func() { b.hanWords(2 + r.IntN(6)) })
	w.clauses = made(lexicon, func() { b.kanaWords(2 + r.IntN(6)) })
	for _, list := range append(w.scripts[:len(w.scripts):len(w.scripts)], w.accented) {
		w.foreign = append(w.foreign, made(lexicon/4, func() { b.add(b.zipf(list) + b.zipf(list)) }))
	}
}

func sortWords(tokens [][]byte) *words {
	w := &words{scripts: make([][]string, len(scriptsOf))}
	for _, t := range tokens {
		s, word := strings.CutPrefix(string(t), " ") // what comes after a blank is a word, else it may be a part of one
		if len(s) < 2 || !utf8.ValidString(s) {
			continue
		}
		switch r, _ := utf8.DecodeRuneInString(s); {
		case all(s, func(r rune) bool { return r >= 'a' && r <= 'z' }):
			if word {
				w.latin = append(w.latin, s)
			}
		case all(s, func(r rune) bool { return unicode.Is(unicode.Han, r) }):
			w.han = append(w.han, s)
			if utf8.RuneCountInString(s) == 1 {
				w.hanOne = append(w.hanOne, s)
			}
		case all(s, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han) || r == 'ー' }):
			w.kana = append(w.kana, s)
		case all(s, func(r rune) bool { return unicode.Is(unicode.Latin, r) && unicode.IsLower(r) }):
			if word {
				w.accented = append(w.accented, s)
			}
		default:
			for i, table := range scriptsOf {
				if word && unicode.Is(table, r) && all(s, func(r rune) bool { return unicode.Is(table, r) || unicode.IsMark(r) }) {
					w.scripts[i] = append(w.scripts[i], s)
				}
			}
		}
	}
	w.fallBack()
	return w
}

// fallBack gives a small vocabulary at least letters of every list.
func (w *words) fallBack() {
	atLeast := func(list *[]string, some ...string) {
		if len(*list) == 0 {
			*list = some
		}
	}
	atLeast(&w.latin, "the", "of", "and", "token")
	atLeast(&w.accented, "é", "über", "ço", "ñ")
	atLeast(&w.han, "的", "一", "是", "不")
	atLeast(&w.hanOne, "的", "一", "是", "不")
	atLeast(&w.kana, "の", "に", "は", "ます")
	for i, table := range scriptsOf {
		for r := rune(0x370); len(w.scripts[i]) == 0; r++ {
			if unicode.Is(table, r) && unicode.IsLetter(r) {
				w.scripts[i] = []string{string(r)}
			}
		}
	}
}

func all(s string, is func(rune) bool) bool {
	for _, r := range s {
		if !is(r) {
			return false
		}
	}
	return true
}

// zipf picks with probability about 1/rank.
func (b *builder) zipf(list []string) string {
	return list[int(math.Exp(b.r.Float64()*math.Log(float64(len(list)))))-1]
}

// Texts of one sort share a vocabulary: the distinct tokens and the share of pieces that are no token are about those
// of READMEs and of the Go and Python standard libraries.
const (
	proseWords = 9_000
	codeWords  = 2_500
	compounds  = 6_000
)

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// word is an English word: mostly one token, now and then a compound that no vocabulary has, rarely one never seen.
func (b *builder) word() string {
	switch k := b.r.IntN(1000); {
	case k < 2:
		return b.zipf(b.words.latin) + b.zipf(b.words.latin)
	case k < 75:
		return b.zipf(b.words.compounds)
	}
	return b.zipf(first(b.words.latin, proseWords))
}

// term is a word of programs.
func (b *builder) term() string {
	if b.chance(2) {
		return b.zipf(first(b.words.compounds, codeWords))
	}
	return b.zipf(first(b.words.latin, codeWords))
}

// hanWords draws n words of Han, single characters more often than the vocabulary has them.
func (b *builder) hanWords(n int) {
	for range n {
		if b.chance(45) {
			b.add(b.zipf(b.words.hanOne))
		} else {
			b.add(b.zipf(b.words.han))
		}
	}
}

// kanaWords draws n words of kana and Han.
func (b *builder) kanaWords(n int) {
	for range n {
		if b.chance(60) {
			b.add(b.zipf(b.words.kana))
		} else {
			b.add(b.zipf(b.words.hanOne))
		}
	}
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
