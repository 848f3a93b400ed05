package ingest_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// answerFetches lets f answer every fetch; f gives nil for the broker's own answer.
func (b *broker) answerFetches(f func(n int64, req *kmsg.FetchRequest) (kmsg.Response, error)) {
	var n atomic.Int64
	b.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		resp, err := f(n.Add(1), req.(*kmsg.FetchRequest))
		return resp, err, resp != nil || err != nil
	})
}

func fetchAnswer(req *kmsg.FetchRequest, code int16) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic, topic.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
	part := kmsg.NewFetchResponseTopicPartition()
	part.Partition, part.ErrorCode = req.Topics[0].Partitions[0].Partition, code
	topic.Partitions = append(topic.Partitions, part)
	resp.Topics = append(resp.Topics, topic)
	return resp
}

// T3: connections that break, leaders that move, answers without records, between answers that are right.
func TestBrokerFaultsLoseNothing(t *testing.T) {
	for name, f := range map[string]func(n int64, req *kmsg.FetchRequest) (kmsg.Response, error){
		"connection reset": func(n int64, _ *kmsg.FetchRequest) (kmsg.Response, error) {
			if n%3 == 2 {
				return nil, errors.New("reset") // the broker closes the connection
			}
			return nil, nil
		},
		"NOT_LEADER": func(n int64, req *kmsg.FetchRequest) (kmsg.Response, error) {
			if n%2 == 1 {
				return fetchAnswer(req, kerr.NotLeaderForPartition.Code), nil
			}
			return nil, nil
		},
		"empty answers": func(n int64, req *kmsg.FetchRequest) (kmsg.Response, error) {
			if n%3 != 0 {
				return fetchAnswer(req, 0), nil
			}
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFakeBroker(t, 2)
			b.produceRequests(200, 2)
			var fetches atomic.Int64
			b.answerFetches(func(n int64, req *kmsg.FetchRequest) (kmsg.Response, error) {
				fetches.Store(n)
				return f(n, req)
			})
			o := options(t.TempDir())
			o.RotateRows = 30
			run(t, b.open(), o)
			checkComplete(t, segmentRows(t, o.Lake), 200)
			figures(t, "T3", b, "%s, every second or third fetch of %d: 200 of 200 ids, 0 duplicates", name, fetches.Load())
		})
	}
}

// The broker stops for good in the middle: one line, and what was read is there for the next run.
func TestBrokerThatIsGone(t *testing.T) {
	t.Parallel()
	b := newFakeBroker(t, 1)
	b.produceRequests(200, 1)
	o := options(t.TempDir())
	o.RotateRows, o.Stall = 30, 400*time.Millisecond
	src, err := ingest.OpenKafka(t.Context(), b.url(), ingest.KafkaOptions{MaxWait: 20 * time.Millisecond, FetchBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var back atomic.Bool
	b.answerFetches(func(n int64, _ *kmsg.FetchRequest) (kmsg.Response, error) {
		if n > 3 && !back.Load() {
			return nil, errors.New("gone")
		}
		return nil, nil
	})
	r, err := ingest.Run(t.Context(), src, o)
	if err == nil || fault.Of(err) != fault.Failure || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "stalled at offset") {
		t.Fatalf("%v", err)
	}
	if n := int64(len(segmentRows(t, o.Lake))); n == 0 || n != r.Total.Rows {
		t.Errorf("%d rows in the lake, %d in the report", n, r.Total.Rows)
	}
	back.Store(true)
	o.Stall = 0
	run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 200)
}

// T10: a batch whose checksum is wrong is an error, and never a row.
func TestCorruptBatchIsNoRow(t *testing.T) {
	b := newFakeBroker(t, 1)
	b.produceRequests(40, 1)
	b.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		return corrupted(b, req.(*kmsg.FetchRequest))
	})
	o := options(t.TempDir())
	_, err := ingest.Run(t.Context(), b.open(), o)
	if fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "crc32") {
		t.Errorf("%v", err)
	}
	if rows := segmentRows(t, o.Lake); len(rows) != 0 {
		t.Errorf("%d rows of a corrupt batch", len(rows))
	}
	figures(t, "T10", b, "answer with a wrong checksum: 0 rows, error %v", err)
}

// corrupted answers with a batch of which one byte was flipped.
func corrupted(b *broker, req *kmsg.FetchRequest) (kmsg.Response, error, bool) {
	batch := kmsg.RecordBatch{
		FirstOffset: req.Topics[0].Partitions[0].FetchOffset, PartitionLeaderEpoch: -1, Magic: 2, ProducerID: -1, ProducerEpoch: -1,
		FirstSequence: -1, NumRecords: 1, FirstTimestamp: 1_790_000_000_000, MaxTimestamp: 1_790_000_000_000, CRC: 12345,
	}
	record := kmsg.Record{Value: litellm(0, nil)}
	record.Length = int32(len(record.AppendTo(nil)) - 1)
	batch.Records = record.AppendTo(nil)
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)
	resp := fetchAnswer(req, 0).(*kmsg.FetchResponse)
	part := &resp.Topics[0].Partitions[0]
	part.RecordBatches, part.HighWatermark, part.LastStableOffset = batch.AppendTo(nil), 40, 40
	return resp, nil, true
}
