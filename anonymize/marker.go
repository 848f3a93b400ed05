package anonymize

import (
	"bytes"
	"slices"
)

// marker finds control tokens in what a template wrote.
type marker struct {
	byFirst [256][]string // longest first
}

func newMarker(tokens []string) *marker {
	m := &marker{}
	for _, t := range tokens {
		if t != "" {
			m.byFirst[t[0]] = append(m.byFirst[t[0]], t)
		}
	}
	for i := range m.byFirst {
		slices.SortFunc(m.byFirst[i], func(a, b string) int { return len(b) - len(a) })
	}
	return m
}

// find appends the tokens in text that hold no byte of content: leftmost, of these the longest.
func (m *marker) find(dst []Span, text []byte, content []Span) []Span {
	from := 0
	for i := 0; i <= len(content); i++ {
		to := len(text)
		if i < len(content) {
			to = content[i].From
		}
		dst = m.within(dst, text, from, to)
		if i < len(content) {
			from = content[i].To
		}
	}
	return dst
}

func (m *marker) within(dst []Span, text []byte, from, to int) []Span {
next:
	for i := from; i < to; {
		for _, t := range m.byFirst[text[i]] {
			if len(t) <= to-i && bytes.HasPrefix(text[i:to], []byte(t)) {
				dst = append(dst, Span{From: i, To: i + len(t)})
				i += len(t)
				continue next
			}
		}
		i++
	}
	return dst
}
