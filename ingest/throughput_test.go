package ingest_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

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
// the tokenizing (to=segments), beside a loop over kafka-go's Client.Fetch that looks at no record (to=nothing). The
// broker runs on the same machine, so that its own work is in both figures.
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
			b.Run("to=nothing", func(b *testing.B) { toNothing(b, br, size) })
		})
	}
}

func toSegments(b *testing.B, br *broker, size int64) {
	src := br.openWith(ingest.KafkaOptions{})
	forgetPeak()
	b.SetBytes(size)
	for b.Loop() {
		o := options(b.TempDir())
		o.Anonymizer = untokenized{fakeAnon{key: "k1"}}
		if r := run(b, src, o); r.Total.Rows != wireRecords {
			b.Fatalf("%d rows", r.Total.Rows)
		}
	}
	b.ReportMetric(float64(peakBytes())/(1<<20), "peak-MiB")
}

func toNothing(b *testing.B, br *broker, size int64) {
	b.SetBytes(size)
	for b.Loop() {
		var all sync.WaitGroup
		counts := make([]int, wireParts)
		for p := range wireParts {
			all.Go(func() { counts[p] = discard(b, br, p, wireRecords/wireParts) })
		}
		all.Wait()
		for _, n := range counts {
			if n != wireRecords/wireParts {
				b.Fatalf("%d records of a partition", n)
			}
		}
	}
}

// discard fetches want records of a partition and counts them.
func discard(b *testing.B, br *broker, partition, want int) (n int) {
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
