package textcorpus

import (
	"strings"
	"unicode/utf8"
)

// english draws prose with markdown: headings, lists, code spans, quotes, contractions.
func english(b *builder) {
	for !b.full() {
		switch b.r.IntN(12) {
		case 0:
			b.add(strings.Repeat("#", 1+b.r.IntN(3)) + " " + capital(b.word()) + " " + b.word() + "\n\n")
		case 1:
			for range 2 + b.r.IntN(4) {
				b.add(pick(b, []string{"- ", "* ", "1. ", "  - "}) + "**" + capital(b.word()) + "**: ")
				b.sentence(3 + b.r.IntN(8))
				b.add("\n")
			}
			b.add("\n")
		case 2:
			b.add("> ")
			b.sentence(8)
			b.add("\n\n")
		default:
			for range 2 + b.r.IntN(5) {
				b.sentence(5 + b.r.IntN(18))
				b.add(" ")
			}
			b.add("\n\n")
		}
	}
}

// sentence draws an English sentence of n words.
func (b *builder) sentence(n int) {
	b.add(capital(b.word()))
	for i := 1; i < n; i++ {
		switch b.r.IntN(40) {
		case 0:
			b.add(", " + b.word())
		case 1:
			b.add(" " + pick(b, []string{"it's", "don't", "we'll", "They've", "I'm", "that’s", "you're", "he'd", "user's", "IT'S"}))
		case 2:
			b.addf(" `%s`", b.identifier())
		case 3:
			b.addf(" (%s %s)", b.word(), b.word())
		case 4:
			b.addf(" %d%s", b.r.IntN(3000), pick(b, []string{"", "%", " ms", ".5", "th"}))
		case 5:
			b.add(" " + capital(b.word()) + " " + capital(b.word()))
		case 6:
			b.add(" " + b.word() + "-" + b.word())
		case 7:
			b.addf(" \"%s %s\"", b.word(), b.word())
		case 8:
			if w := b.word(); b.chance(30) {
				b.add(" " + strings.ToUpper(w))
			} else {
				b.add(" " + w)
			}
		default:
			b.add(" " + b.word())
		}
	}
	b.add(pick(b, []string{".", ".", ".", "?", "!", ":", "..."}))
}

// hanClause draws a set phrase, or about n words.
func (b *builder) hanClause(n int) {
	if b.chance(50) {
		b.add(b.zipf(b.words.phrases))
		return
	}
	b.hanWords(n)
}

// chinese draws prose with punctuation, markdown, numbers and some English.
func chinese(b *builder) {
	for !b.full() {
		if b.chance(15) {
			b.add(pick(b, []string{"## ", "- ", "1. ", "**", "> ", "【"}))
		}
		for range 2 + b.r.IntN(4) {
			b.hanClause(2 + b.r.IntN(7))
			switch b.r.IntN(14) {
			case 0:
				b.add(" " + capital(b.word()) + " ")
			case 1:
				b.addf("%d", b.r.IntN(3000))
			case 2:
				b.add("“")
				b.hanClause(2)
				b.add("”")
			case 3:
				b.add("（" + b.word() + "）")
			}
			b.add(pick(b, []string{"，", "，", "，", "、", "；", "："}))
		}
		b.hanClause(2 + b.r.IntN(6))
		b.add(pick(b, []string{"。", "。", "！", "？"}))
		if b.chance(25) {
			b.add("\n\n")
		}
	}
}

// pureHan draws lines of Han without punctuation.
func pureHan(b *builder) {
	for !b.full() {
		b.hanWords(40 + b.r.IntN(200))
		b.add("\n")
	}
}

func japanese(b *builder) {
	for !b.full() {
		for range 2 + b.r.IntN(4) {
			if b.chance(50) {
				b.add(b.zipf(b.words.clauses))
			} else {
				b.kanaWords(2 + b.r.IntN(6))
			}
			b.add(pick(b, []string{"、", "、", "は", "が", "を"}))
			if b.chance(6) {
				b.add(pick(b, []string{"「", "」", " API ", "・", "１２３", "2026年"}))
			}
		}
		b.add("。")
		if b.chance(20) {
			b.add("\n")
		}
	}
}

// others draws sentences, each in another script.
func others(b *builder) {
	latin := append(b.words.scripts[:len(b.words.scripts):len(b.words.scripts)], b.words.accented)
	for !b.full() {
		i := (b.serial + b.r.IntN(3)) % len(latin)
		list, compounds := latin[i], b.words.foreign[i]
		for i := range 4 + b.r.IntN(16) {
			w := b.zipf(list)
			if b.chance(25) {
				w = b.zipf(compounds)
			}
			if i == 0 {
				w = capital(w)
			}
			b.add(w)
			b.add(pick(b, []string{" ", " ", " ", " ", " ", ", ", " - "}))
		}
		b.add(pick(b, []string{".", "?", "!", "؟", "।", ".\n"}) + " ")
	}
}

// pictographs are first code points of runs that emoji are drawn from.
var pictographs = []rune{0x1F600, 0x1F44A, 0x1F680, 0x2600, 0x1F300, 0x1F9D0, 0x1FA70, 0x2702, 0x1F1E6}

// emojiChat draws short lines of chat with emoji, joined, coloured and flagged.
func emojiChat(b *builder) {
	for !b.full() {
		for range 1 + b.r.IntN(6) {
			b.add(b.word() + pick(b, []string{" ", " ", "!! ", "... "}))
		}
		for range 1 + b.r.IntN(4) {
			b.text = utf8.AppendRune(b.text, pick(b, pictographs)+rune(b.r.IntN(25)))
			switch b.r.IntN(8) {
			case 0:
				b.text = utf8.AppendRune(b.text, 0x1F3FB+rune(b.r.IntN(5)))
			case 1:
				b.add("\uFE0F")
			case 2:
				b.add("\u200D")
				b.text = utf8.AppendRune(b.text, pick(b, pictographs))
			case 3:
				b.add(" ")
			}
		}
		b.add(pick(b, []string{"\n", " ", "lol\n", "\n\n"}))
	}
}
