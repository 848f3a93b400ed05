package anonymize

import (
	"sync"

	"github.com/zeebo/xxh3"
)

// DefaultMemo bounds the memo of a Hasher in bytes.
const DefaultMemo = 64 << 20

// memo remembers lists of words by the hash of the text that they come from: token ids, or the state of a block
// chain. It is bounded: when the younger of its two generations is full, the older one is zeroed and takes its
// place, so what was not asked for in between is forgotten. Its words are text in another alphabet: they are
// never written, and zeroed when they go. It is safe for concurrent use.
//
// A key is a 128-bit hash under a seed that is drawn for the process. Two texts that collide would get each other's
// ids; with n texts the chance is n²/2^129.
type memo struct {
	shards []memoShard // a power of two of them
}

type memoShard struct {
	mu         sync.Mutex
	young, old memoGeneration
	_          [64]byte // shards do not share cache lines
}

// Shape of a generation: slots for entries of 32 words in the mean, of which three quarters are used.
const (
	slotBytes        = 24
	wordBytes        = 4
	wordsPerSlot     = 32
	minGeneration    = 1 << 10 // bytes; a memo below two of these is none
	bytesPerShard    = 4 << 20
	maxShards        = 16
	maxShareOfAnItem = 4 // an entry takes at most this part of a generation
)

// newMemo returns a memo of at most size bytes; nil, which remembers nothing, when that is too little.
func newMemo(size int64) *memo {
	if size < 2*minGeneration {
		return nil
	}
	n := 1
	for n < maxShards && int64(2*n)*bytesPerShard <= size {
		n *= 2
	}
	m := &memo{shards: make([]memoShard, n)}
	for i := range m.shards {
		slots, words := generationShape(size / int64(n) / 2)
		m.shards[i].young = memoGeneration{slotCount: slots, wordCount: words}
		m.shards[i].old = m.shards[i].young
	}
	return m
}

// generationShape says how many slots (a power of two) and words fit in size bytes.
func generationShape(size int64) (slots, words int) {
	slots = 16
	for int64(2*slots)*(slotBytes+wordsPerSlot*wordBytes) <= size {
		slots *= 2
	}
	return slots, int(size-int64(slots)*slotBytes) / wordBytes
}

func (m *memo) shard(key xxh3.Uint128) *memoShard {
	return &m.shards[key.Lo>>32&uint64(len(m.shards)-1)]
}

// get appends the words of key to dst.
func (m *memo) get(key xxh3.Uint128, dst []uint32) ([]uint32, bool) {
	if m == nil {
		return dst, false
	}
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if words, ok := s.young.find(key); ok {
		return append(dst, words...), true
	}
	words, ok := s.old.find(key)
	if !ok {
		return dst, false
	}
	n := len(dst)
	dst = append(dst, words...)
	s.put(key, dst[n:]) // it was asked for: it stays
	return dst, true
}

// put remembers a copy of words, unless they are too many.
func (m *memo) put(key xxh3.Uint128, words []uint32) {
	if m == nil {
		return
	}
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, words)
}

func (s *memoShard) put(key xxh3.Uint128, words []uint32) {
	if len(words) > s.young.wordCount/maxShareOfAnItem {
		return
	}
	if !s.young.room(len(words)) {
		s.old.clear()
		s.young, s.old = s.old, s.young
	}
	s.young.put(key, words)
}

// clear zeroes and forgets everything.
func (m *memo) clear() {
	if m == nil {
		return
	}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		s.young.clear()
		s.old.clear()
		s.mu.Unlock()
	}
}

// memoGeneration is an open-addressing table over one array of words. Both are allocated with the first entry,
// in their full size, and hold no pointers.
type memoGeneration struct {
	slotCount, wordCount int // what it may hold
	slots                []memoSlot
	words                []uint32
	used                 int
}

// memoSlot is an entry: n−1 words from at. n = 0 is a free slot.
type memoSlot struct {
	key   xxh3.Uint128
	at, n uint32
}

func (g *memoGeneration) find(key xxh3.Uint128) (words []uint32, ok bool) {
	if g.used == 0 {
		return nil, false
	}
	mask := uint64(len(g.slots) - 1)
	for i := key.Hi & mask; ; i = (i + 1) & mask {
		switch s := &g.slots[i]; {
		case s.n == 0:
			return nil, false
		case s.key == key:
			return g.words[s.at : s.at+s.n-1], true
		}
	}
}

// room tells whether an entry of n words still fits.
func (g *memoGeneration) room(n int) bool {
	return g.used < g.slotCount/4*3 && len(g.words)+n <= g.wordCount
}

// put adds an entry for which there is room; one that is there already stays as it is.
func (g *memoGeneration) put(key xxh3.Uint128, words []uint32) {
	if g.slots == nil {
		g.slots, g.words = make([]memoSlot, g.slotCount), make([]uint32, 0, g.wordCount)
	}
	mask := uint64(len(g.slots) - 1)
	i := key.Hi & mask
	for ; g.slots[i].n != 0; i = (i + 1) & mask {
		if g.slots[i].key == key {
			return
		}
	}
	g.slots[i] = memoSlot{key: key, at: uint32(len(g.words)), n: uint32(len(words) + 1)}
	g.words = append(g.words, words...)
	g.used++
}

func (g *memoGeneration) clear() {
	clear(g.slots)
	clear(g.words[:cap(g.words)])
	g.words, g.used = g.words[:0], 0
}
