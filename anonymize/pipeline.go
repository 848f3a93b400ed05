package anonymize

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// worker takes one prompt at a time from its rendering to its ids.
//
// The text is cut into pieces at borders across which no token reaches: for a byte-pair encoding where a mark of
// the template begins, for tokens of fixed width after every 64 blocks. Borders depend on nothing behind them, so
// two prompts that begin alike are cut alike. The memo knows a piece by its text (its tokens), and a run of pieces
// from the beginning by all of it and the scope (the ids that its last piece completes, and the state of the chain
// after it): a repeated history costs one look-up a piece, new text is tokenized, and what is new behind known
// pieces of another prompt is only hashed.
type worker struct {
	chain  *blockChain
	text   Rendering
	coders map[*vocabulary]*coder
	tokens []uint32 // that are not in a block yet
	most   int      // of tokens, since they were cleared
	words  []uint32 // a memo's entry
	mostW  int
	key    []byte // what a memo's key is the hash of

	memo *memo
	seed uint64
}

// Sizes of pieces.
const (
	minPiece    = 64      // bytes between two borders, at least
	pieceBlocks = 64      // blocks in a piece of tokens of fixed width
	keepBytes   = 4 << 20 // of a buffer that a worker keeps between prompts
	keepCoders  = 4       // vocabularies whose caches a worker keeps
)

// hash appends the ids of the rendered prompt to ids and counts its tokens. The chain has been started.
func (w *worker) hash(ids []int64, s *setting) (out []int64, tokens int) {
	first := len(ids)
	c := w.coder(s.vocab)
	text, whole := w.hashable(c, s.all)
	key := w.scopeKey(s)
	w.tokens = w.tokens[:0]
	known := w.memo != nil
	cut := cutter{text: text, marks: w.text.Marks, step: s.vocab.width * pieceBlocks * w.chain.size, coder: c, all: s.all}
	for from := 0; from < len(text); {
		to, marks := cut.next(from)
		piece := text[from:to]
		keyed := w.memo != nil && len(piece) >= minPiece
		if keyed {
			key = w.prefixKey(key, piece, marks, from)
			if known {
				if ids, known = w.recall(ids, key); known {
					from = to
					continue
				}
			}
		}
		w.tokenize(c, piece, marks, from, s, keyed)
		n := len(ids)
		ids, w.tokens = w.chain.full(ids, w.tokens)
		if keyed {
			w.remember(key, ids[n:])
		}
		from = to
	}
	tokens = (len(ids) - first) * w.chain.size
	if whole && len(w.tokens) > 0 {
		tokens += len(w.tokens)
		ids = append(ids, w.chain.block(partialBlock, w.tokens))
	}
	w.chain.forget()
	return ids, tokens
}

// hashable returns the text that may be compared with another's. It is not whole when the prompt has a gap: then
// it ends at the last border before it.
func (w *worker) hashable(c *coder, all bool) (text []byte, whole bool) {
	text = w.text.Text
	gap := w.text.Gap
	if c.enc == nil {
		if block := c.vocab.width * w.chain.size; gap >= 0 {
			text = text[:gap/block*block] // a short last token would stand in for a whole one
		}
		return text, gap < 0
	}
	if gap < 0 {
		return text, true
	}
	end := 0
	for _, m := range w.text.Marks {
		if m.From <= gap && c.border(text[m.From:m.To], all) {
			end = m.From
		}
		if m.To <= gap && !all {
			end = m.To
		}
	}
	return text[:end], false
}

// cutter finds the borders of pieces.
type cutter struct {
	text  []byte
	marks []Span // that begin at or after the last border
	step  int    // of tokens of fixed width
	coder *coder
	all   bool
}

// next returns the end of the piece that begins at from, and the marks in it.
func (c *cutter) next(from int) (to int, marks []Span) {
	if c.coder.enc == nil {
		return min(from+c.step, len(c.text)), nil
	}
	n := 0
	for to = len(c.text); n < len(c.marks) && c.marks[n].From < len(c.text); n++ {
		m := c.marks[n]
		if m.From >= from+minPiece && c.coder.border(c.text[m.From:m.To], c.all) {
			to = m.From
			break
		}
	}
	marks, c.marks = c.marks[:n], c.marks[n:]
	return to, marks
}

// tokenize adds the tokens of a piece that begins at from to w.tokens.
func (w *worker) tokenize(c *coder, piece []byte, marks []Span, from int, s *setting, keyed bool) {
	w.tokens = roomFor(w.tokens, len(piece))
	if c.enc == nil || !keyed {
		w.tokens = c.append(w.tokens, piece, marks, from, s.all)
		w.most = max(w.most, len(w.tokens))
		return
	}
	n := len(w.tokens)
	key := w.pieceKey(s)
	var ok bool
	if w.tokens, ok = w.memo.get(key, w.tokens); !ok {
		w.tokens = c.append(w.tokens, piece, marks, from, s.all)
		w.memo.put(key, w.tokens[n:])
	}
	w.most = max(w.most, len(w.tokens))
}

