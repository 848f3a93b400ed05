package ingest_test

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"tailgate/ingest"
	"tailgate/schemas"
)

// fixtureRow ingests a fixture and returns its row i in the order of its records.
func fixtureRow(t *testing.T, file string, i int) schemas.Request {
	t.Helper()
	return fixtureRows(t, file)[i]
}

// ingested are the rows of the fixtures that were asked for.
var ingested = map[string][]schemas.Request{}

func fixtureRows(t *testing.T, file string) []schemas.Request {
	t.Helper()
	if rows := ingested[file]; rows != nil {
		return rows
	}
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fixtures {
		if f.file == file {
			ingested[file] = rowsOf(t, f.format, data)
			return ingested[file]
		}
	}
	t.Fatalf("no fixture %s", file)
	return nil
}

func rowsOf(t *testing.T, format string, values ...[]byte) []schemas.Request {
	t.Helper()
	rows, _ := ingestValues(t, format, values...)
	return rows
}

func ingestValues(t *testing.T, format string, values ...[]byte) ([]schemas.Request, *ingest.Report) {
	t.Helper()
	o := options(t.TempDir())
	o.Format, o.MaxBad = format, 1
	recs := make([]ingest.Record, len(values))
	for i, v := range values {
		recs[i] = message(int64(i), bytes.Clone(v))
	}
	report := run(t, newMemory(recs), o)
	return segmentRows(t, o.Lake), report
}

// shares tells how many leading ids two rows have in common.
func shares(a, b schemas.Request) int {
	n := 0
	for n < len(a.HashIDs) && n < len(b.HashIDs) && a.HashIDs[n] == b.HashIDs[n] {
		n++
	}
	return n
}

