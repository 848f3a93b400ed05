package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Source is a log of records that can be read again by offset. Its methods are safe for concurrent use on
// different partitions.
type Source interface {
	// Partitions lists what there is to read, with the bounds of each partition now.
	Partitions(ctx context.Context) ([]Partition, error)
	// Fetch returns records from offset from on, at least one where there are any. It waits for at most a few
	// seconds; a batch that makes no progress (Next == from) means that nothing came.
	// The error is [ErrOutOfRange] when the offset does not exist any more, and marked fault.Data when another
	// try cannot help.
	Fetch(ctx context.Context, p Partition, from int64) (Batch, error)
	// Commit tells consumer group's dashboards that everything before next is done. Nothing depends on it.
	Commit(ctx context.Context, group string, p Partition, next int64) error
}

// ErrOutOfRange is the error of a Fetch below the first or beyond the last offset of a partition.
var ErrOutOfRange = errors.New("offset out of range")

// Partition is one ordered sequence of records.
type Partition struct {
	Topic string // raw name or path: memory only
	ID    int32
	// First is the oldest offset that exists. End is the mark: the offset after the last record at the time of
	// listing; -1 when it cannot be known before reading (stdin).
	First, End int64
	// Transient partitions cannot be read again (stdin): each run starts a generation of its own.
	Transient bool
	// Identity tells this log from a later one of the same name; nil where the source cannot tell.
	Identity []byte
	// Note is something to tell about the partition, "" when there is nothing.
	Note string
	// Err is what makes the partition unreadable from End on; nil when it is whole.
	Err error
}

// name tells people which partition it is.
func (p *Partition) name() string {
	if p.ID == 0 && p.Identity != nil || p.Transient {
		return p.Topic // a file
	}
	return fmt.Sprintf("%s/%d", p.Topic, p.ID)
}

// Marks that a source sets on records that carry nothing to decode.
const (
	markControl = "control" // transaction marker
	markAborted = "aborted" // record of an aborted transaction; Value is not read
	markTooBig  = "too_big" // larger than maxRecordBytes; Value is not read
	markBomb    = "bomb"    // of a compressed batch that inflates to more than maxBatchBytes; not read
	markBroken  = "broken"  // of a batch that cannot be read from here on, though its checksum is right
)

// maxRecordBytes bounds one record; larger ones become dead letters.
const maxRecordBytes = 32 << 20

// Record is one message. A nil Value is a tombstone, an empty one is an empty message.
type Record struct {
	Offset int64
	Value  []byte
	Size   int64     // bytes of the message, also where Value was not read
	Time   time.Time // when the log took the record; zero when not known
	Mark   string    // "" or one of the marks
}

// Batch is what one Fetch brought. Offsets in [from, Next) without a record are holes.
type Batch struct {
	Records []Record
	Next    int64 // position after the batch
	High    int64 // end of the partition as seen now, -1 when not known
	Done    bool  // the source has ended (stdin)
}

// release ends the use of the batch: its texts are cleared, and its memory goes.
func (b *Batch) release() {
	for i := range b.Records {
		clear(b.Records[i].Value)
	}
	b.Records = nil
}
