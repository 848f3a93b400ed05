package ingest

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"sync"

	"tailgate/internal/packedrow"
	"tailgate/schemas"
)

// Columns that a slot holds in arrays. A test holds them and the others to the columns of schemas.Request.
var (
	wordColumns = [...]string{"t_quality", "gateway", "op", "status", "model", "input_tokens_source", "output_tokens_source",
		"cached_tokens_source", "reasoning_tokens_source", "reconciled", "prompt_state", "topic", "clock_id", "class", "tenant"}
	intColumns  = [...]string{"http_status", "turn", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "counted_tokens"}
	longColumns = [...]string{"ttft_us", "duration_us"}
	textColumns = [...]string{"request_id", "parent_request_id", "session"}
)

// Places in these arrays.
const (
	wordStatus, wordModel, wordReconciled, wordPrompt, wordTopic = 3, 4, 9, 10, 11
	wordSources, optionalWords, wordClass, wordTenant            = 5, 12, 13, 14 // four sources; optional from clock_id on
	intHTTP, intTurn, intInput, intOutput                        = 0, 1, 2, 3
	intCached, intReasoning, intCounted                          = 4, 5, 6
	longTTFT, longDuration                                       = 0, 1
	textRequest, textSession                                     = 0, 2
)

// Bits of a slot's flags: from each of the first three on one for each optional column of its array.
const (
	hasInt    = 1 << 0
	hasLong   = 1 << 7
	hasText   = 1 << 9
	hasIDs    = 1 << 12
	hasStream = 1 << 13
	isStream  = 1 << 14
	isReached = 1 << 15
	isProbe   = 1 << 16
	isSampled = 1 << 17 // sampled_fraction is not 1
)

// slot is a row as publish works on it: without pointers to follow. Texts and ids lie in the packed row.
type slot struct {
	rec        []byte
	arrived    int64 // µs
	key        int64
	topic      uint32 // rank of the topic among the build's topics
	generation uint32
	partition  int32
	index      int32
	offset     int64
	flags      uint32
	words      [len(wordColumns)]uint32 // codes plus 1; 0 = null
	attempt    int32
	private    int32
	tail       int32
	resolution int64
	sampled    float64
	ints       [len(intColumns)]int32
	longs      [len(longColumns)]int64
	texts      [len(textColumns)][]byte
	ids        []byte // 8 bytes each, little-endian
}

func (s *slot) hasInt(i int) bool  { return s.flags&(hasInt<<i) != 0 }
func (s *slot) hasLong(i int) bool { return s.flags&(hasLong<<i) != 0 }
func (s *slot) hasText(i int) bool { return s.flags&(hasText<<i) != 0 }
func (s *slot) hasIDs() bool       { return s.flags&hasIDs != 0 }

// numIDs is how many block ids the row has.
func (s *slot) numIDs() int { return len(s.ids) / 8 }

// id is block id number i.
func (s *slot) id(i int) int64 { return int64(binary.LittleEndian.Uint64(s.ids[8*i:])) }

func (s *slot) setID(i int, id int64) { binary.LittleEndian.PutUint64(s.ids[8*i:], uint64(id)) }

// words gives the values of dictionary columns numbers. It is safe for concurrent use.
type words struct {
	mu    sync.RWMutex
	codes map[string]uint32
	list  []string
}

// Words that every build has, as a slot holds them.
const (
	wordOther = 1 // schemas.LabelOther
	wordEmpty = 2 // "", which is a model without a label
)

func newWords() *words {
	w := &words{codes: map[string]uint32{}}
	w.code([]byte(schemas.LabelOther))
	w.code(nil)
	return w
}

