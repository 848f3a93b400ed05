package bpe

import "strings"

// Border tells whether a text may be cut where this special token begins, its parts be tokenized apart, and the ids
// be those of the whole, for [Encoder.AppendSpecial]: the token is found by its exact bytes before any
// normalizing, takes no white space from before it, and no other token can begin before it and reach into it.
func (e *Encoding) Border(text string) bool {
	id, ok := e.Special(text)
	if !ok || e.raw == nil || e.raw.rules[id].normalized || e.raw.rules[id].left {
		return false
	}
	for _, s := range e.raw.sorted {
		for k := 1; k < len(s.text); k++ {
			if rest := s.text[k:]; strings.HasPrefix(text, rest) || strings.HasPrefix(rest, text) {
				return false
			}
		}
	}
	return true
}
