package textcorpus

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// whiteSpace draws runs of blanks and line breaks of every sort between words.
func whiteSpace(b *builder) {
	sorts := []string{" ", " ", " ", "\n", "\n", "\t", "\r\n", "\r", "\u00a0", "\u3000", "\u2028", "\u0085", "\u2003", "\v", "\f", "\u1680", "\x1c"}
	for !b.full() {
		for range 1 + b.r.IntN(3) {
			b.add(strings.Repeat(pick(b, sorts[:4+b.r.IntN(len(sorts)-3)]), 1+b.r.IntN(1+b.r.IntN(20))))
		}
		if b.chance(70) {
			b.add(pick(b, []string{b.word(), b.word(), "}", "/", "1", "é", "!", "的"}))
		}
	}
}

// broken draws prose and breaks its UTF-8: cut sequences, overlong forms, surrogates, stray bytes.
func broken(b *builder) {
	pieces := []string{"\xe4\xb8", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc0\xaf", "\xff", "\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xc3", "\xf8\x88\x80\x80\x80", "\xe4\xb8\x41"}
	for !b.full() {
		begin := len(b.text)
		switch b.r.IntN(3) {
		case 0:
			b.sentence(8)
		case 1:
			b.hanClause(8)
		default:
			b.add(b.zipf(b.words.kana) + "😀")
		}
		if b.chance(60) {
			at := begin + b.r.IntN(len(b.text)-begin)
			b.text = append(b.text[:at:at], b.text[at+1:]...)
		}
		if b.chance(30) {
			b.add(pick(b, pieces))
		}
	}
}

// borders are where the patterns decide: contractions, marks, cases, digits, blanks, slashes, NUL.
var borders = []string{
	"'s", "'S", "'ſ", "'t", "'re", "'VE", "'ll", "'lL", "'d", "'m", "'", "’s", "\u0301", "\u0301's", "A", "AB", "ABC", "aB", "Ab", "ǅ", "ǆ", "ª", "ʰ", "漢", "漢A",
	"漢a", "한", "の", "1", "12", "123", "1234", "½", "Ⅷ", "一", "٣", "/", "//", "\n/", "\n", "\r\n", "\r", " ", "  ", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\x1c", "\x00", "a\x00", "!",
	"!!", "?", ".", "\u200d", "\ufe0f", "😀", "<|endoftext|>", "<|im_start|>", "\ufffd", "ﬀ", "İ", "ı", "\u0345", "\u3099", "ー", "\U000323af", "\ue000", "\U0010ffff",
}

// fuzz draws random code points and borders.
func fuzz(b *builder) {
	limits := []rune{0x80, 0x250, 0x800, 0x3000, 0x10000, 0x20000, 0x33000, 0x110000}
	for !b.full() {
		if b.chance(50) {
			b.add(pick(b, borders))
			continue
		}
		r := rune(b.r.IntN(int(pick(b, limits))))
		if r >= 0xD800 && r < 0xE000 {
			r = '�'
		}
		b.text = utf8.AppendRune(b.text, r)
	}
}

// giant draws one piece of 100 to 200 KB.
func giant(b *builder) {
	size := 100_000 + b.r.IntN(100_000)
	alphabets := []string{"a", " ", "\n", "etaoinshrdlu", "的一是不了人我在有他", "=", "😀", "ACGT", "é", "\u3000", "-", "ab", "한국어", "/", "zq", "\u0301"}
	letters := []rune(alphabets[b.serial%len(alphabets)])
	if b.serial%len(alphabets) == 4 {
		letters = []rune(strings.Join(b.words.hanOne, ""))
	}
	var out bytes.Buffer
	for out.Len() < size {
		out.WriteRune(pick(b, letters))
	}
	b.text = out.Bytes()
}
