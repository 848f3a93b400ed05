package bpe

import (
	"bytes"
	"slices"
	"strings"
)

// specialRule says how text of a special token is found; the zero value is by its exact bytes.
type specialRule struct {
	normalized  bool // in normalized text, and only where no other token was found before normalizing
	left, right bool // white space before or behind it goes with it
}

// matcher finds special tokens in text.
type matcher struct {
	sorted []special
	rules  map[uint32]specialRule
	first  [256]bool
	only   int          // the one byte that all begin with, or -1
	second [1024]uint64 // a bit for each pair of first bytes; set for every pair with a token of one byte
}

// newMatcher returns nil when there is nothing to find. sorted is in the order of texts.
func newMatcher(sorted []special, rules map[uint32]specialRule) *matcher {
	if len(sorted) == 0 {
		return nil
	}
	m := &matcher{sorted: sorted, rules: rules, only: int(sorted[0].text[0])}
	for _, s := range sorted {
		b := s.text[0]
		m.first[b] = true
		if int(b) != m.only {
			m.only = -1
		}
		for c := range 256 {
			if len(s.text) == 1 || int(s.text[1]) == c {
				pair := int(b)<<8 | c
				m.second[pair>>6] |= 1 << (pair & 63)
			}
		}
	}
	return m
}

// find returns the leftmost special token in text[from:], the longest of those that begin there; ok is false
// when there is none.
func (m *matcher) find(text []byte, from int) (at int, found special, ok bool) {
	for at = from; at < len(text); at++ {
		if m.only >= 0 {
			i := bytes.IndexByte(text[at:], byte(m.only))
			if i < 0 {
				break
			}
			at += i
		} else if !m.first[text[at]] {
			continue
		}
		if at+1 < len(text) {
			pair := int(text[at])<<8 | int(text[at+1])
			if m.second[pair>>6]>>(pair&63)&1 == 0 {
				continue
			}
		}
		if found, ok = m.longest(text[at:]); ok {
			return at, found, true
		}
	}
	return 0, special{}, false
}

// longest returns the longest token that text begins with.
func (m *matcher) longest(text []byte) (found special, ok bool) {
	candidates := m.sorted
	for n := 0; n < len(text) && len(candidates) > 0; n++ {
		// Narrow to those whose byte n is text[n]; they all share the bytes before, and the shortest come first.
		b := text[n]
		lo, _ := slices.BinarySearchFunc(candidates, b, func(s special, b byte) int {
			if len(s.text) <= n || s.text[n] < b {
				return -1
			}
			return 1
		})
		candidates = candidates[lo:]
		hi, _ := slices.BinarySearchFunc(candidates, b, func(s special, b byte) int {
			if s.text[n] <= b {
				return -1
			}
			return 1
		})
		candidates = candidates[:hi]
		if len(candidates) > 0 && len(candidates[0].text) == n+1 {
			found, ok = candidates[0], true
		}
	}
	return found, ok
}

// setSpecials sorts the special tokens and prepares finding them.
func (e *Encoding) setSpecials(s spec) error {
	e.specials = slices.Clone(s.specials)
	slices.SortFunc(e.specials, func(a, b special) int { return strings.Compare(a.text, b.text) })
	if err := checkSpecials(e.specials); err != nil {
		return err
	}
	var raw, normalized []special
	for _, sp := range e.specials {
		if !s.rules[sp.id].normalized {
			raw = append(raw, sp)
			continue
		}
		if s.nfc {
			var n normalizer
			sp.text = string(n.nfc([]byte(sp.text)))
		}
		normalized = append(normalized, sp)
	}
	slices.SortFunc(normalized, func(a, b special) int { return strings.Compare(a.text, b.text) })
	if err := checkSpecials(normalized); err != nil {
		return err
	}
	e.texts = make(map[uint32]string, len(s.specials)+len(s.unused))
	for _, sp := range append(slices.Clone(s.unused), s.specials...) {
		e.texts[sp.id] = sp.text
	}
	e.raw, e.normalized = newMatcher(raw, s.rules), newMatcher(normalized, s.rules)
	return nil
}
