package bpe

import (
	"fmt"
	"slices"
	"strings"
)

// special is a token that stands for itself in a rendered prompt and never takes part in merges.
type special struct {
	text string
	id   uint32
}

// checkSpecials refuses tokens that cannot be told apart. sorted is in the order of texts.
func checkSpecials(sorted []special) error {
	for i, s := range sorted {
		if s.text == "" {
			return fmt.Errorf("a special token without text has id %d", s.id)
		}
		if i > 0 && s.text == sorted[i-1].text {
			return fmt.Errorf("special ids %d and %d have the same text", sorted[i-1].id, s.id)
		}
	}
	return nil
}

// Special returns the id of a special token by its exact text.
func (e *Encoding) Special(text string) (id uint32, ok bool) {
	i, ok := slices.BinarySearchFunc(e.specials, text, func(s special, text string) int { return strings.Compare(s.text, text) })
	if !ok {
		return 0, false
	}
	return e.specials[i].id, true
}

// Specials lists the texts of the special tokens, sorted.
func (e *Encoding) Specials() []string {
	out := make([]string, len(e.specials))
	for i, s := range e.specials {
		out[i] = s.text
	}
	return out
}

// AppendSpecial is Append, but the text of a special token becomes its id (encode of Hugging Face): leftmost,
// and the longest of those that begin there. What lies between is normalized and tokenized apart.
func (e *Encoder) AppendSpecial(dst []uint32, text []byte) []uint32 {
	text = e.repair(text)
	dst = e.appendAround(dst, text, e.enc.raw, (*Encoder).appendNormalized)
	e.trim()
	return dst
}

// appendNormalized takes text without tokens that are found before normalizing.
func (e *Encoder) appendNormalized(dst []uint32, text []byte) []uint32 {
	return e.appendAround(dst, e.normalize(text), e.enc.normalized, (*Encoder).appendText)
}

// appendText appends the ids of text that is well-formed and normalized.
func (e *Encoder) appendText(dst []uint32, text []byte) []uint32 {
	if e.enc.words {
		return e.appendWords(dst, text)
	}
	for pos := 0; pos < len(text); {
		end := e.enc.split(text, pos)
		dst = e.appendPiece(dst, text[pos:end])
		pos = end
	}
	return dst
}

// appendAround appends the ids of the tokens that m finds, and has rest append what lies between.
func (e *Encoder) appendAround(dst []uint32, text []byte, m *matcher, rest func(*Encoder, []uint32, []byte) []uint32) []uint32 {
	done := 0
	for from := 0; m != nil; {
		start, found, ok := m.find(text, from)
		if !ok {
			break
		}
		from = start + len(found.text)
		stop, rule := from, m.rules[found.id]
		if rule.left {
			start = max(done, spaceBefore(text, start))
		}
		if rule.right {
			stop = skip(text, stop, setSpace)
		}
		if done < start {
			dst = rest(e, dst, text[done:start])
		}
		dst = append(dst, found.id)
		done = stop
	}
	if done < len(text) {
		dst = rest(e, dst, text[done:])
	}
	return dst
}

// spaceBefore returns the beginning of the white space that ends at pos.
func spaceBefore(text []byte, pos int) int {
	for begin := pos; begin > 0; pos = begin {
		for begin--; begin > 0 && text[begin]&0xC0 == 0x80; begin-- {
		}
		if c, _ := classAt(text, begin); setSpace>>c&1 == 0 {
			break
		}
	}
	return pos
}
