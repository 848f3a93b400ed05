package ingest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/internal/testshared"
	"tailgate/schemas"
)

// lines makes messages of the lines of fixtures.
func lines(t *testing.T, counts map[string]int) *memory {
	t.Helper()
	var recs []ingest.Record
	for _, f := range fixtures {
		for i := range counts[f.file] {
			recs = append(recs, message(int64(len(recs)), fixtureLine(t, f.file, i%3)))
		}
	}
	return newMemory(recs)
}

func TestDetectNeedsAgreement(t *testing.T) {
	for name, c := range map[string]struct {
		counts map[string]int
		format string // "" = an error
	}{
		"one format":     {map[string]int{"kong.jsonl": 20}, "kong"},
		"95 %":           {map[string]int{"kong.jsonl": 19, "envoy.jsonl": 1}, "kong"},
		"less than 95 %": {map[string]int{"kong.jsonl": 18, "envoy.jsonl": 2}, ""},
		"half and half":  {map[string]int{"litellm.jsonl": 5, "litellm-spend.jsonl": 5}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			src := lines(t, c.counts)
			d, err := ingest.DetectFormat(t.Context(), src, 0)
			if d.Format != c.format || (err == nil) != (c.format != "") {
				t.Fatalf("%+v, %v", d, err)
			}
			if err != nil && (fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "%")) {
				t.Errorf("%v", err)
			}
		})
	}
	unknown := newMemory([]ingest.Record{message(0, []byte(`{"lamp":"lit"}`))})
	if _, err := ingest.DetectFormat(t.Context(), unknown, 0); fault.Of(err) != fault.Usage || strings.Contains(err.Error(), "lit\"") {
		t.Errorf("%v", err)
	}
	if _, err := ingest.DetectFormat(t.Context(), newMemory(nil), 0); err == nil || fault.Of(err) != fault.Failure {
		t.Errorf("an empty source: %v", err)
	}
	stdin, err := ingest.OpenFiles([]string{"-"}, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.DetectFormat(t.Context(), stdin, 0); fault.Of(err) != fault.Usage {
		t.Errorf("standard input: %v", err)
	}
}

// Large messages make a smaller sample, of every partition: they are held in memory.
func TestSampleOfLargeMessages(t *testing.T) {
	large := litellm(0, fields{"messages": strings.Repeat("gulls ", 700_000)})
	var parts [2][]ingest.Record
	for i := range parts {
		for j := range 40 {
			parts[i] = append(parts[i], message(int64(j), large))
		}
	}
	src := newMemory(parts[:]...)
	src.batch = 1
	d, err := ingest.DetectFormat(t.Context(), src, 0)
	if want := 2 * (32<<20/len(large) + 1); err != nil || d.Format != "litellm" || d.Messages != want {
		t.Errorf("%d messages of %d bytes, want %d; %v", d.Messages, len(large), want, err)
	}
}

