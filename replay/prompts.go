package replay

import (
	"hash/fnv"
	"math"
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

// WordBytes is the size of one word of a text prompt without a vocabulary, its blank included.
const WordBytes = 4

const (
	letters  = 26
	wordSpan = letters * letters * letters
)

// Domains of the content hash.
const (
	ofHashID uint64 = iota + 1
	ofRow
	ofAnswer
)

// Prompts makes the prompt of a row from its hash ids, whenever it is needed: a pure function of (hash ids,
// input_tokens, BlockSize, Seed, Salt, Words, Prose). It holds no state and is safe for concurrent use.
//
// A block's content is a function of its hash id alone, cut to the block's size, so that equal ids give equal
// blocks, and equal partial tails are equal for equal sizes. The first tokens of a block of random content spell
// the id's keyed 64-bit permutation in the base of the vocabulary (five tokens for ids, eight or so for words):
// blocks of so many tokens are equal only for equal ids, by construction and not by luck. Prose spells nothing;
// its words are drawn by hash. Positions that no hash id covers (a null list, a short one) have content that no
// other row has.
type Prompts struct {
	// BlockSize is the number of tokens that one hash id stands for; 0 = 512.
	BlockSize int
	// Seed and Salt key the content. A salt of its own for each run keeps one run from warming the cache for
	// the next; the same salt repeats the prompts.
	Seed uint64
	Salt string
	// Words are what texts and prose are made of: each is one token of the target. nil = words of four bytes,
	// one token only for a target that counts bytes, and no prose.
	Words *Vocabulary
	// Prose makes sentences instead of random tokens, which no draft model can guess. It needs Words.
	Prose bool
}

// AppendIDs appends the ids of the tokens [from, to) of the row's prompt, which has exactly row.InputTokens, parted by
// commas.
func (p *Prompts) AppendIDs(dst []byte, row *schemas.TraceRow, from, to int32) []byte {
	first := true
	p.each(row, from, to, p.idSpan(), func(digit uint32) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendID(dst, uint32(p.id(digit)))
	})
	return dst
}

// appendID appends a number of four or five digits, as most are, without the way around of strconv.
func appendID(dst []byte, id uint32) []byte {
	if id < 1000 || id > 99_999 {
		return strconv.AppendUint(dst, uint64(id), 10)
	}
	if id > 9999 {
		dst = append(dst, byte('0'+id/10_000))
		id %= 10_000
	}
	return append(dst, byte('0'+id/1000), byte('0'+id/100%10), byte('0'+id/10%10), byte('0'+id%10))
}

// AppendText appends the row's prompt as text to dst: row.InputTokens words with a blank in front of each. With a
// vocabulary that is the exact count of the target's tokens; without one it is WordBytes bytes a token. It needs no
// escaping in JSON.
func (p *Prompts) AppendText(dst []byte, row *schemas.TraceRow) []byte {
	return p.AppendWords(dst, row, 0, row.InputTokens)
}

// AppendWords appends the text of the tokens [from, to) of the row's prompt. It needs no escaping in JSON.
func (p *Prompts) AppendWords(dst []byte, row *schemas.TraceRow, from, to int32) []byte {
	if p.Words != nil {
		p.each(row, from, to, p.Words.span(), func(digit uint32) { dst = append(dst, p.Words.words[digit].Text...) })
		return dst
	}
	p.each(row, from, to, wordSpan, func(digit uint32) {
		dst = append(dst, 'a'+byte(digit/(letters*letters)), 'a'+byte(digit/letters%letters), 'a'+byte(digit%letters), ' ')
	})
	return dst
}

// AppendAnswer appends n token ids, parted by commas, that the target is to answer the row with (OutputForced):
// a pure function of the row's number, Seed and Words. The salt does not enter: an answer warms no cache.
func (p *Prompts) AppendAnswer(dst []byte, row *schemas.TraceRow, n int32) []byte {
	name := rng.Hash(p.Seed, ofAnswer, uint64(row.Row))
	first := true
	p.fill(name, n, p.idSpan(), func(digit uint32) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = strconv.AppendInt(dst, int64(p.id(digit)), 10)
	})
	return dst
}

// idSpan is the base of the digits that stand for token ids: prose has the ids of its words.
func (p *Prompts) idSpan() uint64 {
	if p.Prose && p.Words != nil {
		return p.Words.span()
	}
	return TokenSpan
}

func (p *Prompts) id(digit uint32) int32 {
	if p.Prose && p.Words != nil {
		return p.Words.words[digit].ID
	}
	return TokenMin + int32(digit)
}

// each yields one digit in [0, span) for every token in [from, to) of the row's prompt.
func (p *Prompts) each(row *schemas.TraceRow, from, to int32, span uint64, yield func(uint32)) {
	size := int32(p.BlockSize)
	if size <= 0 {
		size = 512
	}
	salt := fnv.New64a()
	salt.Write([]byte(p.Salt))
	key := rng.Hash(p.Seed, salt.Sum64())
	to = min(to, row.InputTokens)
	for block := from / size; block*size < to; block++ {
		var name uint64
		if int(block) < len(row.HashIDs) {
			name = rng.Hash(key, ofHashID, uint64(row.HashIDs[block]))
		} else {
			name = rng.Hash(key, ofRow, uint64(row.Row), uint64(block))
		}
		n, skip := min(to-block*size, size), from-block*size
		if skip <= 0 {
			p.fill(name, n, span, yield)
			continue
		}
		p.fill(name, n, span, func(digit uint32) {
			if skip--; skip < 0 {
				yield(digit)
			}
		})
	}
}

// fill yields the first n digits of the block that name determines.
func (p *Prompts) fill(name uint64, n int32, span uint64, yield func(uint32)) {
	if p.Prose && p.Words != nil {
		p.Words.prose(name, n, yield)
		return
	}
	spell(name, n, span, yield)
}

// spell yields n digits that name determines: first the digits of name itself, then hashed ones, three from each
// hash of 64 bits (21 bits are 64 times more than the largest span has: no digit is 2 % likelier than another).
func spell(name uint64, n int32, span uint64, yield func(uint32)) {
	const perHash, width = 3, 21
	places := int32(math.Ceil(64 / math.Log2(float64(max(span, 2)))))
	rest := name
	i := int32(0)
	for ; i < min(places, n); i++ {
		yield(uint32(rest % span))
		rest /= span
	}
	for i < n {
		h := rng.Hash(name, uint64(i))
		for range min(perHash, n-i) {
			yield(uint32(h & (1<<width - 1) * span >> width))
			h >>= width
			i++
		}
	}
}
