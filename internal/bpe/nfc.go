package bpe

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// NFC as Hugging Face's tokenizers does it: the algorithm of Unicode Standard Annex 15 on the tables of
// nfcVersion, which is older than that of the class tables. golang.org/x/text/unicode/norm would order the
// marks that later versions added.

// nfcKind is what quick check knows of a code point.
type nfcKind struct {
	class uint8 // canonical combining class
	check uint8 // quick check: 0 yes, 1 maybe, 2 no
}

// stable kinds begin a stretch that nothing before them can change.
func (k nfcKind) stable() bool { return k == nfcKind{} }

// nfcDecomposition is the full canonical decomposition of one code point.
type nfcDecomposition struct {
	from rune
	to   string
}

// nfcRune is a code point on its way from decomposition to composition.
type nfcRune struct {
	r     rune
	class uint8
}

// normalizer has the scratch of one worker. Its zero value is ready.
type normalizer struct {
	out   []byte
	runes []nfcRune
}

// nfc normalizes valid UTF-8 and returns it: text itself when it is NFC already, else scratch that the next
// call overwrites.
func (n *normalizer) nfc(text []byte) []byte {
	stable := nfcSpan(text)
	if stable == len(text) {
		return text
	}
	out := n.out[:0]
	for {
		out = append(out, text[:stable]...)
		text = text[stable:]
		if len(text) == 0 {
			break
		}
		end := nfcSegment(text)
		out = n.appendComposed(out, text[:end])
		text = text[end:]
		stable = nfcSpan(text)
	}
	n.out = out
	return out
}

// normalize returns well-formed text as the vocabulary wants it before splitting.
func (e *Encoder) normalize(text []byte) []byte {
	if e.enc.nfc {
		return e.norm.nfc(text)
	}
	return text
}

// release zeroes and drops scratch that one great text left behind.
func (n *normalizer) release() {
	if cap(n.out) > keepScratch {
		clear(n.out[:cap(n.out)])
		n.out = nil
	}
	if cap(n.runes) > keepScratch/8 {
		clear(n.runes[:cap(n.runes)])
		n.runes = nil
	}
}

// clear zeroes the scratch: it holds text.
func (n *normalizer) clear() {
	clear(n.out[:cap(n.out)])
	clear(n.runes[:cap(n.runes)])
	n.out, n.runes = n.out[:0], n.runes[:0]
}

// nfcKindOf looks r up.
func nfcKindOf(r rune) nfcKind {
	page := int(r) >> 6
	if page >= len(nfcIndex) {
		return nfcKind{}
	}
	return nfcKinds[nfcBlocks[int(nfcIndex[page])<<6|int(r)&63]]
}

// nfcSpan returns how much of text is NFC and will be whatever follows: len(text), or the last stable code
// point before the first doubt.
func nfcSpan(text []byte) int {
	const high = 0x8080808080808080
	class := uint8(0) // of the code point before
	for i := 0; i < len(text); {
		b := text[i]
		if b < 0xCC { // below U+0300 nothing is composed or ordered
			class = 0
			if b < utf8.RuneSelf {
				i++
				for i+8 <= len(text) && binary.LittleEndian.Uint64(text[i:])&high == 0 {
					i += 8
				}
			} else {
				i += 2
			}
			continue
		}
		page, size := 0, 0
		switch {
		case b < 0xE0:
			page, size = int(b&0x1F), 2
		case b < 0xF0:
			page, size = int(b&0x0F)<<6|int(text[i+1]&0x3F), 3
		default:
			page, size = int(b&0x07)<<12|int(text[i+1]&0x3F)<<6|int(text[i+2]&0x3F), 4
		}
		if page >= len(nfcIndex) || nfcIndex[page] == 0 {
			class = 0
			i += size
			continue
		}
		kind := nfcKinds[nfcBlocks[int(nfcIndex[page])<<6|int(text[i+size-1]&0x3F)]]
		if kind.check != 0 || kind.class != 0 && kind.class < class {
			return nfcStable(text, i)
		}
		class = kind.class
		i += size
	}
	return len(text)
}

// nfcStable returns the beginning of the last stable code point before pos, or 0.
func nfcStable(text []byte, pos int) int {
	for pos > 0 {
		r, size := utf8.DecodeLastRune(text[:pos])
		pos -= size
		if nfcKindOf(r).stable() {
			break
		}
	}
	return pos
}

// nfcSegment returns the end of the segment at the beginning of text: the first code point, and all behind it
// up to the next stable one.
func nfcSegment(text []byte) int {
	_, end := utf8.DecodeRune(text)
	for end < len(text) {
		r, size := utf8.DecodeRune(text[end:])
		if nfcKindOf(r).stable() {
			break
		}
		end += size
	}
	return end
}

// appendComposed appends the NFC of one segment.
func (n *normalizer) appendComposed(dst, segment []byte) []byte {
	runes := n.runes[:0]
	for len(segment) > 0 {
		r, size := utf8.DecodeRune(segment)
		segment = segment[size:]
		runes = appendDecomposed(runes, r)
	}
	orderMarks(runes)
	for _, c := range compose(runes) {
		dst = utf8.AppendRune(dst, c.r)
	}
	n.runes = runes
	return dst
}

// orderMarks sorts each run of code points with a class by it, keeping equal ones in order.
func orderMarks(runes []nfcRune) {
	for i := 0; i < len(runes); i++ {
		if runes[i].class == 0 {
			continue
		}
		end := i + 1
		for end < len(runes) && runes[end].class != 0 {
			end++
		}
		slices.SortStableFunc(runes[i:end], func(a, b nfcRune) int { return cmp.Compare(a.class, b.class) })
		i = end
	}
}

// compose joins ordered code points with the last starter where nothing blocks them, in place.
func compose(runes []nfcRune) []nfcRune {
	out, starter, class := runes[:0], -1, uint8(0)
	for _, c := range runes {
		blocked := starter < len(out)-1 && class >= c.class
		if starter >= 0 && !blocked {
			if joint, ok := composite(out[starter].r, c.r); ok {
				out[starter].r = joint
				continue
			}
		}
		out = append(out, c)
		if class = c.class; class == 0 {
			starter = len(out) - 1
		}
	}
	return out
}