// TestQuirks has one entry for every row of the table of gateway quirks that decoders answer for. Those of
// Kafka and of publish (offsets, codecs, late rows, duplicates) are tested with those parts.
func TestQuirks(t *testing.T) {
	for name, check := range map[string]func(t *testing.T){
		"emitted at end": func(t *testing.T) {
			r := fixtureRow(t, "cloudflare.jsonl", 0)
			want := time.Date(2026, 11, 19, 15, 6, 5, 0, time.UTC).Add(-2786 * time.Millisecond)
			if r.TQuality != schemas.TimeEndMinusDur || !r.ArrivedAt.Equal(want) {
				t.Errorf("%s %v", r.TQuality, r.ArrivedAt)
			}
			if r := fixtureRow(t, "otlp-events.json", 9); r.TQuality != schemas.TimeFirstSeen || r.DurationUs != nil {
				t.Errorf("an event without a duration: %s", r.TQuality)
			}
			if r := fixtureRow(t, "kong.jsonl", 0); r.TQuality != schemas.TimeStart {
				t.Errorf("a start: %s", r.TQuality)
			}
		},
		"retries and fallbacks": func(t *testing.T) {
			rows := fixtureRows(t, "otlp-events.json")
			if a, b := rows[5], rows[6]; a.Attempt != 0 || b.Attempt != 1 || a.ParentRequestID == nil || *a.ParentRequestID != *b.ParentRequestID {
				t.Errorf("spans: %+v and %+v", a, b)
			}
			rows = fixtureRows(t, "openai.jsonl")
			if a, b := rows[4], rows[5]; a.Attempt != 0 || b.Attempt != 1 || *a.ParentRequestID != *b.ParentRequestID {
				t.Errorf("pairs: %+v and %+v", a, b)
			}
			attempt := func(call, status string, at float64) []byte {
				return litellm(0, fields{"litellm_call_id": call, "trace_id": "trace-1", "session_id": "watch-1", "status": status, "startTime": at})
			}
			rows = rowsOf(t, "litellm", attempt("call-1", "failure", base), attempt("call-2", "success", base+1), litellm(7, nil))
			if a, b, c := rows[0], rows[1], rows[2]; a.ParentRequestID == nil || *a.ParentRequestID != *b.ParentRequestID || a.RequestKey == b.RequestKey || *a.Session != *b.Session || c.ParentRequestID != nil {
				t.Errorf("LiteLLM's attempts: %+v and %+v", a, b)
			}
			if r := fixtureRow(t, "cloudflare.jsonl", 3); r.Attempt != 1 {
				t.Errorf("a fallback step: %d", r.Attempt)
			}
		},
		"cache hits, 429 and probes never reach the engine": func(t *testing.T) {
			for _, c := range []struct {
				file, status string
				row          int
			}{
				{"litellm-spend.jsonl", schemas.StatusCacheHit, 5}, {"litellm-spend.jsonl", schemas.StatusRateLimited, 6},
				{"litellm-spend.jsonl", schemas.StatusOK, 7}, {"openai.jsonl", schemas.StatusCacheHit, 6}, {"openai.jsonl", schemas.StatusOK, 7},
				{"envoy.jsonl", schemas.StatusRateLimited, 3}, {"envoy.jsonl", schemas.StatusServerError, 4},
				{"kong.jsonl", schemas.StatusRateLimited, 2}, {"apisix.jsonl", schemas.StatusRateLimited, 1},
				{"helicone.jsonl", schemas.StatusCacheHit, 1}, {"bedrock.jsonl", schemas.StatusRateLimited, 2},
				{"cloudflare.jsonl", schemas.StatusCacheHit, 1}, {"cloudflare.jsonl", schemas.StatusRateLimited, 2},
			} {
				r := fixtureRow(t, c.file, c.row)
				if r.Status != c.status || r.ReachedEngine || r.IsProbe != (c.status == schemas.StatusOK) || r.TTFTUs != nil {
					t.Errorf("%s %d: %s, reached %v, probe %v", c.file, c.row, r.Status, r.ReachedEngine, r.IsProbe)
				}
			}
		},
		"aborted stream": func(t *testing.T) {
			for file, row := range map[string]int{"openai.jsonl": 3, "otlp-events.json": 7} {
				r := fixtureRow(t, file, row)
				if r.Status != schemas.StatusCancelled || r.OutputTokens == nil || *r.OutputTokens != 9 || r.OutputTokensSource != schemas.TokensTokenizer {
					t.Errorf("%s: %s, %v tokens of %s", file, r.Status, r.OutputTokens, r.OutputTokensSource)
				}
			}
			if r := fixtureRow(t, "envoy.jsonl", 2); r.Status != schemas.StatusCancelled || r.OutputTokens != nil || r.InputTokens != nil {
				t.Errorf("dropped usage: %s, %v, %v", r.Status, r.InputTokens, r.OutputTokens)
			}
		},
		"0 tokens with text are absent": func(t *testing.T) {
			for file, row := range map[string]int{"higress.jsonl": 2, "openinference.json": 2, "apisix.jsonl": 1} {
				if r := fixtureRow(t, file, row); r.OutputTokens != nil || r.OutputTokensSource != schemas.TokensAbsent {
					t.Errorf("%s: %v", file, r.OutputTokens)
				}
			}
			if r := fixtureRow(t, "kong.jsonl", 1); r.InputTokensSource != schemas.TokensTokenizer || r.OutputTokensSource != schemas.TokensGateway {
				t.Errorf("a stream without usage: %s, %s", r.InputTokensSource, r.OutputTokensSource)
			}
		},
		"input counts include the cache": func(t *testing.T) {
			if r := fixtureRow(t, "bedrock.jsonl", 0); *r.InputTokens != 8+26+6 || *r.CachedTokens != 26 {
				t.Errorf("bedrock: %d, %d", *r.InputTokens, *r.CachedTokens)
			}
			if r := fixtureRow(t, "openai.jsonl", 2); *r.InputTokens != 10+20+6 || *r.CachedTokens != 20 {
				t.Errorf("messages API: %d, %d", *r.InputTokens, *r.CachedTokens)
			}
		},
		"truncated, redacted and placeholder prompts share nothing behind the mark": func(t *testing.T) {
			for _, c := range []struct {
				file, state string
				row         int
			}{
				{"litellm-spend.jsonl", schemas.PromptTruncated, 8}, {"higress.jsonl", schemas.PromptTruncated, 1},
				{"kong.jsonl", schemas.PromptTruncated, 4}, {"apisix.jsonl", schemas.PromptTruncated, 2},
				{"openinference.json", schemas.PromptRedacted, 2}, {"openinference.json", schemas.PromptRedacted, 4},
			} {
				a := fixtureRow(t, c.file, c.row)
				if a.PromptState != c.state || len(a.HashIDs) != 3 {
					t.Errorf("%s %d: %s with %d ids", c.file, c.row, a.PromptState, len(a.HashIDs))
				}
				for _, other := range fixtureRows(t, c.file) {
					if other.Index != a.Index && shares(a, other) > 0 {
						t.Errorf("%s %d shares ids", c.file, c.row)
					}
				}
			}
			for file, state := range map[string]string{"helicone.jsonl": schemas.PromptExternal, "cloudflare.jsonl": schemas.PromptEncrypted, "envoy.jsonl": schemas.PromptAbsent} {
				if r := fixtureRow(t, file, 0); r.PromptState != state || r.HashIDs != nil {
					t.Errorf("%s: %s", file, r.PromptState)
				}
			}
		},
		"a body of the gateway's limit is cut": func(t *testing.T) {
			data, _ := os.ReadFile(filepath.Join("testdata", "apisix.jsonl"))
			var batch []map[string]any
			if err := json.NewDecoder(bytes.NewReader(data)).Decode(&batch); err != nil {
				t.Fatal(err)
			}
			rec := batch[0]
			body := `{"messages":[{"role":"user","content":"`
			body += strings.Repeat("fog ", (524288-len(body)-4)/4) + `"}]}`
			body = strings.Repeat(" ", 524288-len(body)) + body
			rec["request"].(map[string]any)["body"] = body
			value, _ := json.Marshal(rec)
			if r := rowsOf(t, "apisix", value)[0]; r.PromptState != schemas.PromptTruncated {
				t.Errorf("%s", r.PromptState)
			}
		},
		"images count by their bytes": func(t *testing.T) {
			image := func(data string) schemas.Request {
				source := fields{"type": "base64", "media_type": "image/png", "data": data}
				value, _ := json.Marshal(fields{"started_at": base, "response": fields{"usage": fields{"prompt_tokens": 112}}, "request": fields{"messages": []fields{{"role": "user",
					"content": []fields{{"type": "text", "text": "Which ship? " + strings.Repeat("Look. ", 30)}, {"type": "image", "source": source},
						{"type": "text", "text": strings.Repeat("Look. ", 50)}}}}}})
				return rowsOf(t, "openai", value)[0]
			}
			a, b, same := image("iVBORw0KGgo="), image("iVBORw0KGgx="), image("iVBORw0KGgo=")
			if a.PromptState != schemas.PromptFull || shares(a, b) == 0 || shares(a, b) >= 6 || shares(a, same) != 7 {
				t.Errorf("%s: %d of %d ids in common, %d with the same image", a.PromptState, shares(a, b), len(a.HashIDs), shares(a, same))
			}
			if r := image("[TRUNCATED: size placeholder]"); r.PromptState != schemas.PromptTruncated {
				t.Errorf("a placeholder: %s", r.PromptState)
			}
		},
		"cut images are no content": func(t *testing.T) {
			if r := fixtureRow(t, "openinference.json", 1); r.PromptState != schemas.PromptTruncated || *r.InputTokens != 40 {
				t.Errorf("%s", r.PromptState)
			}
		},
		"tool definitions, calls and results count": func(t *testing.T) {
			for file, row := range map[string]int{"otlp-events.json": 4, "openinference.json": 5, "litellm-spend.jsonl": 0, "bedrock.jsonl": 0, "openai.jsonl": 2} {
				if r := fixtureRow(t, file, row); *r.Class != schemas.ClassAgent {
					t.Errorf("%s: class %s", file, *r.Class)
				}
			}
		},
		"units and spellings of numbers": func(t *testing.T) {
			for file, us := range map[string]int64{"kong.jsonl": 2_786_000, "higress.jsonl": 2_786_000, "apisix.jsonl": 2_786_400,
				"vllm.json": 1_980_000, "envoy.jsonl": 2_786_000, "litellm-spend.jsonl": 2_000_000} {
				if r := fixtureRow(t, file, 0); *r.DurationUs != us {
					t.Errorf("%s: %d µs", file, *r.DurationUs)
				}
			}
			r := fixtureRow(t, "higress.jsonl", 0)
			if *r.OutputTokens != 9 || *r.HTTPStatus != 200 {
				t.Errorf("numbers in strings: %v, %v", r.OutputTokens, r.HTTPStatus)
			}
			line := fixtureLine(t, "kong.jsonl", 0)
			for _, bad := range []string{`"NaN"`, `1.5`, `-3`, `"many"`, `1e300`, `true`} {
				value := bytes.Replace(line, []byte(`"prompt_tokens": 40`), []byte(`"prompt_tokens": `+bad), 1)
				if rows, rep := ingestValues(t, "kong", value, line); len(rows) != 1 || rep.Total.Dead[ingest.DeadBadTokens]+rep.Total.Dead[ingest.DeadBadField] != 1 {
					t.Errorf("%s tokens: %+v", bad, rep.Total)
				}
			}
			value := bytes.Replace(line, []byte(`"prompt_tokens": 40`), []byte(`"prompt_tokens": 40.0`), 1)
			if r := rowsOf(t, "kong", value)[0]; *r.InputTokens != 40 {
				t.Errorf("40.0: %d", *r.InputTokens)
			}
		},
		"odd JSON": func(t *testing.T) {
			line := fixtureLine(t, "kong.jsonl", 0)
			for what, value := range map[string][]byte{
				"BOM":           append([]byte("\xef\xbb\xbf"), line...),
				"NDJSON":        append(append(bytes.Clone(line), '\n'), '\n'),
				"list":          append(append([]byte("["), line...), ']'),
				"duplicate key": append([]byte(`{"started_at": 1,`), line[1:]...),
				"invalid UTF-8": bytes.Replace(line, []byte("lamp-prod"), []byte("lamp\xff"), 1),
				"lone half":     bytes.Replace(line, []byte("lamp-prod"), []byte(`lamp\ud83d`), 1),
			} {
				if rows := rowsOf(t, "kong", value); len(rows) != 1 || rows[0].ArrivedAt.UnixMilli() != 1795100000118 {
					t.Errorf("%s: %d rows", what, len(rows))
				}
			}
			if rows := fixtureRows(t, "apisix.jsonl"); len(rows) != 4 || rows[1].Index != 1 {
				t.Errorf("batches: %d rows", len(rows))
			}
		},
		"compressed and framed values": compressedValues,
		"clock id": func(t *testing.T) {
			for _, file := range []string{"apisix.jsonl", "openai.jsonl", "otlp-events.json", "bedrock.jsonl", "cloudflare.jsonl"} {
				if r := fixtureRow(t, file, 0); r.ClockID == nil {
					t.Errorf("%s has no clock", file)
				}
			}
		},
		"resolution of the stamps": func(t *testing.T) {
			for file, us := range map[string]int64{"bedrock.jsonl": 1_000_000, "cloudflare.jsonl": 1_000_000, "kong.jsonl": 1000, "envoy.jsonl": 1000, "vllm.json": 1} {
				if r := fixtureRow(t, file, 0); r.TimeResolutionUs != us {
					t.Errorf("%s: %d µs", file, r.TimeResolutionUs)
				}
			}
		},
		"embeddings are not generations": func(t *testing.T) {
			if r := fixtureRow(t, "envoy.jsonl", 6); r.Op != schemas.OpEmbedding || *r.Class != schemas.LabelOther {
				t.Errorf("%s, %s", r.Op, *r.Class)
			}
		},
		"sampling": func(t *testing.T) {
			for _, c := range []struct {
				file string
				row  int
				want float64
			}{{"otlp-events.json", 5, 0.25}, {"otlp-events.json", 0, 1}, {"databricks.jsonl", 0, 0.5}, {"openai.jsonl", 8, 0.25}} {
				if r := fixtureRow(t, c.file, c.row); r.SampledFraction != c.want {
					t.Errorf("%s: %g", c.file, r.SampledFraction)
				}
			}
		},
		"hashes instead of text": func(t *testing.T) {
			rows := fixtureRows(t, "litellm-spend.jsonl")
			if a, b := rows[2], rows[3]; a.PromptState != schemas.PromptPrehashed || len(a.HashIDs) != 3 || shares(a, b) != 2 || shares(a, rows[0]) != 0 {
				t.Errorf("%v and %v", a.HashIDs, b.HashIDs)
			}
			if r := rows[4]; r.PromptState != schemas.PromptPrehashed || r.HashIDs != nil || *r.InputTokens != 40 {
				t.Errorf("blocks of 64: %v", r.HashIDs)
			}
		},
	} {
		t.Run(name, check)
	}
}

