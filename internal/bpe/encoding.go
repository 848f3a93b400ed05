// Package bpe turns text into the token ids that served models see: byte-level byte-pair encodings, exact to
// the id, in pure Go. It has the o200k and cl100k vocabularies of tiktoken embedded and reads the byte-level
// tokenizer.json files of Hugging Face.
//
// Token ids are text in another alphabet: whoever holds them can read the prompt. They live in memory only.
package bpe

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// maxTokens bounds the ids of a vocabulary: tables pack two ids and their joint into 63 bits.
const maxTokens = 1<<idBits - 1

// maxTokenBytes bounds one token: the trie is built by recursion over its bytes.
const maxTokenBytes = 4096

// Encoding is an immutable vocabulary with its splitter and special tokens; safe for concurrent use.
type Encoding struct {
	id       string
	vocab    *vocab // what the look-up of a whole piece may find; its arena has every token
	whole    bool
	bytes    [256]uint32
	early    int // how many bytes an encoder merges without tables before it has them made
	making   sync.Once
	made     atomic.Pointer[tables] // nil until then
	split    splitFunc
	words    bool
	role     [256]uint8
	nfc      bool
	specials []special // sorted by text

	raw, normalized *matcher          // of specials; nil when there are none of that rule
	texts           map[uint32]string // of ids that no text leads to by merging
}

// tables are the way of merging that a vocabulary allows, and what it needs.
type tables struct {
	greedy   *greedy    // nil when the vocabulary is not monotone
	complete bool       // greedy makes every token that the vocabulary may find
	merges   *rankTable // nil where greedy is not: there the id of a joint is its rank
}

// splitFunc returns the end of the piece that begins at pos. text is valid UTF-8, pos < len(text), and the
// result is greater than pos.
type splitFunc func(text []byte, pos int) int

// spec is what an Encoding is made of.
type spec struct {
	id       string
	tokens   [][]byte    // token bytes by id; nil is a hole
	merges   [][2]uint32 // ids of the two halves in order of rank (Hugging Face); nil: every pair whose joint is a token, by its id (tiktoken)
	early    int         // see Encoding; only where whole is set and merges is nil, for there the vocabulary alone tells the merges
	whole    bool        // a piece that is a token is that token, reachable by merges or not (tiktoken, ignore_merges)
	split    splitFunc
	words    bool // split takes [ASCII, no letter, digit, line break or apostrophe]?[A-Z]?[a-z]* before the next such byte, digit or line break as one piece
	nfc      bool // texts are normalized to NFC before splitting
	specials []special
	rules    map[uint32]specialRule // of special tokens that are not found by their exact bytes
	unused   []special              // ids that are known for decoding only
}

// newEncoding builds the tables of s. It fails when a byte has no token, when a merge has no joint token, and
// when a token or special text stands for two ids.
func newEncoding(s spec) (*Encoding, error) {
	e := &Encoding{id: s.id, whole: s.whole, early: s.early, split: s.split, words: s.words, role: wordRole(), nfc: s.nfc}
	if err := checkTokens(s.tokens); err != nil {
		return nil, fmt.Errorf("building a vocabulary: %w", err)
	}
	e.vocab = newVocab(s.tokens)
	if err := e.fillTables(s); err != nil {
		return nil, fmt.Errorf("building a vocabulary: %w", err)
	}
	if err := e.setSpecials(s); err != nil {
		return nil, fmt.Errorf("building a vocabulary: %w", err)
	}
	return e, nil
}

func checkTokens(tokens [][]byte) error {
	if len(tokens) > maxTokens {
		return fmt.Errorf("%d ids, more than %d", len(tokens), maxTokens)
	}
	for id, t := range tokens {
		if len(t) > maxTokenBytes {
			return fmt.Errorf("token %d has %d bytes, more than %d", id, len(t), maxTokenBytes)
		}
	}
	return nil
}

// fillTables checks the vocabulary, and makes its tables unless they come later.
func (e *Encoding) fillTables(s spec) error {
	if a, b, same := e.vocab.twins(); same {
		return fmt.Errorf("ids %d and %d are the same token", a, b)
	}
	for b := range e.bytes {
		id, ok := e.vocab.find([]byte{byte(b)})
		if !ok {
			return fmt.Errorf("byte 0x%02x has no token", b)
		}
		e.bytes[b] = id
	}
	if s.early > 0 {
		return nil
	}
	var listed *rankTable
	ordered := true
	if s.merges != nil {
		var err error
		if listed, ordered, err = listedMerges(e.vocab, s.merges); err != nil {
			return err
		}
	}
	reach := e.makeTables(listed, ordered)
	if s.whole {
		return nil
	}
	if reach == nil {
		reach = e.reachable()
	}
	if slices.Contains(reach, false) {
		e.vocab.index(func(id int) bool { return reach[id] })
	}
	return nil
}

