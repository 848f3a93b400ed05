package bpe

import "unicode/utf8"

// repair returns text when it is well-formed, else a copy in scratch with one U+FFFD for each maximal
// ill-formed part (Unicode 3.9, WHATWG, Python): E4 B8 41 is one U+FFFD and A, ED A0 80 is three. A range loop
// makes one per byte, strings.ToValidUTF8 one per run; neither is what the peers do.
func (e *Encoder) repair(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	e.scratch = appendRepaired(e.scratch[:0], text)
	return e.scratch
}

func appendRepaired(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			dst = append(dst, text[i])
			i++
			continue
		}
		n, ok := sequence(text[i:])
		if ok {
			dst = append(dst, text[i:i+n]...)
		} else {
			dst = append(dst, "\uFFFD"...)
		}
		i += n
	}
	return dst
}

// sequence measures the sequence that text begins with: a well-formed one, or the longest part of it that a
// well-formed one could begin with, and at least one byte.
func sequence(text []byte) (n int, ok bool) {
	lo, hi, need := byte(0x80), byte(0xBF), 0
	switch b := text[0]; {
	case b >= 0xC2 && b <= 0xDF:
		need = 1
	case b >= 0xE0 && b <= 0xEF:
		need = 2
		switch b {
		case 0xE0:
			lo = 0xA0
		case 0xED:
			hi = 0x9F
		}
	case b >= 0xF0 && b <= 0xF4:
		need = 3
		switch b {
		case 0xF0:
			lo = 0x90
		case 0xF4:
			hi = 0x8F
		}
	default:
		return 1, false
	}
	for n = 1; n <= need; n++ {
		if n >= len(text) || text[n] < lo || text[n] > hi {
			return n, false
		}
		lo, hi = 0x80, 0xBF
	}
	return n, true
}