// code returns the number of a word, which it does not keep.
func (w *words) code(s []byte) uint32 {
	w.mu.RLock()
	c, ok := w.codes[string(s)]
	w.mu.RUnlock()
	if ok {
		return c
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.codes[string(s)]; ok {
		return c
	}
	c = uint32(len(w.list))
	w.list = append(w.list, string(s))
	w.codes[w.list[c]] = c
	return c
}

// text returns the value of a slot's word, "" for null. It must not run while codes are given.
func (w *words) text(word uint32) string {
	if word == 0 {
		return ""
	}
	return w.list[word-1]
}

// Packed rows are how publish holds rows between reading and writing: what the day is ordered by, in bytes that
// sort as the day is sorted (arrival, request key, then the place of the record), and the columns, short. The
// first packedKey bytes are arrival and request key.
const packedKey = 16

// pack appends the row of s with the ids of list to b.
func (s *slot) pack(b []byte, list []int64) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(s.arrived)^1<<63)
	b = binary.BigEndian.AppendUint64(b, uint64(s.key)^1<<63)
	for _, v := range [...]uint64{uint64(s.topic), uint64(s.generation), uint64(uint32(s.partition)), uint64(s.offset), uint64(uint32(s.index))} {
		b = appendOrdered(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, s.flags)
	for _, w := range s.words {
		b = binary.AppendUvarint(b, uint64(w))
	}
	for _, v := range [...]int64{int64(s.attempt), s.resolution, int64(s.private), int64(s.tail)} {
		b = binary.AppendVarint(b, v)
	}
	if s.flags&isSampled != 0 {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.sampled))
	}
	for i, v := range s.ints {
		if s.hasInt(i) {
			b = binary.AppendVarint(b, int64(v))
		}
	}
	for i, v := range s.longs {
		if s.hasLong(i) {
			b = binary.AppendVarint(b, v)
		}
	}
	for i, t := range s.texts {
		if s.hasText(i) {
			b = packedrow.AppendText(b, t)
		}
	}
	if s.hasIDs() {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, id := range list {
			b = binary.LittleEndian.AppendUint64(b, uint64(id))
		}
	}
	return b
}

// appendOrdered appends v in few bytes that sort as the numbers do: how many follow, then those, highest first.
func appendOrdered(b []byte, v uint64) []byte {
	n := (bits.Len64(v) + 7) / 8
	b = append(b, byte(n))
	for ; n > 0; n-- {
		b = append(b, byte(v>>(8*n-8)))
	}
	return b
}

// cursor reads a packed row.
type cursor struct{ packedrow.Reader }

// ordered reads what appendOrdered wrote.
func (c *cursor) ordered() (v uint64) {
	n := c.Take(1)
	if n == nil || n[0] > 8 {
		c.Broken = true
		return 0
	}
	for _, b := range c.Take(uint64(n[0])) {
		v = v<<8 | uint64(b)
	}
	return v
}

var errPacked = errors.New("publishing: a spilled row is broken")

// unpack fills s from a packed row, to which it keeps references.
func (s *slot) unpack(rec []byte, w *words) error {
	if len(rec) < packedKey {
		return errPacked
	}
	s.rec = rec
	s.arrived = int64(binary.BigEndian.Uint64(rec) ^ 1<<63)
	s.key = int64(binary.BigEndian.Uint64(rec[8:]) ^ 1<<63)
	c := cursor{packedrow.Reader{B: rec[packedKey:]}}
	s.topic, s.generation, s.partition = uint32(c.ordered()), uint32(c.ordered()), int32(c.ordered())
	s.offset, s.index = int64(c.ordered()), int32(c.ordered())
	s.flags = c.Fixed32()
	for i := range s.words {
		v := c.Uvarint()
		if v > uint64(len(w.list)) || v == 0 && i < optionalWords {
			return errPacked
		}
		s.words[i] = uint32(v)
	}
	s.attempt, s.resolution = int32(c.Varint()), c.Varint()
	s.private, s.tail = int32(c.Varint()), int32(c.Varint())
	if s.sampled = 1; s.flags&isSampled != 0 {
		s.sampled = math.Float64frombits(c.Fixed64())
	}
	for i := range s.ints {
		if s.ints[i] = 0; s.hasInt(i) {
			s.ints[i] = int32(c.Varint())
		}
	}
	for i := range s.longs {
		if s.longs[i] = 0; s.hasLong(i) {
			s.longs[i] = c.Varint()
		}
	}
	for i := range s.texts {
		if s.texts[i] = nil; s.hasText(i) {
			s.texts[i] = c.Text()
		}
	}
	if s.ids = nil; s.hasIDs() {
		s.ids = c.Take(8 * min(c.Uvarint(), math.MaxUint32))
	}
	if c.Broken || len(c.B) > 0 {
		return errPacked
	}
	return nil
}
