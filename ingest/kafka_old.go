package ingest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/segmentio/kafka-go/compress"
)

// Sets of messages are the formats 0 and 1, which brokers before 0.11 wrote and later ones keep for topics that want
// them. A message that is compressed holds a set of others.

// oldMessage is one message of a set.
type oldMessage struct {
	offset   int64
	codec    compress.Compression
	relative bool  // offsets inside it count from its own last one
	appended bool  // the broker stamped it, and what is in it
	stamp    int64 // ms; −1 in format 0, which has none
	value    []byte
}

// Sizes of the head of a message: up to where its length counts from, and up to the key of format 0 and of format 1.
const (
	oldPrefix = 8 + 4
	oldHead   = oldPrefix + 4 + 1 + 1
	oldStamp  = 8
)

// readOldMessage reads the first message of in, and returns what follows it; cut is true where there is no more of it.
func readOldMessage(in []byte) (m oldMessage, rest []byte, cut bool, err error) {
	if len(in) < oldPrefix {
		return m, nil, true, nil
	}
	be := binary.BigEndian
	size := oldPrefix + int64(int32(be.Uint32(in[8:])))
	if size > int64(len(in)) {
		return m, nil, true, nil
	}
	if size < oldHead {
		return m, nil, false, errBatch
	}
	in, rest = in[:size], in[size:]
	if want, got := be.Uint32(in[oldPrefix:]), crc32.ChecksumIEEE(in[oldPrefix+4:]); want != got {
		return m, nil, false, fmt.Errorf("crc32 checksum mismatch (computed=%d found=%d)", got, want)
	}
	attributes := in[oldHead-1]
	m = oldMessage{offset: int64(be.Uint64(in)), codec: compress.Compression(attributes & attrCodec), stamp: -1, appended: attributes&attrAppended != 0}
	magic, in := in[oldHead-2], in[oldHead:]
	switch {
	case magic > 1:
		return m, nil, false, errBatch
	case magic == 1 && len(in) < oldStamp:
		return m, nil, false, errBatch
	case magic == 1:
		m.relative, m.stamp, in = true, int64(be.Uint64(in)), in[oldStamp:]
	}
	for range 2 { // the key, then the value
		if len(in) < 4 {
			return m, nil, false, errBatch
		}
		n := int64(int32(be.Uint32(in)))
		if in = in[4:]; n > int64(len(in)) {
			return m, nil, false, errBatch
		}
		m.value = nil // null
		if n >= 0 {
			m.value, in = in[:n:n], in[n:]
		}
	}
	return m, rest, false, nil
}

// openOld opens the next message of a set as a batch of its own, and returns how many bytes it takes.
func (a *answer) openOld(b *Batch) (inflated int, err error) {
	m, rest, cut, err := readOldMessage(a.data)
	if err != nil || cut {
		a.data = nil
		return 0, err
	}
	whole := a.data[:len(a.data)-len(rest)]
	a.data = rest
	o := &openBatch{dead: maxBatchDead, batchHeader: &batchHeader{last: m.offset, codec: m.codec, count: 1, old: &m, body: m.value}}
	if m.codec == compress.None {
		o.rest, o.next = whole, m.offset
		b.Next = max(b.Next, m.offset) // what lies before it is gone
		return a.opened(o, nil)
	}
	if o.rest, err = a.inflate(o.batchHeader); err == nil {
		o.shift, o.count, err = m.inner(o.rest)
	}
	return a.opened(o, err)
}

// inner counts the messages of a set that m holds, and returns what is to be added to their offsets.
func (m *oldMessage) inner(set []byte) (shift int64, count int32, err error) {
	last := m.offset
	for len(set) > 0 {
		in, rest, cut, err := readOldMessage(set)
		if cut || err != nil {
			return 0, 0, errBatch
		}
		set, last = rest, in.offset
		count++
	}
	if m.relative {
		shift = m.offset - last
	}
	return shift, count, nil
}

// oldRecord reads the first message of a set as a record of the batch.
func (h *batchHeader) oldRecord(in []byte, from int64) (r Record, rest []byte, err error) {
	m, rest, cut, err := readOldMessage(in)
	if err != nil || cut || h.codec != compress.None && m.codec != compress.None {
		return r, nil, errBatch
	}
	r = Record{Offset: m.offset + h.shift}
	if h.old.appended {
		m.stamp = h.old.stamp
	}
	if m.stamp >= 0 {
		r.Time = time.UnixMilli(m.stamp)
	}
	r.setValue(m.value, m.value == nil || r.Offset < from)
	return r, rest, nil
}
