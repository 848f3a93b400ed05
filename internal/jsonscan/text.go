package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Every byte of a word.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// find returns the index of the first quote, backslash or control character of d from i on, len(d) without one.
// high is not 0 if a byte before it is not ASCII.
//
// Eight bytes are looked at together: c^2 is below 0x21 for a quote and for control characters alone, and
// subtracting carries a borrow into the highest bit of such a byte. A borrow can spoil only bytes above one
// that was found, so the lowest hit is right.
func find(d []byte, i int) (at int, high uint64) {
	for ; i+8 <= len(d); i += 8 {
		w := binary.LittleEndian.Uint64(d[i:])
		hit := ((w ^ 0x02*ones) - 0x21*ones) | ((w ^ '\\'*ones) - ones)
		if hit &= ^w & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3, high | w&highs&(hit&-hit-1)
		}
		high |= w & highs
	}
	for ; i < len(d); i++ {
		c := d[i]
		if c == '"' || c == '\\' || c < ' ' {
			return i, high
		}
		high |= uint64(c & 0x80)
	}
	return len(d), high
}

// appendString appends the string whose inside begins at d[i] to dst and returns the index behind its closing
// quote, -1 for an odd one.
func appendString(dst, d []byte, i int) (out []byte, end int) {
	start, high := len(dst), uint64(0)
	for {
		at, h := find(d, i)
		high |= h
		dst = append(dst, d[i:at]...)
		if at >= len(d) || d[at] < ' ' {
			return dst, -1
		}
		if d[at] == '"' {
			if high != 0 && !utf8.Valid(dst[start:]) {
				return dst, -1
			}
			return dst, at + 1
		}
		for i = at; i < len(d) && d[i] == '\\'; {
			if dst, i = appendEscape(dst, d, i); i < 0 {
				return dst, -1
			}
		}
	}
}

// escapes maps the letter of a short escape to what it stands for, 0 for every other letter.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// appendEscape appends what the escape at d[i] stands for and returns the index behind it, -1 for an odd one.
func appendEscape(dst, d []byte, i int) (out []byte, end int) {
	if i+1 >= len(d) {
		return dst, -1
	}
	if c := escapes[d[i+1]]; c != 0 {
		return append(dst, c), i + 2
	}
	r, ok := unicodeEscape(d, i)
	if !ok {
		return dst, -1
	}
	i += 6
	if utf16.IsSurrogate(r) {
		low, ok := unicodeEscape(d, i)
		if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
			return dst, -1
		}
		i += 6
	}
	return utf8.AppendRune(dst, r), i
}

// unicodeEscape reads the \uXXXX at d[i].
func unicodeEscape(d []byte, i int) (r rune, ok bool) {
	if i+6 > len(d) || d[i] != '\\' || d[i+1] != 'u' {
		return 0, false
	}
	h := d[i+2 : i+6]
	a, b, c, e := hexValue[h[0]], hexValue[h[1]], hexValue[h[2]], hexValue[h[3]]
	return rune(a)<<12 | rune(b)<<8 | rune(c)<<4 | rune(e), a|b|c|e < 16
}

// hexValue maps a hexadecimal digit to its value, every other byte to 255.
var hexValue = func() (t [256]byte) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9':
			t[c] = byte(c - '0')
		case c >= 'a' && c <= 'f':
			t[c] = byte(c - 'a' + 10)
		case c >= 'A' && c <= 'F':
			t[c] = byte(c - 'A' + 10)
		default:
			t[c] = 255
		}
	}
	return t
}()
