package tabular

import (
	"fmt"
	"unicode/utf8"
)

// unsafe tells whether a terminal might act on r instead of showing it: control characters, and those that turn the
// direction of the text around or break a line.
func unsafe(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f: // C0, DEL, C1
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // directions
	case r == 0x2028, r == 0x2029, r == 0xfeff: // line ends, byte order mark
	default:
		return false
	}
	return true
}

// appendSafe appends s with the characters escaped that are unsafe, and bytes that are no UTF-8.
func appendSafe(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = fmt.Appendf(dst, `\x%02x`, s[i])
		case unsafe(r):
			dst = appendEscape(dst, r)
		default:
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// appendJSONText appends s as a JSON string. Unsafe characters are escaped, which changes nothing for who parses it;
// bytes that are no UTF-8 become U+FFFD, since JSON cannot hold them.
func appendJSONText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case unsafe(r):
			dst = appendEscape(dst, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
