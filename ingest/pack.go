package ingest

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"time"

	"tailgate/schemas"
)

// Packed rows are how publish holds rows between reading and writing: an order header whose bytes sort as the
// day is sorted, then the columns, short. Words (columns of few values) are numbers of a dictionary.
const (
	packedArrived = 0  // µs, order-preserving
	packedKey     = 8  // request key
	packedTopic   = 16 // rank of the topic among the build's topics
	packedOrder   = 40 // length of the header: … generation, partition, offset, index
)

// words gives the values of dictionary columns numbers. It is safe for concurrent use.
type words struct {
	mu    sync.RWMutex
	codes map[string]uint32
	list  []string
}

func newWords() *words { return &words{codes: map[string]uint32{}} }

func (w *words) code(s string) uint32 {
	w.mu.RLock()
	c, ok := w.codes[s]
	w.mu.RUnlock()
	if ok {
		return c
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.codes[s]; ok {
		return c
	}
	c = uint32(len(w.list))
	s = string([]byte(s)) // not a part of a page
	w.codes[s] = c
	w.list = append(w.list, s)
	return c
}

// word returns the value of a code. It must not run while codes are given.
func (w *words) word(code uint32) string { return w.list[code] }

// Bits of a packed row's flags: which optional columns are there, and the booleans.
const (
	hasHTTPStatus = 1 << iota
	hasStream
	isStream
	isReached
	isProbe
	hasClock
	hasClass
	hasTenant
	hasInput
	hasOutput
	hasCached
	hasReasoning
	hasTTFT
	hasDuration
	hasRequestID
	hasParent
	hasSession
	hasIDs
	hasTurn
	hasCounted
)

// packer packs rows of one segment.
type packer struct {
	words      *words
	topic      uint32
	generation uint32
	buf        []byte
	flags      uint32
}

// pack returns row packed, valid until the next call.
func (p *packer) pack(r *schemas.Request) []byte {
	b := p.buf[:0]
	b = binary.BigEndian.AppendUint64(b, uint64(r.ArrivedAt.UnixMicro())^1<<63)
	b = binary.BigEndian.AppendUint64(b, uint64(r.RequestKey)^1<<63)
	b = binary.BigEndian.AppendUint32(b, p.topic)
	b = binary.BigEndian.AppendUint32(b, p.generation)
	b = binary.BigEndian.AppendUint32(b, uint32(r.Partition))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Offset))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Index))
	p.flags = 0
	at := len(b)
	b = append(b, 0, 0, 0, 0) // flags, known at the end
	for _, s := range [...]string{r.TQuality, r.Gateway, r.Op, r.Status, r.Model, r.InputTokensSource, r.OutputTokensSource,
		r.CachedTokensSource, r.ReasoningTokensSource, r.Reconciled, r.PromptState, r.Topic} {
		b = binary.AppendUvarint(b, uint64(p.words.code(s)))
	}
	b = p.word(b, r.ClockID, hasClock)
	b = p.word(b, r.Class, hasClass)
	b = p.word(b, r.Tenant, hasTenant)
	for _, v := range [...]int64{int64(r.Attempt), r.TimeResolutionUs, int64(r.PrivateBlocks), int64(r.TailTokens)} {
		b = binary.AppendVarint(b, v)
	}
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.SampledFraction))
	for i, v := range [...]*int32{r.HTTPStatus, r.Turn, r.InputTokens, r.OutputTokens, r.CachedTokens, r.ReasoningTokens, r.CountedTokens} {
		if v != nil {
			p.flags |= int32Flags[i]
			b = binary.AppendVarint(b, int64(*v))
		}
	}
	for i, v := range [...]*int64{r.TTFTUs, r.DurationUs} {
		if v != nil {
			p.flags |= int64Flags[i]
			b = binary.AppendVarint(b, *v)
		}
	}
	p.bools(r)
	for i, s := range [...]*string{r.RequestID, r.ParentRequestID, r.Session} {
		if s != nil {
			p.flags |= textFlags[i]
			b = binary.AppendUvarint(b, uint64(len(*s)))
			b = append(b, *s...)
		}
	}
	if r.HashIDs != nil {
		p.flags |= hasIDs
		b = binary.AppendUvarint(b, uint64(len(r.HashIDs)))
		for _, id := range r.HashIDs {
			b = binary.LittleEndian.AppendUint64(b, uint64(id))
		}
	}
	binary.LittleEndian.PutUint32(b[at:], p.flags)
	p.buf = b
	return b
}

var (
	int32Flags = [...]uint32{hasHTTPStatus, hasTurn, hasInput, hasOutput, hasCached, hasReasoning, hasCounted}
	int64Flags = [...]uint32{hasTTFT, hasDuration}
	textFlags  = [...]uint32{hasRequestID, hasParent, hasSession}
)

func (p *packer) word(b []byte, s *string, flag uint32) []byte {
	if s == nil {
		return b
	}
	p.flags |= flag
	return binary.AppendUvarint(b, uint64(p.words.code(*s)))
}

func (p *packer) bools(r *schemas.Request) {
	set := func(on bool, flag uint32) {
		if on {
			p.flags |= flag
		}
	}
	set(r.Stream != nil, hasStream)
	set(r.Stream != nil && *r.Stream, isStream)
	set(r.ReachedEngine, isReached)
	set(r.IsProbe, isProbe)
}

