package bpe

// Classes of code points that the splitters tell apart, as tools/checks/unicode_classes.py numbers them.
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

// Sets of classes, as bits.
const (
	setLetter = 1<<classUpper | 1<<classCased | 1<<classLower
	setPunct  = 1<<classOther | 1<<classMark // [^\s\p{L}\p{N}]
	setSpace  = 1<<classSpace | 1<<classBreak
	setPrefix = 1<<classOther | 1<<classMark | 1<<classSpace // [^\r\n\p{L}\p{N}]
)

// classOf returns the class of a code point.
func classOf(r rune) uint8 {
	return classPages[int(classIndex[r>>8])<<8|int(r&0xff)] & 7
}

// classAt returns the class and length of the code point at pos of valid UTF-8; length 0 at the end.
func classAt(text []byte, pos int) (class uint8, size int) {
	if pos >= len(text) {
		return classOther, 0
	}
	if b := text[pos]; b < 0x80 {
		return classPages[b] & 7, 1
	}
	return classWide(text, pos)
}

// classWide is classAt for code points of more than one byte.
func classWide(text []byte, pos int) (class uint8, size int) {
	b := text[pos]
	switch {
	case b < 0xE0:
		return classTwo(b, text[pos+1]), 2
	case b < 0xF0:
		if caselessLead(b) {
			return classCased, 3
		}
		return classOf(rune(b&0x0F)<<12 | rune(text[pos+1]&0x3F)<<6 | rune(text[pos+2]&0x3F)), 3
	}
	return classOf(rune(b&7)<<18 | rune(text[pos+1]&0x3F)<<12 | rune(text[pos+2]&0x3F)<<6 | rune(text[pos+3]&0x3F)), 4
}

// classTwo is the class of a code point of two bytes. The first pages lie where they belong, so the index is
// not asked.
func classTwo(b, c byte) uint8 { return classPages[uint(b&0x1F)<<6|uint(c&0x3F)] & 7 }

// caselessLead tells that every code point that begins with b is a letter without case: U+5000–U+9FFF (Han)
// and U+B000–U+CFFF (Hangul).
func caselessLead(b byte) bool {
	return b-0xE5 <= 0xE9-0xE5 || b-0xEB <= 0xEC-0xEB
}

// skip returns the end of the run of classes in set that begins at pos.
func skip(text []byte, pos int, set uint8) int {
	for pos < len(text) {
		b := text[pos]
		if b < 0x80 {
			if set>>(classPages[b]&7)&1 == 0 {
				break
			}
			pos++
			continue
		}
		c, n := classWide(text, pos)
		if set>>c&1 == 0 {
			break
		}
		pos += n
	}
	return pos
}
