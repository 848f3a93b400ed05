package ingest_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/schemas"
)

// What a log can hold beside plain records, and what can happen to it while it is read.

func requests(from, to int) [][]byte {
	var out [][]byte
	for i := from; i < to; i++ {
		out = append(out, litellm(i, nil))
	}
	return out
}

func rowOffsets(rows []schemas.Request) []int64 {
	var out []int64
	for _, r := range rows {
		out = append(out, r.Offset)
	}
	slices.Sort(out)
	return out
}

func TestKafkaTransactions(t *testing.T) {
	b := newBroker(t, 1)
	b.transaction("a", requests(0, 10)...)(kgo.TryCommit) // offsets 0-9, marker 10
	b.transaction("b", requests(500, 505)...)(kgo.TryAbort)
	b.produce(0, 0, requests(10, 12)...) // 17-18
	end := b.transaction("c", requests(12, 15)...)
	o := options(t.TempDir())
	r := run(t, b.open(), o) // the open transaction holds the end at its first record
	p := r.Partitions[0]
	if p.Mark != 19 || p.Next != 19 || p.Skips[ingest.SkipControl] != 2 || p.Skips[ingest.SkipAborted] != 5 {
		t.Errorf("%+v", p)
	}
	end(kgo.TryCommit)
	p = run(t, b.open(), o).Partitions[0]
	if p.Mark != 23 || p.Next != 23 || p.Rows != 3 || p.Skips[ingest.SkipControl] != 1 {
		t.Errorf("%+v", p)
	}
	checkComplete(t, segmentRows(t, o.Lake), 15)
	figures(t, "T9", b, "3 transactions, one aborted, one open: 15 rows, 5 aborted records and 3 markers counted as skips")
}

// A log that ends in markers has no record at its last offsets.
func TestKafkaEndsAtMarkers(t *testing.T) {
	b := newBroker(t, 1)
	b.produce(0, 0, requests(0, 3)...)
	b.transaction("a", requests(500, 501)...)(kgo.TryAbort)
	b.transaction("b", requests(501, 502)...)(kgo.TryAbort)
	o := options(t.TempDir())
	if p := run(t, b.open(), o).Partitions[0]; p.Next != 7 || p.Mark != 7 || p.Skips[ingest.SkipControl] != 2 {
		t.Errorf("%+v", p)
	}
	if again := run(t, b.open(), o); again.Segments != 0 {
		t.Errorf("a second run wrote %d segments", again.Segments)
	}
}

// Twelve batches, each in a segment of the log of its own, rewrite the same ten keys; one key in each is its
// own. The broker keeps the last ten of what is closed, the single ones, and the open segment.
func TestKafkaCompactedTopic(t *testing.T) {
	b := newBroker(t, 1, "cleanup.policy", "compact", "segment.bytes", "1048576", "min.cleanable.dirty.ratio", "0.01")
	const batches, shared = 12, 10
	filler := strings.Repeat("kelp and gulls ", 4600)
	n := 0
	for i := range batches {
		var messages []keyed
		for k := range shared + 1 {
			key := fmt.Sprintf("key-%d", k)
			if k == shared/2 {
				key = fmt.Sprintf("own-%d", i)
			}
			messages = append(messages, keyed{key: []byte(key), value: litellm(n, fields{"messages": filler})})
			n++
		}
		b.produceKeyed(0, 0, messages)
	}
	var want []int64
	for i := range int64(batches) {
		for k := range int64(shared + 1) {
			if i >= batches-2 || k == shared/2 {
				want = append(want, i*(shared+1)+k)
			}
		}
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if b.Cluster != nil {
			b.Compact()
		}
		left := b.offsets(int64(n))
		if len(left) == len(want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the broker did not compact: %d offsets left, want %d", len(left), len(want))
		}
	}
	o := options(t.TempDir())
	o.RotateRows = 7
	p := run(t, b.open(), o).Partitions[0]
	if diff := cmp.Diff(want, rowOffsets(segmentRows(t, o.Lake))); diff != "" {
		t.Error(diff)
	}
	if p.Next != int64(n) || p.Messages != int64(len(want)) || p.Holes != int64(n-len(want)) || p.Lost != 0 {
		t.Errorf("%+v", p)
	}
	figures(t, "T9", b, "compaction left %d of %d offsets: %d rows, %d holes in %d ranges, 0 lost", len(want), n, p.Messages, p.Holes, len(p.HoleRanges))
}

