// Package bpe turns text into the token ids that served models see: byte-level byte-pair encodings, exact to
// the id, in pure Go. It has the o200k and cl100k vocabularies of tiktoken embedded and reads the byte-level
// tokenizer.json files of Hugging Face.
//
// Token ids are text in another alphabet: whoever holds them can read the prompt. They live in memory only.
package bpe

import (
	"errors"
	"fmt"
	"slices"
)

// maxTokens bounds the ids of a vocabulary: tables pack two ids and a result into 63 bits.
const maxTokens = 1 << 21

// Encoding is an immutable vocabulary with its splitter and special tokens; safe for concurrent use.
type Encoding struct {
	id       string
	tokens   [][]byte // by id; nil is a hole
	ranks    map[string]uint32
	pairs    map[[2]uint32]uint32 // rank of a listed merge; nil when any pair whose joint is a token may merge
	whole    bool
	split    splitFunc
	nfc      bool
	specials []special // sorted by text
}

// special is a token that stands for itself in a rendered prompt and never takes part in merges.
type special struct {
	text string
	id   uint32
}

// splitFunc returns the end of the piece that begins at pos. text is valid UTF-8, pos < len(text), and the
// result is greater than pos.
type splitFunc func(text []byte, pos int) int

// spec is what an Encoding is made of.
type spec struct {
	id       string
	tokens   [][]byte    // token bytes by id; nil is a hole
	merges   [][2]uint32 // ids of the two halves in order of rank (Hugging Face); nil: every pair whose joint is a token, by its id (tiktoken)
	whole    bool        // a piece that is a token is that token, reachable by merges or not (tiktoken, ignore_merges)
	split    splitFunc
	nfc      bool // texts are normalized to NFC before splitting
	specials []special
}

// newEncoding builds the tables of s. It fails when a byte has no token, when a merge has no joint token, and
// when a token or special text stands for two ids.
func newEncoding(s spec) (*Encoding, error) {
	if len(s.tokens) > maxTokens {
		return nil, fmt.Errorf("building a vocabulary: %d ids, more than %d", len(s.tokens), maxTokens)
	}
	e := &Encoding{id: s.id, tokens: s.tokens, whole: s.whole, split: s.split, nfc: s.nfc}
	e.ranks = make(map[string]uint32, len(s.tokens))
	for id, token := range s.tokens {
		if token == nil {
			continue
		}
		if other, ok := e.ranks[string(token)]; ok {
			return nil, fmt.Errorf("building a vocabulary: ids %d and %d are the same token", other, id)
		}
		e.ranks[string(token)] = uint32(id)
	}
	for b := range 256 {
		if _, ok := e.ranks[string([]byte{byte(b)})]; !ok {
			return nil, fmt.Errorf("building a vocabulary: byte 0x%02x has no token", b)
		}
	}
	if s.merges != nil {
		e.pairs = make(map[[2]uint32]uint32, len(s.merges))
		for rank, m := range s.merges {
			if int(m[0]) >= len(s.tokens) || int(m[1]) >= len(s.tokens) {
				return nil, fmt.Errorf("building a vocabulary: merge %d names an id that is not there", rank)
			}
			if _, ok := e.ranks[string(s.tokens[m[0]])+string(s.tokens[m[1]])]; !ok {
				return nil, fmt.Errorf("building a vocabulary: merge %d has no joint token", rank)
			}
			if _, ok := e.pairs[m]; !ok {
				e.pairs[m] = uint32(rank)
			}
		}
	}
	e.specials = slices.Clone(s.specials)
	slices.SortFunc(e.specials, func(a, b special) int {
		if a.text < b.text {
			return -1
		}
		return 1
	})
	for i, sp := range e.specials {
		if sp.text == "" {
			return nil, errors.New("building a vocabulary: a special token without text")
		}
		if i > 0 && sp.text == e.specials[i-1].text {
			return nil, fmt.Errorf("building a vocabulary: special ids %d and %d have the same text", e.specials[i-1].id, sp.id)
		}
	}
	return e, nil
}

// ID names the vocabulary and its version, as it enters the block chain: "o200k/1", "hf/<12 hex>/1".
func (e *Encoding) ID() string { return e.id }

// UnicodeVersion is the Unicode version of the class tables that the splitters use.
func (e *Encoding) UnicodeVersion() string { return unicodeVersion }

// Size is one more than the greatest id, special tokens included.
func (e *Encoding) Size() int {
	n := len(e.tokens)
	for _, s := range e.specials {
		n = max(n, int(s.id)+1)
	}
	return n
}

// Decode appends the bytes of ids to dst. An id that is not in the vocabulary appends nothing.
func (e *Encoding) Decode(dst []byte, ids []uint32) []byte {
	for _, id := range ids {
		if int(id) < len(e.tokens) && e.tokens[id] != nil {
			dst = append(dst, e.tokens[id]...)
			continue
		}
		for _, s := range e.specials {
			if s.id == id {
				dst = append(dst, s.text...)
				break
			}
		}
	}
	return dst
}
