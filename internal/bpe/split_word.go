package bpe

import (
	"encoding/binary"
	"math/bits"
)

// Most pieces of text are one word of ASCII: at most one character before it, at most one capital, small
// letters. asciiWord measures them eight bytes at a time for every splitter whose pattern begins
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

// notLower sets the high bit of every byte of w that is no small letter.
func notLower(w uint64) uint64 {
	low := w &^ highBits
	atLeastA := low + (0x80-'a')*eachByte
	aboveZ := low + (0x80-'z'-1)*eachByte
	return (^atLeastA | aboveZ | w) & highBits
}

// asciiWord returns the length of the word that w begins with, at most 8; 8 means that it may go on. 0: no such
// word, or what follows must be asked of the whole pattern.
func asciiWord(w uint64, role *[256]uint8) uint {
	start := uint(role[byte(w)])
	if start > rolePrefix {
		return 0
	}
	after := start
	if byte(w>>(8*start))-'A' < 26 {
		after++
	}
	stop := notLower(w) >> (8 * after) << (8 * after)
	if stop == 0 {
		return 8
	}
	n := uint(bits.TrailingZeros64(stop)) >> 3
	if n == start || (role[byte(w>>(8*n))]-rolePrefix) > roleEnds-rolePrefix {
		return 0
	}
	return n
}

// longWord returns the end of the word whose first 8 bytes asciiWord has seen, or 0 as asciiWord does.
func longWord(text []byte, pos int, role *[256]uint8) int {
	for pos += 8; pos < len(text); {
		if pos+8 <= len(text) {
			stop := notLower(binary.LittleEndian.Uint64(text[pos:]))
			if stop == 0 {
				pos += 8
				continue
			}
			pos += bits.TrailingZeros64(stop) >> 3
		} else if text[pos]-'a' < 26 {
			pos++
			continue
		}
		if role[text[pos]] != rolePrefix && role[text[pos]] != roleEnds {
			return 0
		}
		return pos
	}
	return pos
}
