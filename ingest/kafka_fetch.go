package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"

	"tailgate/internal/fault"
)

// Fetch reads one response, or goes on with what is left of the last one. After an error the connections are dropped,
// so that the next try makes new ones.
// The request is made by hand: kafka-go's Client.Fetch hides which transactions were aborted.
func (k *Kafka) Fetch(ctx context.Context, p Partition, from int64) (Batch, error) {
	k.mu.Lock()
	a := k.rest[p.ID]
	delete(k.rest, p.ID)
	k.mu.Unlock()
	if a == nil || a.from != from || from >= a.high {
		var err error
		if a, err = k.ask(ctx, p, from); err != nil {
			return Batch{}, err
		}
	}
	b := Batch{Next: from, High: a.high}
	if err := a.read(&b); err != nil {
		return b, fetchError(p, from, err)
	}
	b.free = forget(b.Records)
	if a.got += b.size(); len(a.data) == 0 {
		k.portions.learn(p.ID, a.asked, a.got)
		return b, nil
	}
	k.mu.Lock()
	k.rest[p.ID] = a
	k.mu.Unlock()
	return b, nil
}

// forget clears the values, which point into the broker's answer.
func forget(records []Record) func() {
	return func() {
		for i := range records {
			clear(records[i].Value)
		}
	}
}

// fetchRequest asks for one partition, whose own limit is the one that counts. A followed log is not waited for:
// its worker comes again, and lets others fetch meanwhile.
func (k *Kafka) fetchRequest(p Partition, from int64, bytes int) *fetch.Request {
	wait := k.opts.MaxWait
	if p.End < 0 {
		wait = 0
	}
	return &fetch.Request{
		ReplicaID: -1, MaxWaitTime: int32(wait.Milliseconds()), MinBytes: 1, MaxBytes: math.MaxInt32,
		IsolationLevel: int8(kafka.ReadCommitted), SessionID: -1, SessionEpoch: -1,
		Topics: []fetch.RequestTopic{{
			Topic: p.Topic,
			Partitions: []fetch.RequestPartition{{
				Partition: p.ID, CurrentLeaderEpoch: -1, FetchOffset: from, LogStartOffset: -1,
				PartitionMaxBytes: int32(bytes),
			}},
		}},
	}
}

// fetchError words an error and tells those apart that another try cannot mend.
func fetchError(p Partition, from int64, err error) error {
	if errors.Is(err, kafka.OffsetOutOfRange) {
		return fmt.Errorf("fetching %s at offset %d: %w", p.name(), from, ErrOutOfRange)
	}
	wrapped := fmt.Errorf("fetching %s at offset %d: %w", p.name(), from, err)
	if strings.Contains(err.Error(), "crc32 checksum mismatch") {
		return fault.Mark(wrapped, fault.Data, "a batch on the broker's disk is corrupt; compare it on another replica")
	}
	return wrapped
}

// readBatch copies the records of a response. Next is what the response proves: the end of the last batch that
// it shows, or from + 1 when every record of the batch that holds from lies before it (compaction took the
// rest of that batch; its end is not visible here).
func readBatch(records protocol.RecordReader, from int64, gone *aborted) (Batch, error) {
	b := Batch{Next: from}
	seen := false
	add := func(r Record) {
		seen = true
		if r.Offset >= from {
			b.Records = append(b.Records, r)
			b.Next = max(b.Next, r.Offset+1)
		}
	}
	stream, ok := records.(*protocol.RecordStream)
	if !ok {
		return b, nil // no batch at all
	}
	for _, batch := range stream.Records {
		mark := func(int64) string { return "" }
		switch v := batch.(type) {
		case *protocol.ControlBatch:
			batch = v.Records
			mark = func(offset int64) string {
				gone.record(nil, offset)
				gone.marker(v.ProducerID)
				return markControl
			}
		case *protocol.RecordBatch:
			if v.BaseOffset > from {
				b.Next = max(b.Next, v.BaseOffset) // what lies before it is gone
			}
			mark = func(offset int64) string {
				if gone.record(v, offset) {
					return markAborted
				}
				return ""
			}
		}
		seen = true
		if err := copyRecords(batch, mark, from, add); err != nil {
			return b, err
		}
	}
	if seen && b.Next == from {
		b.Next = from + 1
	}
	return b, nil
}

// copyRecords hands every record of a batch to add, with its mark. Values of marked records and of those before
// offset from are not copied.
func copyRecords(batch protocol.RecordReader, mark func(offset int64) string, from int64, add func(Record)) error {
	for {
		rec, err := batch.ReadRecord()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r := Record{Offset: rec.Offset, Time: rec.Time, Mark: mark(rec.Offset)}
		switch {
		case r.Mark != "", rec.Value == nil:
		case rec.Value.Len() > maxRecordBytes:
			r.Mark, r.Size = markTooBig, int64(rec.Value.Len())
		case rec.Offset >= from:
			if r.Value, err = kafka.ReadAll(rec.Value); err != nil {
				return err
			}
			if r.Value == nil {
				r.Value = []byte{} // empty, not null
			}
			r.Size = int64(len(r.Value))
		}
		for _, field := range []kafka.Bytes{rec.Key, rec.Value} {
			if field != nil {
				field.Close()
			}
		}
		add(r)
	}
}

// commitPatience is how long a group coordinator may take to come up: a fresh broker has none for a while.
const commitPatience = 5 * time.Second

// Commit writes the position to a consumer group, as an operator's dashboards expect. It joins no group.
func (k *Kafka) Commit(ctx context.Context, group string, p Partition, next int64) error {
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	for {
		resp, err := k.client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
			GroupID: group, GenerationID: -1,
			Topics: map[string][]kafka.OffsetCommit{p.Topic: {{Partition: int(p.ID), Offset: next}}},
		})
		if err == nil {
			for _, part := range resp.Topics[p.Topic] {
				err = errors.Join(err, part.Error)
			}
		}
		if err == nil {
			return nil
		}
		starting := errors.Is(err, kafka.NotCoordinatorForGroup) || errors.Is(err, kafka.GroupCoordinatorNotAvailable) ||
			errors.Is(err, kafka.GroupLoadInProgress)
		if !starting {
			return fmt.Errorf("committing to group %s: %w", group, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("committing to group %s: %w", group, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
