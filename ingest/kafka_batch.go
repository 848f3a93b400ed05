package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
)

const (
	// maxBatchBytes is how much a producer's compressed batch may inflate to.
	maxBatchBytes = 96 << 20
	// maxStepBytes is how much of an answer is inflated before what there is goes to the worker.
	maxStepBytes = 32 << 20
	// inflateTwice is from which size on a batch is inflated twice.
	inflateTwice = 4 << 20
)

var errBatch = errors.New("a batch is malformed")

// batchHeader is the header of a batch of format 2.
type batchHeader struct {
	base, last int64
	codec      compress.Compression
	control    bool
	appended   bool // the broker stamped the records
	first, max int64
	count      int32
	of         protocol.RecordBatch // what tells an aborted transaction
	body       []byte
}

// Sizes of the headers of batches: of what tells the length and the format, and of all of it.
const (
	batchPrefix = 8 + 4
	batchMagic  = batchPrefix + 4
	batchSize   = batchPrefix + 49
)

// parts of a batch's attributes.
const (
	attrCodec    = 7
	attrAppended = 1 << 3
	attrControl  = 1 << 5
)

// read takes the batches of the answer into b, until there is enough of them; the rest stays.
func (a *answer) read(b *Batch) error {
	inflated := 0
	for len(a.data) > batchMagic && inflated < maxStepBytes {
		size := batchPrefix + int64(int32(binary.BigEndian.Uint32(a.data[8:])))
		if size > int64(len(a.data)) {
			break // brokers cut the last batch
		}
		if a.data[batchMagic] != 2 {
			return a.readOld(b)
		}
		if size < batchSize {
			return errBatch
		}
		h, err := newBatchHeader(a.data[:size])
		if err != nil {
			return err
		}
		n, err := a.readBatch(h, b)
		if err != nil {
			return err
		}
		inflated += n
		a.data = a.data[size:]
	}
	if inflated < maxStepBytes {
		a.data = nil
	}
	a.from = b.Next
	return nil
}

func newBatchHeader(data []byte) (*batchHeader, error) {
	be := binary.BigEndian
	if want, got := be.Uint32(data[17:]), crc32.Checksum(data[21:], crc32.MakeTable(crc32.Castagnoli)); want != got {
		return nil, fmt.Errorf("crc32 checksum mismatch (computed=%d found=%d)", got, want)
	}
	attributes := be.Uint16(data[21:])
	h := &batchHeader{
		base: int64(be.Uint64(data)), codec: compress.Compression(attributes & attrCodec), control: attributes&attrControl != 0,
		appended: attributes&attrAppended != 0, first: int64(be.Uint64(data[27:])), max: int64(be.Uint64(data[35:])),
		count: int32(be.Uint32(data[57:])), body: data[batchSize:],
	}
	h.last = h.base + int64(be.Uint32(data[23:]))
	h.of = protocol.RecordBatch{Attributes: protocol.Attributes(attributes), ProducerID: int64(be.Uint64(data[43:]))}
	if h.count < 0 || h.last < h.base {
		return nil, errBatch
	}
	return h, nil
}

// readBatch adds the records of a batch to b, and returns how many bytes they took.
func (a *answer) readBatch(h *batchHeader, b *Batch) (inflated int, err error) {
	b.Next = max(b.Next, h.base) // what lies before it is gone
	body, err := h.inflate()
	if errors.Is(err, errBomb) {
		for offset := max(h.base, a.from); offset <= h.last; offset++ {
			mark := markBomb
			if a.aborted.record(&h.of, offset) {
				mark = markAborted
			}
			b.Records = append(b.Records, Record{Offset: offset, Mark: mark, Size: maxBatchBytes})
		}
		b.Next = max(b.Next, h.last+1)
		return maxStepBytes, nil
	}
	if err != nil {
		return 0, err
	}
	for in := body; h.count > 0; h.count-- {
		var r Record
		if r, in, err = h.record(in, a.from); err != nil {
			return 0, err
		}
		switch {
		case h.control:
			a.aborted.record(nil, r.Offset)
			a.aborted.marker(h.of.ProducerID)
			r.Mark, r.Value, r.Size = markControl, nil, 0
		case a.aborted.record(&h.of, r.Offset):
			r.Mark, r.Value, r.Size = markAborted, nil, 0
		}
		if r.Offset >= a.from {
			b.Records = append(b.Records, r)
			b.Next = max(b.Next, r.Offset+1)
		}
	}
	b.Next = max(b.Next, h.last+1) // what compaction took from the end is gone too
	return len(body), nil
}

