package bpe

import "encoding/binary"

// Encoder tokenizes for one worker: it has bounded caches (less than 4 MB) and scratch. It is not safe for
// concurrent use. What it holds is text: Clear it before it is left to the collector.
type Encoder struct {
	enc     *Encoding
	tables  *tables // nil while few bytes were merged of a vocabulary that makes them later
	early   int     // bytes merged without
	cache   []cacheLine
	memo    []uint64 // answers of sideBySide: pair key + 1, and one bit
	dead    []uint64
	scratch []byte
	links   []link
	heap    minHeap
	norm    normalizer

	pairText []byte // of settles
	pairIDs  []uint32
}

// keepScratch is up to how many bytes a scratch buffer stays with the encoder after a text that needed it.
const keepScratch = 256 << 10

// NewEncoder returns an encoder with empty caches.
func (e *Encoding) NewEncoder() *Encoder {
	return &Encoder{enc: e, tables: e.made.Load(), cache: make([]cacheLine, 1<<cacheBits), memo: make([]uint64, 1<<memoBits)}
}

// Append appends the ids of text to dst. All of text is text: a special token's own text gets the ids of its
// letters (encode_ordinary of tiktoken). Ill-formed UTF-8 is read as Python's decode(errors="replace") does.
func (e *Encoder) Append(dst []uint32, text []byte) []uint32 {
	dst = e.appendText(dst, e.normalize(e.repair(text)))
	e.trim()
	return dst
}

// appendWords takes words of ASCII by wordStop and asks the splitter for the rest.
func (e *Encoder) appendWords(dst []uint32, text []byte) []uint32 {
	enc, role := e.enc, &e.enc.role
	short, shift := enc.vocab.short, enc.vocab.shortShift&63
	pos := 0
	for pos+8 <= len(text) {
		w := binary.LittleEndian.Uint64(text[pos:])
		n := wordStop(w)
		end := pos + int(n)
		switch first := role[byte(w)]; {
		case first > rolePrefix:
			end = enc.split(text, pos)
		case n == 8:
			if end = longWord(text, pos, role); end == 0 {
				end = enc.split(text, pos)
			}
		default:
			// A letter stands first, or after the prefix; what ends the word is neither letter nor doubtful.
			if next := role[byte(w>>(8*n&63))]; n == uint(first) || next-rolePrefix > roleEnds-rolePrefix {
				end = enc.split(text, pos)
			}
		}
		if n = uint(end - pos); n <= 8 {
			key := w & (^uint64(0) >> ((64 - 8*n) & 63))
			if s := &short[key*mix1>>shift]; s.key == key && s.size == uint32(n) {
				dst = append(dst, s.id)
				pos = end
				continue
			}
		}
		dst = e.appendPiece(dst, text[pos:end])
		pos = end
	}
	for pos < len(text) {
		end := enc.split(text, pos)
		dst = e.appendPiece(dst, text[pos:end])
		pos = end
	}
	return dst
}

// appendPiece appends the ids of one piece: a token, else from the cache, else merged.
func (e *Encoder) appendPiece(dst []uint32, piece []byte) []uint32 {
	if len(piece) > cacheBytes {
		return e.appendLong(dst, piece)
	}
	a, b, c := key3(piece)
	var id uint32
	var ok bool
	switch n := len(piece); {
	case n <= 8:
		id, ok = e.enc.vocab.findShort(a, uint32(n))
	case n <= 16:
		id, ok = e.enc.vocab.findMiddle(a, b, uint32(n))
	case e.tables == nil || !e.tables.complete:
		id, ok = e.enc.vocab.findLong(piece)
	}
	if ok {
		return append(dst, id)
	}
	line := &e.cache[lineOf(a, b, c)]
	if int(line.size) == len(piece) && line.key[0] == a && line.key[1] == b && line.key[2] == c {
		return append(dst, line.ids[:line.count]...)
	}
	begin := len(dst)
	dst = e.mergePiece(dst, piece)
	if len(dst)-begin <= cacheIDs {
		line.put(a, b, c, len(piece), dst[begin:])
	}
	return dst
}

// appendLong is appendPiece for pieces that no cache line holds. Where the trie has all tokens it finds the
// piece that is one.
func (e *Encoder) appendLong(dst []uint32, piece []byte) []uint32 {
	if e.tables == nil || !e.tables.complete {
		if id, ok := e.enc.vocab.findLong(piece); ok {
			return append(dst, id)
		}
	}
	return e.mergePiece(dst, piece)
}

// mergePiece merges a piece that is no token by the fastest way that is right for the vocabulary.
func (e *Encoder) mergePiece(dst []uint32, piece []byte) []uint32 {
	if e.tables == nil {
		if e.early += len(piece); e.early <= e.enc.early {
			return e.appendByRank(dst, piece)
		}
		e.tables = e.enc.tables()
	}
	switch {
	case e.tables.greedy == nil:
		return e.appendByRank(dst, piece)
	case len(piece) <= shortPiece:
		return e.appendShort(dst, piece)
	}
	return e.appendGreedy(dst, piece)
}

// trim lets go of scratch that an unusual text made large, zeroed.
func (e *Encoder) trim() {
	e.norm.release()
	if cap(e.scratch) > keepScratch {
		clear(e.scratch[:cap(e.scratch)])
		e.scratch = nil
	}
	if cap(e.dead)*8 > keepScratch {
		e.dead = nil // positions only
	}
	if cap(e.links)*20 > keepScratch {
		clear(e.links[:cap(e.links)])
		clear(e.heap[:cap(e.heap)])
		e.links, e.heap = nil, nil
	}
}

// Clear zeroes caches and scratch: they hold text.
func (e *Encoder) Clear() {
	clear(e.cache)
	clear(e.memo)
	clear(e.dead[:cap(e.dead)])
	clear(e.scratch[:cap(e.scratch)])
	clear(e.links[:cap(e.links)])
	clear(e.heap[:cap(e.heap)])
	clear(e.pairText[:cap(e.pairText)])
	clear(e.pairIDs[:cap(e.pairIDs)])
	e.norm.clear()
}