func fixtureLine(t *testing.T, file string, i int) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(data, []byte{'\n'})[i]
}

// glued is a value in Glue's frame, compressed.
func glued(value []byte) []byte {
	out := bytes.NewBuffer(append([]byte{3, 5}, make([]byte, 16)...))
	z := zlib.NewWriter(out)
	_, _ = z.Write(value)
	_ = z.Close()
	return out.Bytes()
}

func compressedValues(t *testing.T) {
	line := fixtureLine(t, "kong.jsonl", 0)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	good := map[string][]byte{
		"gzip": gzipped(line), "zstd": enc.EncodeAll(line, nil),
		"JSON Schema frame": append([]byte{0, 0, 0, 0, 7}, line...),
		"registry frame":    append(append([]byte{3, 0}, make([]byte, 16)...), line...),
		"zlib in a frame":   glued(line),
	}
	for what, value := range good {
		if rows := rowsOf(t, "kong", value); len(rows) != 1 {
			t.Errorf("%s: %d rows", what, len(rows))
		}
	}
	bomb := enc.EncodeAll(make([]byte, 64<<20), nil)
	bad := map[string]struct {
		value []byte
		dead  string
	}{
		"Avro frame":      {append([]byte{0, 0, 0, 0, 7}, "\x02lamp"...), ingest.DeadFramed},
		"short frame":     {[]byte{0, 1}, ingest.DeadFramed},
		"broken gzip":     {gzipped(line)[:40], ingest.DeadCompressed},
		"zstd bomb":       {bomb, ingest.DeadBomb},
		"Avro in a frame": {glued([]byte("\x02lamp")), ingest.DeadFramed},
		"no zlib":         {append([]byte{3, 5}, make([]byte, 40)...), ingest.DeadCompressed},
		"broken zlib":     {glued(line)[:60], ingest.DeadCompressed},
		"zlib bomb":       {glued(make([]byte, 40<<20)), ingest.DeadBomb},
		"gzip bomb":       {gzipped(make([]byte, 40<<20)), ingest.DeadBomb},
		"text in gzip":    {gzipped([]byte("fog")), ingest.DeadBadJSON},
		"bytes":           {[]byte("\x80\x81"), ingest.DeadBadJSON},
		"list of words":   {[]byte(`["fog"]`), ingest.DeadLayout},
	}
	for what, c := range bad {
		if rows, rep := ingestValues(t, "kong", c.value, line); len(rows) != 1 || rep.Total.Dead[c.dead] != 1 {
			t.Errorf("%s: %d rows, %+v", what, len(rows), rep.Total.Dead)
		}
	}
	o := options(t.TempDir())
	o.Format, o.ValueCodec, o.MaxBad = "kong", ingest.CodecNone, 1
	if rep := run(t, newMemory([]ingest.Record{message(0, gzipped(line)), message(1, line)}), o); rep.Total.Dead[ingest.DeadCompressed] != 1 {
		t.Errorf("codec none: %+v", rep.Total.Dead)
	}
}