// inflate returns the records' bytes. An uncompressed batch may have any size: it is in memory already.
func (h *batchHeader) inflate() ([]byte, error) {
	if h.codec == compress.None {
		return h.body, nil
	}
	codec := h.codec.Codec()
	if codec == nil {
		return nil, fmt.Errorf("compression codec %d is not known", h.codec)
	}
	in := codec.NewReader(bytes.NewReader(h.body))
	defer in.Close()
	var out bytes.Buffer
	out.Grow(min(4*len(h.body), inflateTwice) + bytes.MinRead)
	n, err := out.ReadFrom(io.LimitReader(in, inflateTwice))
	if err != nil || n < inflateTwice {
		return out.Bytes(), err
	}
	// A growing buffer would take three times as much: what is large is measured first.
	more, err := io.Copy(io.Discard, io.LimitReader(in, maxBatchBytes+1-n))
	switch {
	case err != nil:
		return nil, err
	case n+more > maxBatchBytes:
		return nil, errBomb
	}
	again := codec.NewReader(bytes.NewReader(h.body))
	defer again.Close()
	whole := make([]byte, n+more)
	_, err = io.ReadFull(again, whole)
	return whole, err
}

// record reads the first record of in, and returns what follows it. Its value points into in.
func (h *batchHeader) record(in []byte, from int64) (r Record, rest []byte, err error) {
	size, in, err := varint(in)
	if err != nil || size < 1 || size > int64(len(in)) {
		return r, nil, errBatch
	}
	in, rest = in[1:size], in[size:] // without its attributes
	var fields [3]int64              // what the time and the offset are beyond the batch's, and the key's length
	for i := range fields {
		if fields[i], in, err = varint(in); err != nil {
			return r, nil, err
		}
	}
	if key := max(fields[2], 0); key <= int64(len(in)) {
		in = in[key:]
	} else {
		return r, nil, errBatch
	}
	length, in, err := varint(in)
	if err != nil || length > int64(len(in)) {
		return r, nil, errBatch
	}
	stamp := h.first + fields[0]
	if h.appended {
		stamp = h.max
	}
	r = Record{Offset: h.base + fields[1], Time: time.UnixMilli(stamp)}
	switch {
	case length < 0 || r.Offset < from:
	case length > maxRecordBytes:
		r.Mark, r.Size = markTooBig, length
	default:
		r.Value, r.Size = in[:length:length], length // empty is not null
	}
	return r, rest, nil
}

// varint reads a zigzag varint, as records have them.
func varint(in []byte) (v int64, rest []byte, err error) {
	v, n := binary.Varint(in)
	if n <= 0 {
		return 0, nil, errBatch
	}
	return v, in[n:], nil
}

// readOld takes batches of the formats before 2, which brokers before 0.11 wrote.
func (a *answer) readOld(b *Batch) error {
	var set protocol.RecordSet
	size := binary.BigEndian.AppendUint32(nil, uint32(len(a.data)))
	if _, err := set.ReadFrom(io.MultiReader(bytes.NewReader(size), bytes.NewReader(a.data))); err != nil {
		return err
	}
	old, err := readBatch(set.Records, a.from, a.aborted)
	b.Records, b.Next, a.data = append(b.Records, old.Records...), max(b.Next, old.Next), nil
	a.from = b.Next
	return err
}
