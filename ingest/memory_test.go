package ingest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"tailgate/ingest"
	"tailgate/internal/testshared"
)

const (
	envMemory    = "TAILGATE_TEST_MEMORY"
	memoryLimit  = 512 << 20
	memoryTarget = 384 << 20
)

// TestMemoryIsBounded reads what is hard to hold in a process of its own, with the memory limits of Go left alone,
// and asks the kernel for the most that the process ever held.
func TestMemoryIsBounded(t *testing.T) {
	if format := os.Getenv(envMemory); format != "" {
		k, err := ingest.OpenKafka(t.Context(), os.Getenv(envURL), ingest.KafkaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		debug.SetMemoryLimit(memoryTarget) // as the command does
		o := options(os.Getenv(envLake))
		o.Format, o.MaxBad = format, 1
		report := run(t, k, o)
		fmt.Printf("peak %d rows %d dead %v\n", peakMemory(t), report.Total.Rows, report.Total.Dead)
		return
	}
	testshared.NotUnderRace(t, "the race detector keeps several bytes for each byte of a program")
	const big = 31 << 20
	repeat := func(head, part, tail string) []byte {
		return []byte(head + strings.Repeat(part, (big-len(head)-len(tail))/len(part)) + tail)
	}
	record := func(messages string) (head, tail string) {
		return `{"startTime":1795000003,"status":"success","call_type":"completion","prompt_tokens":40,"messages":` + messages, `]}`
	}
	head, tail := record(`[`)
	text := repeat(head+`{"role":"user","content":"`, `The ferry \"Kittiwake\" leaves at dusk.\n`, `"}`+tail)
	for _, c := range []struct {
		name, format string
		values       [][]byte
		rows         int // of one partition, beside the good one
		dead         string
	}{
		{"texts", "litellm", [][]byte{text, text}, 2, ""},
		{"messages", "litellm", [][]byte{repeat(head+`""`, `,"x"`, tail), repeat(head+`{}`, `,{"role":"u"}`, tail)}, 0, "too_big"},
		{"records", "litellm", [][]byte{repeat(`[{}`, `,{"startTime":1795000003}`, `]`), repeat(``, "{}\n", ``)}, 0, "too_big"},
		{"spans", "otlp-json", [][]byte{repeat(`{"resourceSpans":[{"scopeSpans":[{"spans":[{}`, `,{}`, `]}]}]}`), repeat(`{"resourceSpans":[{"resource":{"attributes":[{}`, `,{}`, `]}}]}`)}, 0, "too_big"},
		{"json in a string", "kong", [][]byte{repeat(`{"started_at":1795100000118,"latencies":{"request":1},"ai":{"proxy":{"payload":{"request":"{\"messages\":[{}`, `,{}`, `]}"}}}}`)}, 0, "bad_field"},
		{"protobuf", "otlp-proto", [][]byte{nested(big)}, 0, "too_big"},
	} {
		t.Run(c.name, func(t *testing.T) {
			partitions := 2
			if os.Getenv("TAILGATE_PROVE") == "full" {
				partitions = 8
			}
			b := newBroker(t, int32(partitions))
			b.produce(0, kafka.Gzip, goodRecord(t, c.format))
			for p := range partitions {
				for _, v := range c.values {
					b.produce(p, kafka.Zstd, bytes.Clone(v))
				}
			}
			cmd := child(t, envMemory+"="+c.format)
			cmd.Args[1] = "-test.run=^TestMemoryIsBounded$"
			cmd.Env = append(cmd.Env, envURL+"="+b.url(), envLake+"="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var peak int64
			if _, err := fmt.Sscanf(string(out), "peak %d", &peak); err != nil || peak > memoryLimit {
				t.Errorf("%d MiB: %s", peak>>20, out)
			}
			want := fmt.Sprintf("dead map[%s:%d]", c.dead, partitions*len(c.values))
			if c.dead == "" {
				want = fmt.Sprintf("rows %d dead map[]", 1+partitions*c.rows)
			}
			if !strings.Contains(string(out), want) {
				t.Errorf("want %q: %s", want, out)
			}
			t.Logf("%d MiB at most", peak>>20)
		})
	}
}

// goodRecord is a record of a format, without which a log would be taken for one of another format.
func goodRecord(t *testing.T, format string) []byte {
	t.Helper()
	file := map[string]string{"otlp-json": "otlp.json", "otlp-proto": "otlp-events.binpb"}[format]
	if file == "" {
		return fixtureLine(t, format+".jsonl", 0)
	}
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// nested is an export of one resource whose attributes are empty, size bytes of them.
func nested(size int) []byte {
	field := func(num byte, b []byte) []byte {
		out := []byte{num<<3 | 2}
		for n := len(b); ; n >>= 7 {
			if n < 0x80 {
				out = append(out, byte(n))
				break
			}
			out = append(out, byte(n)|0x80)
		}
		return append(out, b...)
	}
	return field(1, field(1, bytes.Repeat([]byte{0x0a, 0}, size/2)))
}

// peakMemory is the most that the process has held in memory, in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
