package bpe

// The piece cache answers for pieces that are no token: a direct-mapped table of cache lines that hold the whole
// piece and its ids. It is bounded and never wrong; a piece that does not fit a line is merged each time.

const (
	cacheBits  = 15 // 2^15 lines of 64 bytes: 2 MB
	cacheBytes = 24
	cacheIDs   = 9
	memoBits   = 15 // 2^15 answers of sideBySide: 256 KB
)

// cacheLine of size 0 is free.
type cacheLine struct {
	key   [3]uint64
	ids   [cacheIDs]uint32
	size  uint8
	count uint8
}

// key3 loads a piece of at most cacheBytes bytes.
func key3(piece []byte) (a, b, c uint64) {
	switch {
	case len(piece) <= 8:
		a = load(piece)
	case len(piece) <= 16:
		a, b = load(piece[:8]), load(piece[8:])
	default:
		a, b, c = load(piece[:8]), load(piece[8:16]), load(piece[16:])
	}
	return a, b, c
}

func lineOf(a, b, c uint64) uint64 { return (hash16(a, b) ^ c*mix2) * mix1 >> (64 - cacheBits) }

func (l *cacheLine) put(a, b, c uint64, size int, ids []uint32) {
	l.key = [3]uint64{a, b, c}
	l.size, l.count = uint8(size), uint8(len(ids))
	copy(l.ids[:], ids)
}
