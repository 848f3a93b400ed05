package bpe

import (
	"encoding/binary"
	"math/bits"
)

// Most pieces of text are one word of ASCII: at most one character before it, at most one capital, small
// letters. wordStop measures them eight bytes at a time for every splitter whose pattern begins
// [^\r\n\p{L}\p{N}]?\p{L}+ or splits letters by case.

const (
	eachByte = 0x0101010101010101
	highBits = 0x8080808080808080
)

// Roles of ASCII bytes around a word.
const (
	roleLetter = iota // begins a word
	rolePrefix        // may stand before a word, and ends one
	roleEnds          // ends a word, and begins none
	roleElse          // an apostrophe or no ASCII: the whole pattern must be asked
)

// wordRole returns the role of each byte.
func wordRole() (role [256]uint8) {
	for b := range role {
		switch c := classPages[b] & 7; {
		case b >= 0x80 || b == '\'':
			role[b] = roleElse
		case setLetter>>c&1 != 0:
			role[b] = roleLetter
		case setPrefix>>c&1 != 0:
			role[b] = rolePrefix
		default:
			role[b] = roleEnds
		}
	}
	return role
}

// between sets the high bit of every byte of w that lies between lo and hi, both ASCII.
func between(w uint64, lo, hi uint64) uint64 {
	low := w &^ highBits
	return (low + (0x80-lo)*eachByte) &^ (low + (0x7F-hi)*eachByte) &^ w & highBits
}

// wordStop returns the length of the word that w would begin with, at most 8: one byte of any sort, a capital when
// that byte is no letter, small letters. No branch depends on the text.
func wordStop(w uint64) uint {
	lower, upper := between(w, 'a', 'z'), between(w, 'A', 'Z')
	capital := upper &^ ((lower | upper) << 8) & 0x8000
	return uint(bits.TrailingZeros64((lower|capital|0x80)^highBits)) >> 3
}

// longWord returns the end of the word whose first 8 bytes wordStop has seen. 0: what follows must be asked of the
// whole pattern.
func longWord(text []byte, pos int, role *[256]uint8) int {
	for pos += 8; pos < len(text); {
		if pos+8 <= len(text) {
			n := bits.TrailingZeros64(between(binary.LittleEndian.Uint64(text[pos:]), 'a', 'z')^highBits) >> 3
			pos += n
			if n == 8 {
				continue
			}
		} else if text[pos]-'a' < 26 {
			pos++
			continue
		}
		if r := role[text[pos]]; r != rolePrefix && r != roleEnds {
			return 0
		}
		return pos
	}
	return pos
}
