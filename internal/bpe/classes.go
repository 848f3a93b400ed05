package bpe

import "unicode"

// Classes of code points that the splitters tell apart.
const (
	classOther = iota
	classUpper // Lu, Lt
	classCased // Lm, Lo: letters without case, both upper and lower to o200k
	classLower // Ll
	classMark  // M
	classDigit // N
	classSpace // White_Space without CR and LF
	classBreak // CR, LF
)

const unicodeVersion = unicode.Version

func classOf(r rune) uint8 {
	switch {
	case r == '\r' || r == '\n':
		return classBreak
	case unicode.Is(unicode.White_Space, r):
		return classSpace
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return classUpper
	case unicode.Is(unicode.Ll, r):
		return classLower
	case unicode.In(r, unicode.Lm, unicode.Lo):
		return classCased
	case unicode.Is(unicode.M, r):
		return classMark
	case unicode.Is(unicode.N, r):
		return classDigit
	}
	return classOther
}