// Domains of the memo's keys.
const (
	scopeDomain = iota + 1
	prefixDomain
	pieceDomain
)

// scopeKey is the key of an empty prompt: the chain's first value stands for the scope.
func (w *worker) scopeKey(s *setting) xxh3.Uint128 {
	if w.memo == nil {
		return xxh3.Uint128{}
	}
	w.key = append(w.key[:0], w.chain.state[:]...)
	w.key = binary.LittleEndian.AppendUint64(w.key, s.index)
	return xxh3.Hash128Seed(w.key, w.seed+scopeDomain)
}

// prefixKey is the key of what before is the key of, with a piece more. It leaves the piece in w.key, for pieceKey.
func (w *worker) prefixKey(before xxh3.Uint128, piece []byte, marks []Span, from int) xxh3.Uint128 {
	sum := xxh3.Hash128Seed(piece, w.seed)
	b := w.key[:0]
	for _, v := range [...]uint64{before.Hi, before.Lo, sum.Hi, sum.Lo} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, m := range marks { // the same text without them has other tokens
		b = binary.LittleEndian.AppendUint32(b, uint32(m.From-from))
		b = binary.LittleEndian.AppendUint32(b, uint32(m.To-from))
	}
	w.key = b
	return xxh3.Hash128Seed(b, w.seed+prefixDomain)
}

// pieceKey is the key of the piece that prefixKey was given last.
func (w *worker) pieceKey(s *setting) xxh3.Uint128 {
	w.key = binary.LittleEndian.AppendUint64(w.key, s.index)
	return xxh3.Hash128Seed(w.key[16:], w.seed+pieceDomain)
}

// stateWords is the length of a chain value in words.
const stateWords = 8

// remember keeps what the prefix of this key came to: the chain's state, the tokens that are in no block yet, and
// the ids that its last piece completed.
func (w *worker) remember(key xxh3.Uint128, ids []int64) {
	b := w.words[:0]
	for i := range stateWords {
		b = append(b, binary.LittleEndian.Uint32(w.chain.state[4*i:]))
	}
	b = append(b, uint32(len(w.tokens)))
	b = append(b, w.tokens...)
	for _, id := range ids {
		b = append(b, uint32(id), uint32(id>>32))
	}
	w.words, w.mostW = b, max(w.mostW, len(b))
	w.memo.put(key, b)
}

// recall goes on from a prefix, if the memo has it.
func (w *worker) recall(ids []int64, key xxh3.Uint128) ([]int64, bool) {
	b, ok := w.memo.get(key, w.words[:0])
	w.words, w.mostW = b, max(w.mostW, len(b))
	if !ok {
		return ids, false
	}
	for i := range stateWords {
		binary.LittleEndian.PutUint32(w.chain.state[4*i:], b[i])
	}
	tail := int(b[stateWords])
	b = b[stateWords+1:]
	w.tokens = append(w.tokens[:0], b[:tail]...)
	w.most = max(w.most, tail)
	for b = b[tail:]; len(b) > 0; b = b[2:] {
		ids = append(ids, int64(b[0])|int64(b[1])<<32)
	}
	return ids, true
}

// coder returns the worker's coder for a vocabulary.
func (w *worker) coder(v *vocabulary) *coder {
	if c, ok := w.coders[v]; ok {
		return c
	}
	if len(w.coders) >= keepCoders {
		w.dropCoders()
	}
	c := newCoder(v)
	w.coders[v] = c
	return c
}

func (w *worker) dropCoders() {
	for _, c := range w.coders {
		c.clear()
	}
	clear(w.coders)
}

// roomFor makes space for n more tokens. The array that is left behind holds text, so it is cleared.
func roomFor(tokens []uint32, n int) []uint32 {
	if cap(tokens)-len(tokens) >= n {
		return tokens
	}
	grown := make([]uint32, len(tokens), len(tokens)+n+n/2)
	copy(grown, tokens)
	clear(tokens[:cap(tokens)])
	return grown
}

// reset clears what holds text; an unusually large buffer is dropped.
func (w *worker) reset() {
	w.text.Clear()
	clear(w.tokens[:min(w.most, cap(w.tokens))])
	clear(w.words[:min(w.mostW, cap(w.words))])
	w.chain.forget()
	w.most, w.mostW = 0, 0
	if cap(w.text.Text)+wordBytes*(cap(w.tokens)+cap(w.words)) > keepBytes {
		w.text, w.tokens, w.words = Rendering{}, nil, nil
	}
}

// close is reset for good.
func (w *worker) close() {
	w.reset()
	w.dropCoders()
}
