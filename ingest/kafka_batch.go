package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
)

const (
	// maxStepBytes is how much of an answer is inflated before what there is goes to the worker.
	maxStepBytes = 32 << 20
	// maxStepRecords is how many records go to the worker at a time: the smallest take many times their bytes in memory.
	maxStepRecords = 1 << 17
	// maxBatchDead is how many offsets of a batch that cannot be read become dead letters. How many there are is only
	// what its header claims, so those beyond are holes.
	maxBatchDead = 1 << 20
)

// errBatch is the error of a batch, or of a record in one, that is not what Kafka writes.
var errBatch = errors.New("a batch is malformed")

// batchHeader is the header of a batch of format 2, or what stands for it of a message of the formats before.
type batchHeader struct {
	base, last int64
	codec      compress.Compression
	control    bool
	appended   bool // the broker stamped the records
	first, max int64
	count      int32
	of         protocol.RecordBatch // what tells an aborted transaction
	body       []byte

	old   *oldMessage // nil in format 2
	shift int64       // added to the offsets of messages in it
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

// openBatch is a batch of which some records are still to be read.
type openBatch struct {
	*batchHeader
	rest []byte // of the records' bytes
	next int64  // the least offset that the next record can have
	mark string // set when nothing more of it can be read, with how many of its offsets are told at most
	dead int
}

// read takes the batches of the answer into b, until there is enough of them; the rest stays. What lies before a fault
// is taken, and the fault comes again with the next answer.
func (a *answer) read(b *Batch) error {
	for inflated := 0; inflated < maxStepBytes && len(b.Records) < maxStepRecords; {
		if a.open == nil {
			n, err := a.openNext(b)
			if err != nil && b.Next == a.from {
				return err
			}
			if err != nil {
				a.data = nil
			}
			if a.open == nil {
				break
			}
			inflated += n
		}
		if a.open.mark == "" {
			a.readRecords(b)
		}
		if a.open.mark != "" {
			a.passOver(b)
		}
		if a.open.count == 0 {
			b.Next = max(b.Next, a.open.last+1) // what compaction took from the end is gone too
			a.open = nil
		}
	}
	a.from = b.Next
	return nil
}

// empty tells whether all of the answer was read.
func (a *answer) empty() bool { return len(a.data) == 0 && a.open == nil }

// openNext opens the next batch, and returns how many bytes its records take. At the end of the answer a.open stays
// nil.
func (a *answer) openNext(b *Batch) (inflated int, err error) {
	if len(a.data) <= batchMagic {
		a.data = nil
		return 0, nil
	}
	size := batchPrefix + int64(int32(binary.BigEndian.Uint32(a.data[8:])))
	switch {
	case size > int64(len(a.data)): // brokers cut the last batch
		a.data = nil
		return 0, nil
	case a.data[batchMagic] != 2:
		return a.openOld(b)
	case size < batchSize:
		return 0, errBatch
	}
	h, err := newBatchHeader(a.data[:size])
	if err != nil {
		return 0, err
	}
	a.data = a.data[size:]
	b.Next = max(b.Next, h.base) // what lies before it is gone
	o := &openBatch{batchHeader: h, next: h.base, dead: maxBatchDead}
	o.rest, err = a.inflate(h)
	return a.opened(o, err)
}

// opened begins to read a batch; err is that of inflating it.
func (a *answer) opened(o *openBatch, err error) (inflated int, _ error) {
	switch {
	case errors.Is(err, errCodec):
		return 0, err
	case errors.Is(err, errBomb):
		o.mark, inflated = markBomb, maxStepBytes
	case err != nil: // its checksum is right: it was made so
		o.mark = markBroken
	}
	if o.mark != "" {
		o.count = max(o.count, 1) // until all of it was passed over
	}
	a.open = o
	return max(inflated, len(o.rest)), nil
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
	h.last = h.base + int64(int32(be.Uint32(data[23:])))
	h.of = protocol.RecordBatch{Attributes: protocol.Attributes(attributes), ProducerID: int64(be.Uint64(data[43:]))}
	empty := h.count == 0 && h.last == h.base-1
	if h.count < 0 || h.base < 0 || h.last < h.base && !empty {
		return nil, errBatch
	}
	return h, nil
}

// readRecords adds records of the open batch to b. Where one is broken, the batch gets the mark.
func (a *answer) readRecords(b *Batch) {
	for o := a.open; o.count > 0 && len(b.Records) < maxStepRecords; o.count-- {
		read := o.record
		if o.old != nil {
			read = o.oldRecord
		}
		r, rest, err := read(o.rest, b.Next)
		if err != nil || r.Offset < o.next || r.Offset > o.last {
			o.mark = markBroken
			return
		}
		o.rest, o.next = rest, r.Offset+1
		switch {
		case o.control:
			a.aborted.record(nil, r.Offset)
			a.aborted.marker(o.of.ProducerID)
			r.Mark, r.Value, r.Size = markControl, nil, 0
		case a.aborted.record(&o.of, r.Offset):
			r.Mark, r.Value, r.Size = markAborted, nil, 0
		}
		if r.Offset >= b.Next {
			b.Records = append(b.Records, r)
			b.Next = r.Offset + 1
		}
	}
}

// passOver adds the offsets of the open batch that cannot be read to b.
func (a *answer) passOver(b *Batch) {
	o := a.open
	for o.next = max(o.next, b.Next); o.next <= o.last && o.dead > 0 && len(b.Records) < maxStepRecords; o.next++ {
		r := Record{Offset: o.next, Mark: o.mark}
		if a.aborted.record(&o.of, o.next) {
			r.Mark = markAborted
		} else if o.mark == markBomb {
			r.Size = maxBatchBytes
		}
		b.Records = append(b.Records, r)
		b.Next = o.next + 1
		o.dead--
	}
	if o.next > o.last || o.dead == 0 {
		o.count = 0
	}
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
	r.setValue(in[:max(length, 0)], length < 0 || r.Offset < from)
	return r, rest, nil
}

// setValue gives the record its value, which points into value; none where it is null or not wanted.
func (r *Record) setValue(value []byte, none bool) {
	switch n := int64(len(value)); {
	case none:
	case n > maxRecordBytes:
		r.Mark, r.Size = markTooBig, n
	default:
		r.Value, r.Size = value[:n:n], n // empty is not null
	}
}

// varint reads a zigzag varint, as records have them.
func varint(in []byte) (v int64, rest []byte, err error) {
	v, n := binary.Varint(in)
	if n <= 0 {
		return 0, nil, errBatch
	}
	return v, in[n:], nil
}
