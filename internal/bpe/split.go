package bpe

import "unicode/utf8"

// Sets of classes, as bits.
const (
	setLetter = 1<<classUpper | 1<<classCased | 1<<classLower
	setPunct  = 1<<classOther | 1<<classMark // [^\s\p{L}\p{N}]
	setSpace  = 1<<classSpace | 1<<classBreak
	setPrefix = 1<<classOther | 1<<classMark | 1<<classSpace // [^\r\n\p{L}\p{N}]
)

// classAt returns the class and length of the code point at pos of valid UTF-8; length 0 at the end.
func classAt(text []byte, pos int) (class uint8, size int) {
	if pos >= len(text) {
		return classOther, 0
	}
	r, n := utf8.DecodeRune(text[pos:])
	return classOf(r), n
}

// skip returns the end of the run of classes in set that begins at pos.
func skip(text []byte, pos int, set uint8) int {
	for pos < len(text) {
		c, n := classAt(text, pos)
		if set>>c&1 == 0 {
			break
		}
		pos += n
	}
	return pos
}

// splitDigits returns the end of a run of at most most digits at pos.
func splitDigits(text []byte, pos, most int) int {
	for ; most > 0; most-- {
		c, n := classAt(text, pos)
		if n == 0 || c != classDigit {
			break
		}
		pos += n
	}
	return pos
}

// splitBlanks returns the end of the piece of white space at pos: up to the last line break of the run, else
// the run without its last character when something follows, else the run.
func splitBlanks(text []byte, pos int) int {
	end, last, afterBreak := pos, pos, -1
	for end < len(text) {
		c, n := classAt(text, end)
		if setSpace>>c&1 == 0 {
			break
		}
		last = end
		end += n
		if c == classBreak {
			afterBreak = end
		}
	}
	switch {
	case afterBreak >= 0:
		return afterBreak
	case end < len(text) && last > pos:
		return last
	}
	return end
}

// contraction returns the length of 's 't 'm 'd 're 've 'll at pos in any case, else 0. Case folding is
// Unicode's: U+017F is an s.
func contraction(text []byte, pos int) int {
	if pos+1 >= len(text) || text[pos] != '\'' {
		return 0
	}
	switch text[pos+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if pos+2 < len(text) && text[pos+2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if pos+2 < len(text) && text[pos+2]|0x20 == 'l' {
			return 3
		}
	}
	if text[pos+1] == 0xC5 && text[pos+2] == 0xBF { // U+017F
		return 3
	}
	return 0
}
