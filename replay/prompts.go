package replay

import (
	"hash/fnv"
	"math/bits"
	"strconv"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// Token ids of prompts lie in [TokenMin, TokenMin+TokenSpan): below them are the special and byte tokens of the
// usual vocabularies, above them not every model has any.
const (
	TokenMin  = 1000
	TokenSpan = 30000
)

// WordBytes is the size of one word of a text prompt, its blank included.
const WordBytes = 4

const (
	letters  = 26
	wordSpan = letters * letters * letters
)

// Domains of the content hash.
const (
	ofHashID uint64 = iota + 1
	ofRow
)

// Prompts makes the prompt of a row from its hash ids, whenever it is needed: a pure function of (hash ids,
// input_tokens, BlockSize, Seed, Salt). It holds no state and is safe for concurrent use.
//
// A block's content is a function of its hash id alone, cut to the block's size, so that equal ids give equal
// blocks, and equal partial tails are equal for equal sizes. The first five tokens of a block spell the id's
// keyed 64-bit permutation in base TokenSpan: blocks of five tokens or more are equal only for equal ids, by
// construction and not by luck. Positions that no hash id covers (a null list, a short one) have content that
// no other row has.
type Prompts struct {
	// BlockSize is the number of tokens that one hash id stands for; 0 = 512.
	BlockSize int
	// Seed and Salt key the content. A salt of its own for each run keeps one run from warming the cache for
	// the next; the same salt repeats the prompts.
	Seed uint64
	Salt string
}

// TokenIDs returns exactly row.InputTokens token ids.
func (p *Prompts) TokenIDs(row *schemas.TraceRow) []int32 {
	out := make([]int32, 0, row.InputTokens)
	p.each(row, TokenSpan, func(digit uint32) { out = append(out, TokenMin+int32(digit)) })
	return out
}

// AppendTokenIDs appends the same ids to dst as a JSON list.
func (p *Prompts) AppendTokenIDs(dst []byte, row *schemas.TraceRow) []byte {
	dst = append(dst, '[')
	first := true
	p.each(row, TokenSpan, func(digit uint32) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = strconv.AppendInt(dst, TokenMin+int64(digit), 10)
	})
	return append(dst, ']')
}

// Text returns row.InputTokens words of three letters and a blank: exactly WordBytes bytes a token, which is an
// exact count for a target that counts four bytes as a token. For a real tokenizer the length is approximate;
// the realised count is what usage tells.
func (p *Prompts) Text(row *schemas.TraceRow) string { return string(p.AppendText(nil, row)) }

// AppendText appends the same text to dst. It needs no escaping in JSON.
func (p *Prompts) AppendText(dst []byte, row *schemas.TraceRow) []byte {
	p.each(row, wordSpan, func(digit uint32) {
		dst = append(dst, 'a'+byte(digit/(letters*letters)), 'a'+byte(digit/letters%letters), 'a'+byte(digit%letters), ' ')
	})
	return dst
}

// each yields one digit in [0, span) for every token of the row's prompt.
func (p *Prompts) each(row *schemas.TraceRow, span uint64, yield func(uint32)) {
	size := int32(p.BlockSize)
	if size <= 0 {
		size = 512
	}
	salt := fnv.New64a()
	salt.Write([]byte(p.Salt))
	key := rng.Hash(p.Seed, salt.Sum64())
	for block, left := 0, row.InputTokens; left > 0; block, left = block+1, left-size {
		var name uint64
		if block < len(row.HashIDs) {
			name = rng.Hash(key, ofHashID, uint64(row.HashIDs[block]))
		} else {
			name = rng.Hash(key, ofRow, uint64(row.Row), uint64(block))
		}
		spell(name, min(left, size), span, yield)
	}
}

// spell yields n digits that name determines: first the digits of name itself, which need at most five places
// in either base, then hashed ones.
func spell(name uint64, n int32, span uint64, yield func(uint32)) {
	const places = 5
	rest := name
	for i := range n {
		if i < places {
			yield(uint32(rest % span))
			rest /= span
			continue
		}
		hi, _ := bits.Mul64(rng.Hash(name, uint64(i)), span)
		yield(uint32(hi))
	}
}
