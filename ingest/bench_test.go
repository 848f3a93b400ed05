package ingest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"tailgate/ingest"
	"tailgate/prompt"
)

// untokenized is an anonymizer that gives ids without looking at the prompt: what is measured is everything
// else.
type untokenized struct{ fakeAnon }

// longTokens is the prompt length of a long record, in blocks of 16 full to the last.
const longTokens = 800

func (untokenized) Blocks(ids []int64, _ *prompt.Prompt) ([]int64, int, error) {
	for i := range longTokens / 16 {
		ids = append(ids, int64(i)*0x1e3779b97f4a7c15&^(-1<<63))
	}
	return ids, longTokens, nil
}

// longRecord is request i with a prompt that makes it about 4 KB long, escapes included.
func longRecord(i int) []byte {
	text := strings.Repeat("The ferry \"Kittiwake\" leaves pier 7 at dusk;\n\twho keeps the log – the mate or the gulls? ", 40)
	return litellm(i, fields{
		"prompt_tokens": longTokens, "response": nil,
		"messages": []fields{{"role": "system", "content": text[:1200]}, {"role": "user", "content": text[:2200]}},
	})
}

// BenchmarkKafkaToSegments brings a topic of two partitions from the broker into fsynced Parquet segments,
// everything but the tokenizing.
func BenchmarkKafkaToSegments(b *testing.B) {
	const partitions, batches, perBatch = 2, 100, 100
	br := newBroker(b, partitions)
	size := 0
	for i := range batches {
		values := make([][]byte, perBatch)
		for j := range values {
			values[j] = longRecord(i*perBatch + j)
			size += len(values[j])
		}
		br.produce(i%partitions, kafka.Lz4, values...)
	}
	src := br.openWith(ingest.KafkaOptions{})
	b.SetBytes(int64(size))
	for b.Loop() {
		o := options(b.TempDir())
		o.Anonymizer = untokenized{fakeAnon{key: "k1"}}
		if r := run(b, src, o); r.Total.Rows != batches*perBatch {
			b.Fatalf("%d rows", r.Total.Rows)
		}
	}
}

// BenchmarkRecordDecode decodes one record, texts unescaped.
func BenchmarkRecordDecode(b *testing.B) {
	rec := longRecord(0)
	decode := ingest.DecodeCount("litellm")
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		if decode(rec) != 1 {
			b.Fatal("no record")
		}
	}
}

// BenchmarkRecordEncodingJSON is the baseline: the same record into a struct of the same fields.
func BenchmarkRecordEncodingJSON(b *testing.B) {
	rec := longRecord(0)
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct {
			CallID     string `json:"litellm_call_id"`
			TraceID    string `json:"trace_id"`
			CallType   string `json:"call_type"`
			Stream     bool
			Status     string
			Prompt     int64   `json:"prompt_tokens"`
			Completion int64   `json:"completion_tokens"`
			Start      float64 `json:"startTime"`
			End        float64 `json:"endTime"`
			First      float64 `json:"completionStartTime"`
			Model      string
			Group      string `json:"model_group"`
			Messages   []struct{ Role, Content string }
			Metadata   struct {
				Team string `json:"user_api_key_team_id"`
			}
		}
		if err := json.Unmarshal(rec, &v); err != nil || len(v.Messages) != 2 {
			b.Fatal(err)
		}
	}
}
