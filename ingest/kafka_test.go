package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// Case 36: killed after some rows, then run again.
func TestKafkaRestartLosesAndRepeatsNothing(t *testing.T) {
	b := newBroker(t, 3)
	b.produceRequests(1000, 3)
	for _, point := range []string{"before-close", "before-link", "after-link", "after-commit"} {
		t.Run(point, func(t *testing.T) {
			o := options(t.TempDir())
			o.RotateRows, o.Group = 100, "night-"+point+b.topic
			var mu sync.Mutex
			reached := 0
			ingest.SetHook(&o, func(p string) error {
				mu.Lock()
				defer mu.Unlock()
				if p == point {
					reached++
				}
				if reached >= 3 {
					return errors.New("killed") // from here on every worker dies at its next step
				}
				return nil
			})
			if _, err := ingest.Run(t.Context(), b.open(), o); err == nil {
				t.Fatal("the failpoint was not reached")
			}
			if n := len(segmentRows(t, o.Lake)); n == 1000 {
				t.Fatalf("the first run finished")
			}
			ingest.SetHook(&o, nil)
			report := run(t, b.open(), o)
			checkComplete(t, segmentRows(t, o.Lake), 1000)
			for _, p := range report.Partitions {
				got := b.committed(o.Group, p.Partition)
				if got != p.Mark {
					t.Errorf("group position of partition %d is %d, want %d", p.Partition, got, p.Mark)
				}
			}
			if again := run(t, b.open(), o); again.Total.Rows != 0 || again.Segments != 0 {
				t.Errorf("a second run added %d rows", again.Total.Rows)
			}
			figures(t, "T2", b, "3 partitions stop %s: 1,000 of 1,000 ids after the next run, 0 duplicates, 0 rows in the one after", point)
		})
	}
}

func TestKafkaTwoWritersRacing(t *testing.T) {
	b := newBroker(t, 3)
	b.produceRequests(900, 3)
	lake := t.TempDir()
	var wg sync.WaitGroup
	conflicts := make([]int, 2)
	for i := range 2 {
		src := b.open()
		wg.Go(func() {
			o := options(lake)
			o.RotateRows = int64(30 + 11*i)
			r, err := ingest.Run(t.Context(), src, o)
			if err != nil {
				t.Error(err)
				return
			}
			for _, p := range r.Partitions {
				conflicts[i] += p.Conflicts
			}
		})
	}
	wg.Wait()
	checkComplete(t, segmentRows(t, lake), 900)
	figures(t, "T1", b, "2 writers race over 3 partitions: %d conflicts, 900 of 900 ids, 0 duplicates, 0 gaps", conflicts[0]+conflicts[1])
}

func TestKafkaCodecsNullEmptyAndLarge(t *testing.T) {
	b := newBroker(t, 1)
	n := 0
	for _, codec := range []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd} {
		b.produce(0, codec, litellm(n, nil), litellm(n+1, nil))
		n += 2
	}
	big := litellm(n, fields{"messages": strings.Repeat("gull and kelp ", 380_000)})
	b.produce(0, 0, big)
	b.produce(0, 0, nil, []byte{}, litellm(n+1, nil))
	o := options(t.TempDir())
	r := run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), n+2)
	p := r.Partitions[0]
	if p.Skips[ingest.SkipTombstone] != 1 || p.Skips[ingest.SkipEmpty] != 1 || p.Next != int64(n+4) {
		t.Errorf("skips %v, next %d", p.Skips, p.Next)
	}
	if len(big) < 5<<20 {
		t.Errorf("the large record has only %d bytes", len(big))
	}
}

func TestKafkaRetentionGap(t *testing.T) {
	b := newBroker(t, 1)
	o := options(t.TempDir())
	b.produce(0, 0, litellm(0, nil), litellm(1, nil))
	run(t, b.open(), o)
	for i := range 4 {
		b.produce(0, 0, litellm(2+i, nil))
	}
	b.deleteRecords(4)
	_, err := ingest.Run(t.Context(), b.open(), o)
	if fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "2 to 3") {
		t.Fatalf("gap: %v", err)
	}
	o.AllowGap = true
	r := run(t, b.open(), o)
	if p := r.Partitions[0]; p.Lost != 2 || p.Holes != 2 || p.Rows != 2 || len(p.HoleRanges) != 1 {
		t.Errorf("after the gap: %+v", p)
	}
	if rows := segmentRows(t, o.Lake); len(rows) != 4 {
		t.Errorf("%d rows, want 4", len(rows))
	}
	figures(t, "T7", b, "offsets 2 and 3 deleted between two runs: exit 6 before anything is read; with --allow-gap 4 rows and 2 holes counted as lost")
}

