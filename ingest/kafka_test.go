package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
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
	t.Logf("conflicts: %v", conflicts)
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
}

func TestKafkaCommitFailureIsAWarning(t *testing.T) {
	b := newBroker(t, 1)
	b.produceRequests(10, 1)
	b.needFake().Fault(kfake.Fault{Group: "night", Count: -1})
	o := options(t.TempDir())
	o.Group = "night"
	run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 10)
}

func TestKafkaMovingLeaderIsAskedAgain(t *testing.T) {
	b := newBroker(t, 1)
	b.produceRequests(10, 1)
	b.needFake().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: b.topic, Err: kerr.NotLeaderForPartition, Count: 2})
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

func TestKafkaPoisonEndsInTheLedger(t *testing.T) {
	b := newBroker(t, 1)
	poison := [][]byte{
		[]byte("not json"), {0, 0, 0, 0, 7, '{', '}'}, {0x1f, 0x8b, 8, 0}, []byte(`{"a":1}`), []byte(`[1,"x",null]`),
		[]byte(`"text"`), litellm(90, fields{"startTime": nil}), litellm(91, fields{"startTime": 12.5}),
		litellm(92, fields{"startTime": base * 1000}), litellm(93, fields{"prompt_tokens": -4}),
		litellm(94, fields{"messages": 7}), litellm(95, fields{"prompt_tokens": 3e9}), []byte("\xef\xbb\xbf{"),
		bytes.Repeat([]byte("["), 20_000),
	}
	b.produce(0, 0, append(append([][]byte{poison[0]}, poison[1:]...), litellm(0, nil))...)
	b.produce(0, 0, poison[0])
	o := options(t.TempDir())
	o.MaxBad = 1
	r := run(t, b.open(), o)
	p := r.Partitions[0]
	if p.Messages != 1 || p.DeadMessages != int64(len(poison))+1 || p.Next != int64(len(poison))+2 {
		t.Errorf("%+v", p)
	}
	letters, err := ingest.DeadLetters(o.Lake)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]int64{}
	for _, l := range letters {
		reasons[l.Reason]++
	}
	for reason, n := range p.Dead {
		if reasons[reason] != n {
			t.Errorf("%s: %d in the report, %d in the ledger", reason, n, reasons[reason])
		}
	}
	if first, last := letters[0], letters[len(letters)-1]; first.Fingerprint != last.Fingerprint || first.Fingerprint == "" {
		t.Error("equal records have different fingerprints")
	}
	o.MaxBad, o.Lake = 0, t.TempDir()
	if r, err := ingest.Run(t.Context(), b.open(), o); err == nil || r.Total.Rows != 1 || fault.Of(err) != fault.Failure {
		t.Errorf("more than max-bad dead: %v, %v", r, err)
	}
}
