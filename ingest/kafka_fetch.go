package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
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
	if a.got += b.size(); a.empty() {
		k.portions.learn(p.ID, a.asked, a.got)
		return b, nil
	}
	k.mu.Lock()
	k.rest[p.ID] = a
	k.mu.Unlock()
	return b, nil
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
	if errors.Is(err, errBatch) {
		return fault.Mark(wrapped, fault.Data, "Kafka writes no such batch; find out what wrote it")
	}
	if strings.Contains(err.Error(), "crc32 checksum mismatch") {
		return fault.Mark(wrapped, fault.Data, "a batch on the broker's disk is corrupt; compare it on another replica")
	}
	return wrapped
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