func TestKafkaRecreatedTopic(t *testing.T) {
	b := newBroker(t, 2)
	o := options(t.TempDir())
	b.produceRequests(20, 2)
	run(t, b.open(), o)
	b.deleteTopic()
	b.createTopic(2)
	b.produce(0, 0, litellm(20, nil))
	b.produce(1, 0, litellm(21, nil))
	if _, err := ingest.Run(t.Context(), b.open(), o); fault.Of(err) != fault.Data {
		t.Fatalf("a recreated topic: %v", err)
	}
	o.AcceptReset = true
	if r := run(t, b.open(), o); r.Partitions[0].Generation != 1 || r.Total.Rows != 2 {
		t.Errorf("%+v", r)
	}
	checkComplete(t, segmentRows(t, o.Lake), 22)
	if again := run(t, b.open(), o); again.Total.Rows != 0 {
		t.Errorf("a second run added %d rows", again.Total.Rows)
	}
	figures(t, "T8", b, "topic recreated, shorter: exit 6; with --accept-reset generation 1, 22 of 22 ids, 0 in the run after")
}

// A recreated topic that has grown beyond its old end has the right offsets and other records.
func TestKafkaRecreatedTopicThatHasGrown(t *testing.T) {
	b := newBroker(t, 2)
	o := options(t.TempDir())
	b.produceRequests(20, 2)
	run(t, b.open(), o)
	b.deleteTopic()
	b.createTopic(2)
	b.produceRange(20, 60, 2)
	_, err := ingest.Run(t.Context(), b.open(), o)
	if fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "recreated: the record at offset 9") {
		t.Fatalf("%v", err)
	}
	o.AcceptReset = true
	run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 60)
	if again := run(t, b.open(), o); again.Total.Rows != 0 {
		t.Errorf("a second run added %d rows", again.Total.Rows)
	}
	figures(t, "T8", b, "topic recreated and grown beyond its old end: exit 6 by the record at the last offset; with --accept-reset 60 of 60 ids")
}

func TestKafkaCommitFailureIsAWarning(t *testing.T) {
	b := newFakeBroker(t, 1)
	b.produceRequests(10, 1)
	b.Fault(kfake.Fault{Group: "night", Count: -1})
	o := options(t.TempDir())
	o.Group = "night"
	run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 10)
	figures(t, "T15", b, "every request of the group fails: 10 of 10 ids, 0 duplicates, one warning")
}

// A group with members refuses a commit from outside: the same rows, in each of the runs.
func TestKafkaCommitsAreRefused(t *testing.T) {
	b := newBroker(t, 1)
	group := "busy-" + b.topic
	member, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(b.topic), kgo.DisableAutoCommit())
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	b.produceRequests(40, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := member.PollFetches(ctx).Err(); err != nil { // it has joined
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := options(t.TempDir())
	o.Group, o.RotateRows, o.Logger = group, 10, slog.New(slog.NewTextHandler(&log, nil))
	run(t, b.open(), o)
	b.produceRange(40, 60, 1)
	run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 60)
	warnings := strings.Count(log.String(), "telling the group its position failed")
	if at := b.committed(group, 0); warnings != 2 || at >= 0 {
		t.Errorf("%d warnings, committed %d: %s", warnings, at, log.String())
	}
	figures(t, "T15", b, "a group with a member refuses every commit: 60 of 60 ids in 2 runs, 0 duplicates, %d warnings", warnings)
}

func TestKafkaMovingLeaderIsAskedAgain(t *testing.T) {
	b := newFakeBroker(t, 1)
	b.produceRequests(10, 1)
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: b.topic, Err: kerr.NotLeaderForPartition, Count: 2})
	o := options(t.TempDir())
	run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 10)
}

func TestOpenKafkaSaysWhatIsWrong(t *testing.T) {
	b := newBroker(t, 1)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for _, c := range []struct {
		name, url, want string
		kind            fault.Kind
	}{
		{"no broker", "kafka://" + closed.Addr().String() + "/tides", "connection refused", fault.Failure},
		{"not a broker", "kafka://" + silent.Addr().String() + "/tides", "no answer", fault.Failure},
		{"no topic", "kafka://" + b.addr + "/ebb", "no such topic", fault.Failure},
		{"no topic name", "kafka://" + b.addr, "must name one topic", fault.Usage},
		{"two topics", "kafka://" + b.addr + "/a/b", "must name one topic", fault.Usage},
		{"other scheme", "http://x/tides", "begin with kafka://", fault.Usage},
		{"no host", "kafka://:9092/tides", "name the brokers", fault.Usage},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			_, err := ingest.OpenKafka(ctx, c.url, ingest.KafkaOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want %q", fmt.Sprint(err), c.want)
			}
			if fault.Of(err) != c.kind {
				t.Errorf("kind %v, want %v", fault.Of(err), c.kind)
			}
		})
	}
}

func TestKafkaSecondBrokerAddressServes(t *testing.T) {
	b := newBroker(t, 1)
	b.produceRequests(5, 1)
	k, err := ingest.OpenKafka(t.Context(), "kafka://127.0.0.1:1,"+b.addr+"/"+b.topic, ingest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	o := options(t.TempDir())
	run(t, k, o)
	checkComplete(t, segmentRows(t, o.Lake), 5)
}