// What nests without end is shown as far as somebody may want to read it.
func TestInspectOfDeepNesting(t *testing.T) {
	name := strings.Repeat("tide_", 12)
	for _, text := range []string{
		strings.Repeat(`{"`+name+`":`, 9000) + "1" + strings.Repeat("}", 9000),
		strings.Repeat(`[`, 9000) + strings.Repeat("]", 9000),
		strings.Repeat(`[{"key":"a","value":{"b":`, 3000) + "1" + strings.Repeat("}}]", 3000),
	} {
		in, err := ingest.Inspect(t.Context(), newMemory([]ingest.Record{message(0, []byte(text))}), ingest.InspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last := in.Fields[len(in.Fields)-1]
		if last.Path != "…" || last.Count != 1 || len(in.Fields) > 600 {
			t.Errorf("%.30s: %d fields, the last %.100s", text, len(in.Fields), last.Path)
		}
		for _, f := range in.Fields {
			if len(f.Path) > 600 {
				t.Fatalf("a path of %d bytes", len(f.Path))
			}
		}
	}
}

// TestInspect shows the names of fields, what strings hold, and class shares; names that may be values are hidden.
func TestInspect(t *testing.T) {
	rules, err := ingest.ParseClasses("c.yaml", []byte("rules:\n  - {class: search, tag: '*tides*'}\n  - {class: quick, input_tokens: [0, 30]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	src := lines(t, map[string]int{"higress.jsonl": 3})
	in, err := ingest.Inspect(t.Context(), src, ingest.InspectOptions{Classes: rules})
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for _, f := range in.Fields {
		types[f.Path] += f.Type + " "
	}
	for path, want := range map[string]string{
		"start_time": "string (time) ", "response_code": "string (number) ", "ai_log": "object string (json) ",
		"ai_log.input_token": "number ", "ai_log.output_token": "number string (number) ", "ai_log.messages": "list string (json) ",
		"ai_log.messages[].content": "string ",
	} {
		if types[path] != want {
			t.Errorf("%s: %q, want %q", path, types[path], want)
		}
	}
	want := []ingest.ClassShare{{Class: "search"}, {Class: "quick", Rows: 1, Share: 1. / 3}, {Class: "other", Rows: 2, Share: 2. / 3}}
	if diff := cmp.Diff(want, in.Classes); diff != "" || in.Rows != 3 || in.Format != "higress" {
		t.Errorf("%s %d rows of %s", diff, in.Rows, in.Format)
	}
	export := newMemory([]ingest.Record{message(0, must(os.ReadFile(filepath.Join("testdata", "otlp-events.binpb"))))})
	if in, err := ingest.Inspect(t.Context(), export, ingest.InspectOptions{}); err != nil || in.Rows != 10 ||
		!slices.ContainsFunc(in.Fields, func(f ingest.FieldCount) bool {
			return f.Path == `resourceSpans[].scopeSpans[].spans[].attributes["gen_ai.request.model"]` && f.Type == "string"
		}) {
		t.Errorf("protobuf: %+v, %v", in, err)
	}
	odd := newMemory([]ingest.Record{message(0, []byte(`{"lamp@harbour.invalid":{"a sentence as a key":1},"id_12345678":2,"ok_key":[{"key":"gen_ai.x","value":{"n":1}}]}`))})
	in, err = ingest.Inspect(t.Context(), odd, ingest.InspectOptions{})
	if err != nil || in.Format != "" {
		t.Fatalf("%+v, %v", in, err)
	}
	var paths []string
	for _, f := range in.Fields {
		paths = append(paths, f.Path)
	}
	if diff := cmp.Diff([]string{"*", "*", "*.*", "ok_key", `ok_key["gen_ai.x"]`, `ok_key["gen_ai.x"].n`}, paths); diff != "" {
		t.Error(diff)
	}
}

// TestSharedExamplesOfEveryGateway reads the example of each gateway as its own format, and finds it by looking.
func TestSharedExamplesOfEveryGateway(t *testing.T) {
	arrived := map[string]int64{"helicone": 1795004803118000, "higress": 1795004803118000, "envoy": 1795004803118000,
		"bedrock": 1795004803000000, "cloudflare": 1795004802214000}
	for _, c := range []struct {
		file, format string
		rows         int
		input        int32 // 0 = not known
	}{
		{"apisix_kafka_logger_batch.json", "apisix", 2, 1822}, {"bedrock_invocation.json", "bedrock", 1, 1822},
		{"cloudflare_ai_gateway_logpush.json", "cloudflare", 1, 0}, {"envoy_ai_gateway_accesslog.json", "envoy", 1, 1822},
		{"helicone_kafka.json", "helicone", 1, 0}, {"higress_ai_log.json", "higress", 1, 1822},
		{"kong_kafka_log.json", "kong", 1, -1}, {"litellm_standard_logging.json", "litellm", 1, 1822},
		{"otel_genai_otlp.json", "otlp-json", 1, 1822}, {"otel_genai_otlp.json", "vllm", 1, 1822},
	} {
		path := testshared.Path(t, "gateway-examples/"+c.file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rows := rowsOf(t, c.format, data)
		if len(rows) != c.rows {
			t.Errorf("%s: %d rows", c.file, len(rows))
			continue
		}
		r := rows[0]
		if c.input > 0 && (r.InputTokens == nil || *r.InputTokens != c.input) || c.input == 0 && r.InputTokens != nil {
			t.Errorf("%s: %v input tokens", c.file, r.InputTokens)
		}
		if want := arrived[c.format]; want > 0 && r.ArrivedAt.UnixMicro() != want {
			t.Errorf("%s: %s", c.file, r.ArrivedAt)
		}
		if r.Status != schemas.StatusOK || !r.ReachedEngine || r.DurationUs == nil {
			t.Errorf("%s: %+v", c.file, r)
		}
		if c.format == "vllm" {
			continue // a part of the same file
		}
		src := openFiles(t, path)
		if d, err := ingest.DetectFormat(t.Context(), src, 0); err != nil || d.Format != c.format {
			t.Errorf("%s: %+v, %v", filepath.Base(path), d, err)
		}
	}
}

// TestInspectFixtures looks at the fixture of every format: the format is found where it can be, classes are
// counted, and no text or number of the log is printed.
func TestInspectFixtures(t *testing.T) {
	for _, f := range fixtures {
		t.Run(f.file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", f.file))
			if err != nil {
				t.Fatal(err)
			}
			o := ingest.InspectOptions{Classes: ingest.DefaultClasses()}
			narrow := f.format == "openinference" || f.format == "vllm"
			if narrow {
				o.Format = f.format
			}
			in, err := ingest.Inspect(t.Context(), newMemory([]ingest.Record{message(0, bytes.Clone(data))}), o)
			if err != nil {
				t.Fatal(err)
			}
			rows := int64(0)
			for _, c := range in.Classes {
				rows += c.Rows
			}
			if in.Format != f.format || in.Rows == 0 || rows != in.Rows || len(in.Fields) == 0 {
				t.Errorf("%s: %d rows, %d of a class, %d fields", in.Format, in.Rows, rows, len(in.Fields))
			}
			var text bytes.Buffer
			if err := in.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			printed, _ := json.Marshal(in)
			printed = append(printed, text.Bytes()...)
			for v := range values(data) {
				if bytes.Contains(printed, []byte(v)) {
					t.Errorf("%q is printed", v)
				}
			}
		})
	}
}

// values yields the texts of a fixture that hold a blank, and its long words and numbers with digits, but
// not the names of attributes.
func values(data []byte) func(yield func(string) bool) {
	word := regexp.MustCompile(`[A-Za-z0-9@_+/.-]*[0-9][A-Za-z0-9@_+/.-]*|[A-Z][a-z]+ [a-z]+ [a-z]+ ?[a-z]*`)
	return func(yield func(string) bool) {
		for _, w := range word.FindAllString(string(data), -1) {
			name := strings.HasPrefix(w, "gen_ai.") || strings.HasPrefix(w, "llm.") || strings.HasPrefix(w, "k8s.") || w == "inputBodyS3Path"
			if len(w) >= 7 && !name && !yield(w) {
				return
			}
		}
	}
}
