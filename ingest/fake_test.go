package ingest_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tailgate/ingest"
	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/prompt"
	"tailgate/schemas"
)

// fakeAnon is a small keyed anonymizer: a token is four bytes of the rendered prompt.
type fakeAnon struct{ key string }

func (a fakeAnon) sum(parts ...[]byte) []byte {
	h := hmac.New(sha256.New, []byte(a.key))
	for _, p := range parts {
		binary.Write(h, binary.LittleEndian, uint32(len(p)))
		h.Write(p)
	}
	return h.Sum(nil)
}

func (a fakeAnon) Token(kind string, value []byte) string {
	letters := map[string]string{"tenant": "t", "session": "s", "request": "r", "model": "m", "topic": "k", "clock": "c", "record": "x", "forget": "f"}
	enc := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(a.sum([]byte(kind), value))
	return letters[kind] + "_" + strings.ToLower(enc[:13])
}

func (a fakeAnon) Key(kind string, parts ...[]byte) int64 {
	sum := a.sum(append([][]byte{[]byte(kind)}, parts...)...)
	return int64(binary.BigEndian.Uint64(sum) &^ (1 << 63))
}

func (a fakeAnon) Blocks(ids []int64, p *prompt.Prompt) ([]int64, int, error) {
	var b bytes.Buffer
	for _, t := range p.Tools {
		fmt.Fprintf(&b, "T%s%s%s", t.Name, t.Description, t.Parameters)
	}
	for i, m := range p.Messages {
		if i == p.Intact {
			break
		}
		if m.Role != "" {
			fmt.Fprintf(&b, "<%s>", m.Role)
		}
		for _, part := range m.Parts {
			b.Write(part.Text)
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "C%s%s", c.Name, c.Arguments)
		}
	}
	text := b.Bytes()
	const block = 64
	if p.State != schemas.PromptFull {
		text = text[:len(text)/block*block]
	}
	chain := a.sum([]byte("v1"), []byte(p.Model))
	for off := 0; off < len(text); off += block {
		chain = a.sum(chain, text[off:min(off+block, len(text))])
		ids = append(ids, int64(binary.BigEndian.Uint64(chain)&^(1<<63)))
	}
	return ids, (len(text) + 3) / 4, nil
}

// options are those of a test run.
func options(lake string) ingest.Options {
	o := ingest.Options{
		Format: "litellm", Lake: lake, Anonymizer: fakeAnon{key: "k1"},
		Footer: schemas.Footer{Tool: "test", Tokenizer: "bytes4", Epoch: "e1"},
	}
	if objstore.IsS3(lake) {
		o.Bucket = openBucket(lake)
	}
	return o
}

// base is the start of the first test request, in unix seconds: 2026-09-21 14:13:20 UTC.
const base = 1790000000.0

const baseDay = "2026-09-21"

// fields changes the fields of a test record.
type fields map[string]any

// litellm returns request i as LiteLLM logs it.
func litellm(i int, change fields) []byte {
	start := base + float64(i)*0.007
	rec := fields{
		"litellm_call_id": fmt.Sprintf("call-%04d", i), "trace_id": fmt.Sprintf("trace-%d", i/4), "call_type": "acompletion",
		"stream": true, "status": "success", "prompt_tokens": 100 + i, "completion_tokens": 10,
		"startTime": start, "endTime": start + 2, "completionStartTime": start + 0.25,
		"model": "hosted_vllm/pelican-8b", "model_group": "pelican-8b",
		"messages": []fields{{"role": "user", "content": fmt.Sprintf("How many gulls sit on pier %d?", i)}},
		"response": fields{"choices": []fields{{"message": fields{"content": "Seven."}}}, "usage": fields{"prompt_tokens": 100 + i}},
		"metadata": fields{"user_api_key_team_id": "team-harbour"},
	}
	for k, v := range change {
		if v == nil {
			delete(rec, k)
		} else {
			rec[k] = v
		}
	}
	data, err := json.Marshal(rec)
	if err != nil {
		panic(err)
	}
	return data
}

