package ingest_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"tailgate/ingest"
	"tailgate/internal/rng"
)

// Size of the topic of BenchmarkRealBroker.
const (
	wireParts   = 4
	wireRecords = 110_000 // of about 4 KB
	wireBatch   = 100     // records of one batch, as a producer with a linger sends them
)

// BenchmarkRealBroker brings a topic from the broker of TAILGATE_KAFKA into fsynced Parquet segments, everything but
// the tokenizing (to=segments): the anonymizer gives ids without looking at the prompt. Beside it are a loop over
// kafka-go's Client.Fetch that decodes each record with encoding/json and keeps nothing (to=json), and one that looks
// at no record (to=nothing). The broker runs on the same machine, so that its own work is in all figures.
func BenchmarkRealBroker(b *testing.B) {
	if os.Getenv(envBroker) == "" {
		b.Skip("needs a real broker in " + envBroker)
	}
	for _, c := range []struct {
		name  string
		codec kafka.Compression
	}{{"none", 0}, {"lz4", kafka.Lz4}, {"zstd", kafka.Zstd}} {
		b.Run("codec="+c.name, func(b *testing.B) {
			br := newBroker(b, wireParts)
			size := produceWire(br, c.codec)
			b.Run("to=segments", func(b *testing.B) { toSegments(b, br, size) })
			b.Run("to=json", func(b *testing.B) { toLoop(b, br, size, unmarshal) })
			b.Run("to=nothing", func(b *testing.B) { toLoop(b, br, size, func(kafka.Bytes) error { return nil }) })
		})
	}
}

// toSegments measures tailgate.
func toSegments(b *testing.B, br *broker, size int64) {
	src := br.openWith(ingest.KafkaOptions{})
	forgetPeak()
	b.SetBytes(size)
	used := cpuTimeWithBroker()
	for b.Loop() {
		o := options(b.TempDir())
		o.Anonymizer = untokenized{fakeAnon{key: "k1"}}
		if r := run(b, src, o); r.Total.Rows != wireRecords {
			b.Fatalf("%d rows", r.Total.Rows)
		}
	}
	used = cpuTimeWithBroker() - used
	b.ReportMetric(float64(peakBytes())/(1<<20), "peak-MiB")
	// Of one core, ours and the broker's: what the machine can hold is this times its cores, whoever else is on it.
	b.ReportMetric(float64(size)*float64(b.N)/1e6/used.Seconds(), "MB/cpu-s")
}

// cpuTime is what this process and the broker's have used, the latter where its folder is known.
func cpuTimeWithBroker() time.Duration {
	var own syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil {
		return 0
	}
	used := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	pid, _ := os.ReadFile(filepath.Join(os.Getenv(envData), "pid"))
	stat, _ := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
	if _, after, ok := strings.Cut(string(stat), ") "); ok && len(pid) > 0 {
		fields := strings.Fields(after) // from the third on
		for _, ticks := range fields[11:13] {
			n, _ := strconv.ParseInt(ticks, 10, 64)
			used += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return used
}

// unmarshal is what a consumer without a decoder of its own does.
func unmarshal(value kafka.Bytes) error {
	data, err := kafka.ReadAll(value)
	if err != nil {
		return err
	}
	var v struct {
		CallID     string  `json:"litellm_call_id"`
		TraceID    string  `json:"trace_id"`
		Prompt     int64   `json:"prompt_tokens"`
		Completion int64   `json:"completion_tokens"`
		Start      float64 `json:"startTime"`
		End        float64 `json:"endTime"`
		First      float64 `json:"completionStartTime"`
		Model      string  `json:"model"`
		Messages   []struct{ Role, Content string }
	}
	return json.Unmarshal(data, &v)
}

// toLoop is the baseline: fetch, do this with each value, forget it.
func toLoop(b *testing.B, br *broker, size int64, do func(kafka.Bytes) error) {
	b.SetBytes(size)
	for b.Loop() {
		var all sync.WaitGroup
		counts := make([]int, wireParts)
		for p := range wireParts {
			all.Go(func() { counts[p] = fetchAll(b, br, p, wireRecords/wireParts, do) })
		}
		all.Wait()
		for _, n := range counts {
			if n != wireRecords/wireParts {
				b.Fatalf("%d records of a partition", n)
			}
		}
	}
}

// fetchAll fetches want records of a partition and counts them.
func fetchAll(b *testing.B, br *broker, partition, want int, do func(kafka.Bytes) error) (n int) {
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := kafka.Client{Addr: kafka.TCP(br.addr), Transport: transport}
	for n < want {
		resp, err := client.Fetch(b.Context(), &kafka.FetchRequest{
			Topic: br.topic, Partition: partition, Offset: int64(n), MinBytes: 1, MaxBytes: 16 << 20,
		})
		if err != nil || resp.Error != nil {
			b.Error(err, resp)
			return n
		}
		for {
			rec, err := resp.Records.ReadRecord()
			if err != nil {
				break
			}
			if rec.Offset >= int64(n) {
				n = int(rec.Offset) + 1
				if err := do(rec.Value); err != nil {
					b.Error(err)
				}
			}
			rec.Value.Close()
		}
	}
	return n
}

// produceWire fills the topic with records of about 4 KB whose texts differ, and returns their bytes.
func produceWire(br *broker, codec kafka.Compression) (size int64) {
	r := rng.New(1, "wire")
	words := wireWords(r)
	for n := 0; n < wireRecords; {
		for p := 0; p < wireParts && n < wireRecords; p++ {
			values := make([][]byte, wireBatch)
			for i := range values {
				values[i] = wireRecord(r, words, n)
				size += int64(len(values[i]))
				n++
			}
			br.produce(p, codec, values...)
		}
	}
	return size
}

// wireWords is a vocabulary with a few escapes in it.
func wireWords(r *rand.Rand) []string {
	words := []string{"\"Kittiwake\"", "\n", "–", "\t", "<b>"}
	for len(words) < 3000 {
		w := make([]byte, 2+r.IntN(9))
		for i := range w {
			w[i] = byte('a' + r.IntN(26))
		}
		words = append(words, string(w))
	}
	return words
}

// wireRecord is request i with a system prompt of 1,200 bytes that many share and a question of 2,200 of its own.
func wireRecord(r *rand.Rand, words []string, i int) []byte {
	text := func(r *rand.Rand, size int) string {
		var b strings.Builder
		for b.Len() < size {
			b.WriteString(words[r.IntN(len(words))])
			b.WriteByte(' ')
		}
		return b.String()
	}
	shared := rand.New(rand.NewPCG(uint64(i%20), 7))
	return litellm(i, fields{
		"prompt_tokens": longTokens, "response": nil,
		"messages": []fields{{"role": "system", "content": text(shared, 1200)}, {"role": "user", "content": text(r, 2200)}},
	})
}

// forgetPeak makes the kernel forget how much memory this process once had.
func forgetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB`)

// peakBytes is the most memory that this process had since forgetPeak, 0 where the system does not tell.
func peakBytes() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	m := peakLine.FindSubmatch(bytes.TrimSpace(status))
	if m == nil {
		return 0
	}
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kb << 10
}