// slot is an unpacked row with the memory that its pointers point to. It is used again and again.
type slot struct {
	row   schemas.Request
	rec   []byte    // the packed row
	texts [3][]byte // request id, parent, session; nil = null, valid as long as the packed row
	// codes of tenant, class and model plus 1; 0 = null
	labels [3]uint32

	ints   [7]int32
	longs  [2]int64
	names  [3]string // clock, class, tenant
	tokens [3]string // texts as strings
	stream bool
	turn   int32
	label  [3]string // tenant, class and model as published
	ids    []int64
}

// cursor reads a packed row.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.bad = true
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

var errPacked = errors.New("publishing: a spilled row is broken")

// unpack fills s from a packed row. Texts stay bytes; strings are made by [slot.own].
func (s *slot) unpack(rec []byte, w *words) error {
	if len(rec) < packedOrder+4 {
		return errPacked
	}
	be := binary.BigEndian
	r := &s.row
	*r = schemas.Request{
		ArrivedAt:  time.UnixMicro(int64(be.Uint64(rec[packedArrived:]) ^ 1<<63)).UTC(),
		RequestKey: int64(be.Uint64(rec[packedKey:]) ^ 1<<63),
		Partition:  int32(be.Uint32(rec[24:])), Offset: int64(be.Uint64(rec[28:])), Index: int32(be.Uint32(rec[36:])),
	}
	s.labels, s.texts = [3]uint32{}, [3][]byte{}
	flags := binary.LittleEndian.Uint32(rec[packedOrder:])
	c := cursor{b: rec[packedOrder+4:]}
	word := func() (string, uint32) {
		code := uint32(c.uvarint())
		if int(code) >= len(w.list) {
			c.bad = true
			return "", 0
		}
		return w.word(code), code
	}
	for i, to := range [...]*string{&r.TQuality, &r.Gateway, &r.Op, &r.Status, &r.Model, &r.InputTokensSource,
		&r.OutputTokensSource, &r.CachedTokensSource, &r.ReasoningTokensSource, &r.Reconciled, &r.PromptState, &r.Topic} {
		name, code := word()
		*to = name
		if i == 4 && name != "" {
			s.labels[2] = code + 1
		}
	}
	for i, to := range [...]**string{&r.ClockID, &r.Class, &r.Tenant} {
		if flags&[...]uint32{hasClock, hasClass, hasTenant}[i] != 0 {
			name, code := word()
			s.names[i] = name
			*to = &s.names[i]
			if i > 0 {
				s.labels[2-i] = code + 1
			}
		}
	}
	r.Attempt, r.TimeResolutionUs = int32(c.varint()), c.varint()
	r.PrivateBlocks, r.TailTokens = int32(c.varint()), int32(c.varint())
	if f := c.take(8); f != nil {
		r.SampledFraction = math.Float64frombits(binary.LittleEndian.Uint64(f))
	}
	s.numbers(&c, flags)
	for i, flag := range textFlags {
		if flags&flag != 0 {
			s.texts[i] = c.take(c.uvarint())
		}
	}
	if flags&hasIDs != 0 {
		s.readIDs(&c)
	}
	if c.bad || len(c.b) > 0 {
		return errPacked
	}
	return nil
}

// numbers reads the optional numbers and the booleans.
func (s *slot) numbers(c *cursor, flags uint32) {
	r := &s.row
	for i, to := range [...]**int32{&r.HTTPStatus, &r.Turn, &r.InputTokens, &r.OutputTokens, &r.CachedTokens, &r.ReasoningTokens,
		&r.CountedTokens} {
		if flags&int32Flags[i] != 0 {
			s.ints[i] = int32(c.varint())
			*to = &s.ints[i]
		}
	}
	for i, to := range [...]**int64{&r.TTFTUs, &r.DurationUs} {
		if flags&int64Flags[i] != 0 {
			s.longs[i] = c.varint()
			*to = &s.longs[i]
		}
	}
	if flags&hasStream != 0 {
		s.stream = flags&isStream != 0
		r.Stream = &s.stream
	}
	r.ReachedEngine, r.IsProbe = flags&isReached != 0, flags&isProbe != 0
}

func (s *slot) readIDs(c *cursor) {
	n := c.uvarint()
	data := c.take(8 * min(n, math.MaxUint32))
	if s.ids == nil {
		s.ids = []int64{} // empty is not null
	}
	s.ids = s.ids[:0]
	for ; len(data) >= 8; data = data[8:] {
		s.ids = append(s.ids, int64(binary.LittleEndian.Uint64(data)))
	}
	s.row.HashIDs = s.ids
}

// own makes strings of the texts, so that the row outlives the packed one.
func (s *slot) own() {
	all := string(append(append(append(make([]byte, 0, 48), s.texts[0]...), s.texts[1]...), s.texts[2]...))
	for i, to := range [...]**string{&s.row.RequestID, &s.row.ParentRequestID, &s.row.Session} {
		if s.texts[i] != nil {
			s.tokens[i] = all[:len(s.texts[i])]
			*to = &s.tokens[i]
		}
		all = all[len(s.texts[i]):]
	}
}