// segments reads all rows of a lake's segments, and proves that the logs have neither gap nor overlap.
func segmentRows(t testing.TB, lake string) []schemas.Request {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(local(t, lake), "_segments", "*", "g*", "p*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	next := map[string]int64{}
	var rows []schemas.Request
	for _, p := range paths {
		got, footer, err := parquetio.ReadFile[schemas.Request](p)
		if err != nil {
			t.Fatal(err)
		}
		var facts struct{ First, Next int64 }
		if err := json.Unmarshal([]byte(footer["tailgate.segment"]), &facts); err != nil {
			t.Fatal(err)
		}
		if want, ok := next[filepath.Dir(p)]; ok && want != facts.First {
			t.Errorf("%s begins at %d, want %d", p, facts.First, want)
		}
		next[filepath.Dir(p)] = facts.Next
		rows = append(rows, got...)
	}
	return rows
}

// checkComplete wants exactly the requests 0 … n−1, each once.
func checkComplete(t testing.TB, rows []schemas.Request, n int) {
	t.Helper()
	ids := map[string]int{}
	sum := 0
	for _, r := range rows {
		ids[*r.RequestID]++
		sum += int(*r.InputTokens)
	}
	if len(rows) != n || len(ids) != n {
		t.Errorf("%d rows with %d distinct ids, want %d", len(rows), len(ids), n)
	}
	if want := n*100 + (n-1)*n/2; sum != want {
		t.Errorf("sum of prompt tokens %d, want %d", sum, want)
	}
}

// memory is a Source in memory: one topic, whose records and marks a test sets.
type memory struct {
	topic     string
	parts     []ingest.Partition
	records   map[int32][]ingest.Record
	batch     int // records in a Fetch; 0 = 100
	committed map[int32]int64
	fetchErr  error
	fetches   atomic.Int64
}

func newMemory(parts ...[]ingest.Record) *memory {
	m := &memory{topic: "tides", records: map[int32][]ingest.Record{}, committed: map[int32]int64{}}
	for i, recs := range parts {
		end := int64(0)
		for j := range recs {
			recs[j].Size = int64(len(recs[j].Value))
			end = recs[j].Offset + 1
		}
		m.parts = append(m.parts, ingest.Partition{Topic: m.topic, ID: int32(i), End: end})
		m.records[int32(i)] = recs
	}
	return m
}

func (m *memory) Partitions(context.Context) ([]ingest.Partition, error) { return m.parts, nil }

func (m *memory) Fetch(_ context.Context, p ingest.Partition, from int64) (ingest.Batch, error) {
	m.fetches.Add(1)
	if m.fetchErr != nil {
		return ingest.Batch{}, m.fetchErr
	}
	if from < m.parts[p.ID].First {
		return ingest.Batch{}, ingest.ErrOutOfRange
	}
	limit := m.batch
	if limit == 0 {
		limit = 100
	}
	b := ingest.Batch{Next: from, High: p.End}
	for _, r := range m.records[p.ID] {
		if r.Offset >= from && len(b.Records) < limit {
			r.Value = bytes.Clone(r.Value)
			b.Records = append(b.Records, r)
			b.Next = r.Offset + 1
		}
	}
	if len(b.Records) == 0 {
		b.Next = p.End
	}
	return b, nil
}

func (m *memory) Commit(_ context.Context, _ string, p ingest.Partition, next int64) error {
	m.committed[p.ID] = next
	return nil
}

// message is a record at an offset.
func message(offset int64, value []byte) ingest.Record {
	return ingest.Record{Offset: offset, Value: value}
}

// run runs and wants success.
func run(t testing.TB, src ingest.Source, o ingest.Options) *ingest.Report {
	t.Helper()
	r, err := ingest.Run(t.Context(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func segmentTime(unix float64) time.Time { return time.UnixMicro(int64(unix * 1e6)).UTC() }