// makeTables makes the tables by the way of merging that is right. reach says which tokens merging can make; nil when nobody
// knows yet.
func (e *Encoding) makeTables(listed *rankTable, ordered bool) (reach []bool) {
	t := &tables{merges: listed}
	if ordered {
		t.greedy, reach = newGreedy(e.vocab, listed)
	}
	switch {
	case t.greedy != nil:
		t.merges = nil
		t.complete = !e.whole || e.vocab.within(reach)
	case listed == nil:
		t.merges = everyMerge(e.vocab)
	}
	e.made.Store(t)
	return reach
}

// tables makes the tables that were left for later; all who ask wait for them.
func (e *Encoding) tables() *tables {
	e.making.Do(func() {
		if e.made.Load() == nil {
			e.makeTables(nil, true)
		}
	})
	return e.made.Load()
}

// listedMerges indexes a list of merges. ordered tells that their joints come in the order of ids.
func listedMerges(v *vocab, list [][2]uint32) (t *rankTable, ordered bool, err error) {
	t, ordered = newRankTable(len(list)), true
	var both []byte
	last := uint32(0)
	for rank, m := range list {
		if int(m[0]) >= len(v.offsets)-1 || int(m[1]) >= len(v.offsets)-1 {
			return nil, false, fmt.Errorf("merge %d names an id that is not there", rank)
		}
		both = append(append(both[:0], v.token(m[0])...), v.token(m[1])...)
		joint, ok := v.find(both)
		if !ok || v.size(m[0]) == 0 || v.size(m[1]) == 0 {
			return nil, false, fmt.Errorf("merge %d has no joint token", rank)
		}
		if before, _ := t.find(m[0], m[1]); before != none {
			return nil, false, fmt.Errorf("merge %d is merge %d again", rank, before)
		}
		t.insert(m[0], m[1], uint32(rank), joint)
		ordered = ordered && joint >= last
		last = joint
	}
	return t, ordered, nil
}

// everyMerge indexes each pair of tokens whose joint is a token, by the joint's id.
func everyMerge(v *vocab) *rankTable {
	var found [][3]uint32
	for id := range uint32(len(v.offsets) - 1) {
		t := v.token(id)
		for i := 1; i < len(t); i++ {
			if l, ok := v.find(t[:i]); ok {
				if r, ok := v.find(t[i:]); ok {
					found = append(found, [3]uint32{l, r, id})
				}
			}
		}
	}
	table := newRankTable(len(found))
	for _, f := range found {
		table.insert(f[0], f[1], f[2], f[2])
	}
	return table
}

// reachable tells which tokens merging by rank makes of their own bytes.
func (e *Encoding) reachable() []bool {
	enc, ids := e.NewEncoder(), []uint32(nil)
	reach := make([]bool, len(e.vocab.offsets)-1)
	for id := range reach {
		if t := e.vocab.token(uint32(id)); len(t) > 0 {
			ids = enc.appendByRank(ids[:0], t)
			reach[id] = len(ids) == 1
		}
	}
	return reach
}

// ID names the vocabulary and its version, as it enters the block chain: "o200k/1", "hf/<12 hex>/1".
func (e *Encoding) ID() string { return e.id }

// UnicodeVersion is the Unicode version of the class tables that the splitters use, and that of the normalizer
// where there is one: "16.0.0", "16.0.0, NFC 9.0.0".
func (e *Encoding) UnicodeVersion() string {
	if e.nfc {
		return unicodeVersion + ", NFC " + nfcVersion
	}
	return unicodeVersion
}

// Size is one more than the greatest id, special tokens included.
func (e *Encoding) Size() int {
	n := len(e.vocab.offsets) - 1
	for id := range e.texts {
		n = max(n, int(id)+1)
	}
	return n
}

// Tokens lists the bytes of all tokens by id; ids that the vocabulary leaves out have none.
func (e *Encoding) Tokens() [][]byte {
	out := make([][]byte, e.Size())
	for id := range out {
		out[id] = e.Decode(nil, []uint32{uint32(id)})
	}
	return out
}

// Decode appends the bytes of ids to dst. An id that is not in the vocabulary appends nothing.
func (e *Encoding) Decode(dst []byte, ids []uint32) []byte {
	for _, id := range ids {
		if int(id) < len(e.vocab.offsets)-1 && e.vocab.size(id) > 0 {
			dst = append(dst, e.vocab.token(id)...)
			continue
		}
		dst = append(dst, e.texts[id]...)
	}
	return dst
}
