package bpe

import "unicode/utf8"

// The pre-tokenizer of DeepSeek V3 and R1 splits three times: each pattern splits the pieces that the one before
// left, and what a pattern does not match stays a piece. Line breaks stand as themselves in its third pattern.
const (
	patternDigits3   = `\p{N}{1,3}`
	patternCJK       = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
	patternDeepSeek3 = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

// setDeepWord is [\p{L}\p{M}].
const setDeepWord = setLetter | 1<<classMark

// deep is a code point as splitDeepSeek3 sees it.
type deep struct {
	class uint8 // of the class tables
	punct bool  // of classOther: punctuation or symbol
	cjk   bool  // of the second pattern
	size  int   // bytes; 0 is the end of the text
}

func deepAt(text []byte, pos int) deep {
	if pos >= len(text) {
		return deep{}
	}
	if b := text[pos]; b < utf8.RuneSelf {
		c := classPages[b] & 7
		return deep{class: c, punct: c == classOther && b > ' ' && b < 0x7F, size: 1}
	}
	r, size := utf8.DecodeRune(text[pos:])
	d := deep{class: classOf(r), cjk: isCJK(r), size: size}
	d.punct = d.class == classOther && isPunct(r)
	return d
}

// isCJK is patternCJK.
func isCJK(r rune) bool { return r >= 0x3040 && r <= 0x30FF || r >= 0x4E00 && r <= 0x9FA5 }

// isPunct tells punctuation and symbols.
func isPunct(r rune) bool {
	block := int(r) >> 9
	if block >= len(punctIndex) {
		return false
	}
	return punctWords[int(punctIndex[block])<<3|int(r)>>6&7]>>(r&63)&1 != 0
}

// splitDeepSeek3 is patternDigits3, then patternCJK, then patternDeepSeek3.
func splitDeepSeek3(text []byte, pos int) int {
	d := deepAt(text, pos)
	if d.class == classDigit {
		return splitDigits(text, pos, 3)
	}
	if end := splitDeep(text, pos, d); end > pos {
		return end
	}
	// What the pattern does not match is one piece up to where it matches again, or a first split ends it.
	for end := pos + d.size; ; {
		next := deepAt(text, end)
		if next.size == 0 || next.class == classDigit || next.cjk != d.cjk || splitDeep(text, end, next) > end {
			return end
		}
		end += next.size
	}
}

// splitDeep returns the end of the match of patternDeepSeek3 at pos, where d is, or pos. Digits, and the border
// between CJK and others, end the text for it.
func splitDeep(text []byte, pos int, d deep) int {
	after := pos + d.size
	next := deepAt(text, after)
	if next.class == classDigit || next.cjk != d.cjk {
		next = deep{}
	}
	isWord := func(c deep) bool { return c.size > 0 && setDeepWord>>c.class&1 != 0 }
	switch {
	case d.punct && d.size == 1 && next.size == 1 && isWord(next):
		for after++; after < len(text) && text[after]|0x20-'a' < 26; after++ {
		}
		return after
	case isWord(d):
		return deepRun(text, after, d.cjk, isWord)
	case d.class != classBreak && !d.punct && isWord(next):
		return deepRun(text, after, d.cjk, isWord)
	case d.punct || text[pos] == ' ' && next.punct:
		return deepPunct(text, after, d.cjk)
	case setSpace>>d.class&1 != 0:
		return deepBlanks(text, pos)
	}
	return pos
}

// deepRun returns the end of the run of code points that are wanted, on one side of the border of CJK.
func deepRun(text []byte, pos int, cjk bool, wanted func(deep) bool) int {
	for {
		d := deepAt(text, pos)
		if d.size == 0 || d.cjk != cjk || !wanted(d) {
			return pos
		}
		pos += d.size
	}
}

// deepPunct returns the end of a run of punctuation and the line breaks behind it.
func deepPunct(text []byte, pos int, cjk bool) int {
	pos = deepRun(text, pos, cjk, func(d deep) bool { return d.punct })
	if cjk {
		return pos
	}
	return skip(text, pos, 1<<classBreak)
}

// deepBlanks is splitBlanks, but where digits or CJK follow, the text ends for the pattern.
func deepBlanks(text []byte, pos int) int {
	end := skip(text, pos, setSpace)
	next := deepAt(text, end)
	if next.class == classDigit || next.cjk {
		return splitBlanks(text[:end], pos)
	}
	return splitBlanks(text, pos)
}
