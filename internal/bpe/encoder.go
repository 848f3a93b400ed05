package bpe

// Encoder tokenizes for one worker: it has bounded caches (at most 4 MB) and scratch. It is not safe for
// concurrent use. What it holds is text: Clear it before it is left to the collector.
type Encoder struct {
	enc     *Encoding
	scratch []byte
	merge   []uint32
}

// NewEncoder returns an encoder with empty caches.
func (e *Encoding) NewEncoder() *Encoder { return &Encoder{enc: e} }

// Append appends the ids of text to dst. All of text is text: a special token's own text gets the ids of its
// letters (encode_ordinary of tiktoken). Ill-formed UTF-8 is read as Python's decode(errors="replace") does.
func (e *Encoder) Append(dst []uint32, text []byte) []uint32 {
	text = e.repair(text)
	for pos := 0; pos < len(text); {
		end := e.enc.split(text, pos)
		dst = e.appendPiece(dst, text[pos:end])
		pos = end
	}
	return dst
}

// Clear zeroes caches and scratch: they hold text.
func (e *Encoder) Clear() {
	clear(e.scratch[:cap(e.scratch)])
	clear(e.merge[:cap(e.merge)])
	e.scratch, e.merge = e.scratch[:0], e.merge[:0]
}

func (e *Encoder) appendPiece(dst []uint32, piece []byte) []uint32 {
	if e.enc.whole {
		if id, ok := e.enc.ranks[string(piece)]; ok {
			return append(dst, id)
		}
	}
	return e.mergeByRank(dst, piece)
}

// mergeByRank is byte-pair encoding by its definition: join the leftmost pair of lowest rank until none is left.
func (e *Encoder) mergeByRank(dst []uint32, piece []byte) []uint32 {
	ids := e.merge[:0]
	for i := range piece {
		ids = append(ids, e.enc.ranks[string(piece[i:i+1])])
	}
	for len(ids) > 1 {
		best, at, joint := ^uint32(0), -1, uint32(0)
		for i, pos := 0, 0; i+1 < len(ids); i++ {
			a, b := e.enc.tokens[ids[i]], e.enc.tokens[ids[i+1]]
			id, ok := e.enc.ranks[string(piece[pos:pos+len(a)+len(b)])]
			rank := id
			if ok && e.enc.pairs != nil {
				rank, ok = e.enc.pairs[[2]uint32{ids[i], ids[i+1]}]
			}
			if ok && rank < best {
				best, at, joint = rank, i, id
			}
			pos += len(a)
		}
		if at < 0 {
			break
		}
		ids[at] = joint
		ids = append(ids[:at+1], ids[at+2:]...)
	}
	e.merge = ids
	return append(dst, ids...)
}
