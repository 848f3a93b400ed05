package ingest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tailgate/ingest"
	"tailgate/schemas"
)

// apimMessages are the lines of the fixture, each a message, and four that are dead letters.
func apimMessages(t *testing.T) (recs []ingest.Record) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "apim.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		recs = append(recs, message(int64(len(recs)), bytes.TrimSpace(bytes.Clone(line))))
	}
	for _, bad := range []string{
		`{"CorrelationId":"corr-7","SequenceNumber":0,"PromptTokens":40}`, `{"correlation":"no"}`,
		`{"TimeGenerated":"2026-11-19T15:08:08Z","CorrelationId":"corr-8","SequenceNumber":0,"PromptTokens":"many"}`,
		`{"TimeGenerated":"2026-11-19T15:08:09Z","CorrelationId":"corr-9","SequenceNumber":0,"PromptTokens":40.5}`,
	} {
		recs = append(recs, message(int64(len(recs)), []byte(bad)))
	}
	return recs
}

// Rows of one request are joined whatever lies between them and in which order they come, and every offset ends as
// one thing.
func TestPiecesAreJoined(t *testing.T) {
	o := options(t.TempDir())
	o.Format, o.MaxBad = "apim", 1
	report := run(t, newMemory(apimMessages(t)), o)
	rows := segmentRows(t, o.Lake)
	byOffset := map[int64]schemas.Request{}
	for _, r := range rows {
		byOffset[r.Offset] = r
	}
	if a, b := byOffset[0], byOffset[1]; len(rows) != 6 || shares(a, b) == 0 || *a.DurationUs != 2_786_000 || *b.DurationUs != 2_786_000 || a.PromptState != schemas.PromptFull ||
		*b.OutputTokens != 9 || !*b.Stream || a.Tenant == nil || a.HTTPStatus == nil {
		t.Errorf("%d rows, %+v and %+v", len(rows), a, b)
	}
	if r := byOffset[4]; r.PromptState != schemas.PromptTruncated || len(r.HashIDs) != 3 || r.DurationUs != nil || shares(r, byOffset[0]) != 0 {
		t.Errorf("a piece is missing: %+v", r)
	}
	if r := byOffset[6]; r.Op != schemas.OpEmbedding || *r.DurationUs != 31_000 || *r.Stream {
		t.Errorf("an export: %+v", r)
	}
	if r := byOffset[8]; r.Status != schemas.StatusRateLimited || r.ReachedEngine {
		t.Errorf("429: %+v", r)
	}
	if r := byOffset[10]; r.Status != schemas.StatusCacheHit || r.ReachedEngine {
		t.Errorf("cache: %+v", r)
	}
	total := report.Total
	want := map[string]int64{ingest.DeadMissingTime: 1, ingest.DeadLayout: 1, ingest.DeadBadField: 1, ingest.DeadBadTokens: 1}
	for reason, n := range want {
		if total.Dead[reason] != n {
			t.Errorf("%s: %d, want %d", reason, total.Dead[reason], n)
		}
	}
	if total.Skips[ingest.SkipJoined] != 10 || total.Skips[ingest.SkipNotGeneration] != 1 {
		t.Errorf("skips %v", total.Skips)
	}
	if total.Messages != 6 || total.DeadMessages != 4 || total.SkippedMessages != 7 {
		t.Errorf("%+v", total)
	}
}

// TestPiecesAcrossSegments cuts the log at every offset: no request is lost, and the rows of one that was cut have
// one key, so that publish makes one of them.
func TestPiecesAcrossSegments(t *testing.T) {
	recs := apimMessages(t)
	for cut := 1; cut < len(recs); cut++ {
		o := options(t.TempDir())
		o.Format, o.MaxBad, o.RotateRows = "apim", 1, 1_000_000
		first := newMemory(recs[:cut])
		run(t, first, o)
		run(t, newMemory(recs), o)
		keys := map[int64]bool{}
		for _, r := range segmentRows(t, o.Lake) {
			keys[r.RequestKey] = true
		}
		if len(keys) != 6 {
			t.Errorf("cut at %d: %d requests, want 6", cut, len(keys))
		}
	}
}

// TestJoinerIsBounded: more open requests than may wait become rows, each once.
func TestJoinerIsBounded(t *testing.T) {
	const n = 25_000
	var value bytes.Buffer
	value.WriteByte('[')
	for i := range n {
		if i > 0 {
			value.WriteByte(',')
		}
		fmt.Fprintf(&value, `{"TimeGenerated":"2026-11-19T15:08:00Z","CorrelationId":"c%d","SequenceNumber":0,"PromptTokens":16,"CompletionTokens":1,"ModelName":"m"}`, i)
	}
	value.WriteByte(']')
	o := options(t.TempDir())
	o.Format = "apim"
	report := run(t, newMemory([]ingest.Record{message(0, value.Bytes()), message(1, []byte(`{"TimeGenerated":"2026-11-19T15:08:00Z","CorrelationId":"c0","SequenceNumber":1,"RequestMessages":"x"}`))}), o)
	if got := report.Total; got.Rows != n || got.Messages != 1 || got.SkippedMessages != 1 || got.Skips[ingest.SkipJoined] != 1 {
		t.Errorf("%+v", got)
	}
}
