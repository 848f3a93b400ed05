package bpe

import (
	"bytes"
	"slices"
	"strings"
)

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
// and the longest of those that begin there. What lies between is tokenized apart.
func (e *Encoder) AppendSpecial(dst []uint32, text []byte) []uint32 {
	for len(text) > 0 {
		at, found := -1, special{}
		for _, s := range e.enc.specials {
			i := bytes.Index(text, []byte(s.text))
			if i >= 0 && (at < 0 || i < at || i == at && len(s.text) > len(found.text)) {
				at, found = i, s
			}
		}
		if at < 0 {
			return e.Append(dst, text)
		}
		dst = e.Append(dst, text[:at])
		dst = append(dst, found.id)
		text = text[at+len(found.text):]
	}
	return dst
}