// Retention deletes what comes next while the run is under way.
func TestKafkaRetentionRace(t *testing.T) {
	for _, allow := range []bool{false, true} {
		t.Run(fmt.Sprint("allowed ", allow), func(t *testing.T) {
			b := newBroker(t, 1)
			for i := range 40 {
				b.produce(0, 0, litellm(i, nil))
			}
			o := options(t.TempDir())
			o.RotateRows, o.AllowGap = 10, allow
			var once sync.Once
			ingest.SetHook(&o, func(point string) error {
				if point == "after-link" {
					once.Do(func() { b.deleteRecords(25) })
				}
				return nil
			})
			// One byte: the broker sends one batch at a time. The eleventh may have been fetched beside the tenth.
			src := b.openWith(ingest.KafkaOptions{MaxWait: 50 * time.Millisecond, FetchBytes: 1})
			r, err := ingest.Run(t.Context(), src, o)
			rows := r.Total.Rows
			if !allow && (rows != 10 && rows != 11 || fault.Of(err) != fault.Data || !strings.Contains(err.Error(), fmt.Sprintf("offsets %d to 24", rows))) {
				t.Errorf("%v, %+v", err, r)
			}
			if allow && (err != nil || rows != 25 && rows != 26 || r.Total.Lost != 40-rows) {
				t.Errorf("%v, %+v", err, r)
			}
			checkOffsets(t, segmentRows(t, o.Lake), int(rows))
			figures(t, "T7", b, "40 offsets of which 25 were deleted under way: %d rows, %d lost and counted, error %v", rows, r.Total.Lost, err)
		})
	}
}

// The broker goes away in the middle of a run and comes back.
func TestKafkaBrokerRestart(t *testing.T) {
	b := newBroker(t, 3)
	b.needRestart()
	const n = 900
	b.produceRequests(n, 3)
	o := options(t.TempDir())
	o.RotateRows = 50
	var once sync.Once
	var took time.Duration
	ingest.SetHook(&o, func(point string) error {
		if point == "after-link" {
			once.Do(func() {
				began := time.Now()
				b.restart()
				took = time.Since(began)
			})
		}
		return nil
	})
	src := b.openWith(ingest.KafkaOptions{MaxWait: 50 * time.Millisecond, FetchBytes: 1})
	r := run(t, src, o)
	checkComplete(t, segmentRows(t, o.Lake), n)
	if r.Segments < 18 {
		t.Errorf("%d segments", r.Segments)
	}
	figures(t, "T3", b, "broker restarted (%.1f s) in the middle of a run: %d of %d ids, 0 duplicates, %d segments", took.Seconds(), n, n, r.Segments)
}

// Records of 5 and 20 MB pass with every codec; one above the bound, or one that unpacks to 64 MB, becomes a
// dead letter, and what follows is read.
func TestKafkaLargeRecords(t *testing.T) {
	b := newBroker(t, 1, "max.message.bytes", "40000000")
	large := func(i, bytes int) []byte {
		return litellm(i, fields{"messages": strings.Repeat("gull and kelp ", bytes/14)})
	}
	codecs := []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd}
	n := 0
	for _, codec := range codecs {
		b.produce(0, codec, large(n, 5<<20))
		n++
	}
	b.produce(0, 0, large(n, 20<<20), litellm(n+1, nil))
	b.produce(0, kafka.Zstd, large(n+2, 20<<20))
	b.produce(0, 0, large(9000, 34<<20))
	b.produce(0, kafka.Zstd, litellm(9001, fields{"messages": strings.Repeat("a", 64<<20)}))
	b.produce(0, 0, litellm(n+3, nil))
	n += 4
	o := options(t.TempDir())
	o.MaxBad = 1
	p := run(t, b.open(), o).Partitions[0]
	checkComplete(t, segmentRows(t, o.Lake), n)
	if p.Dead[ingest.DeadTooBig] != 2 || p.Next != int64(n+2) {
		t.Errorf("%+v", p)
	}
	figures(t, "T12", b, "5 MB with five codecs, 20 MB plain and zstd: %d of %d rows; 34 MB, and 64 MB in a zstd batch: 2 dead letters", n, n)
}
