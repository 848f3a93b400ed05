package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fuzzed are the formats with a fixture to begin from.
var fuzzed = []struct{ format, file string }{
	{"litellm-spend", "litellm-spend.jsonl"}, {"otlp-json", "otlp-events.json"}, {"otlp-proto", "otlp-events.binpb"},
	{"openinference", "openinference.json"}, {"openinference", "otlp-events.binpb"}, {"vllm", "vllm.json"}, {"envoy", "envoy.jsonl"}, {"apim", "apim.jsonl"},
	{"openai", "openai.jsonl"}, {"kong", "kong.jsonl"}, {"higress", "higress.jsonl"}, {"apisix", "apisix.jsonl"},
	{"helicone", "helicone.jsonl"}, {"bedrock", "bedrock.jsonl"}, {"cloudflare", "cloudflare.jsonl"}, {"databricks", "databricks.jsonl"},
}

// FuzzFormats gives any bytes to any decoder: each ends as rows, skips or dead letters that keep the laws of
// rows, and nothing of the bytes is in an error.
func FuzzFormats(f *testing.F) {
	for i, c := range fuzzed {
		data, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, data)
		for line := range bytes.Lines(data) {
			if len(line) > 100 {
				f.Add(i, line)
			}
		}
	}
	for i := range fuzzed {
		for _, s := range []string{`{}`, `[]`, `[[]]`, `{"a":"{\"b\":"}`, "\x0a\x00", "\x0a\x02\x12\x00", "\x00\x00\x00\x00\x01{}"} {
			f.Add(i, []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, which int, data []byte) {
		format := fuzzed[((which%len(fuzzed))+len(fuzzed))%len(fuzzed)].format
		o := Options{Format: format}
		checkItems(t, o.decoder()(bytes.Clone(data)), format)
		fieldCounter{}.message(newUnwrapper(CodecAuto), data)
	})
}

// TestWalkAgreesWithEncodingJSON holds the one-pass reader of paths against the library's maps.
func TestWalkAgreesWithEncodingJSON(t *testing.T) {
	docs := []string{
		`{"a":{"b":[1,{"c":"x"},3]},"d":"{\"e\":{\"f\":[true]}}","a.b":7,"k\u0065y":null}`,
		` { "a" : { "b" : [ ] } , "d" : "{" , "a.b" : -1.5e3 } `, `{"a":1,"a":{"b":[[9]]}}`, `{"a":{"b":[1,2,3,"}]\"{"]},"d":"[1,2]"}`, `[]`, `"x"`,
	}
	paths := []string{"a", "a.b", "a.b[0]", "a.b[1].c", "a.b[-1]", "d.e.f[0]", "d[1]", `"a.b"`, "key", "x", "a.b[0][0]"}
	for _, doc := range docs {
		for _, p := range paths {
			steps, err := parsePath(p)
			if err != nil {
				t.Fatal(err)
			}
			tree := &pathTree{}
			tree.add(steps, 0)
			c := capture{values: make([]json.RawMessage, 1)}
			tree.walk(&reader{}, []byte(doc), &c)
			want, found := lookup(doc, steps)
			if (c.values[0] != nil) != found {
				t.Errorf("%s in %s: %s, want %v", p, doc, c.values[0], found)
				continue
			}
			if found {
				var got any
				if err := json.Unmarshal(c.values[0], &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s in %s: %v, want %v", p, doc, got, want)
				}
			}
		}
	}
}

// lookup is the slow way: the whole document as maps.
func lookup(doc string, steps []step) (any, bool) {
	var v any
	if json.Unmarshal([]byte(doc), &v) != nil {
		return nil, false
	}
	for _, s := range steps {
		if text, ok := v.(string); ok {
			if json.Unmarshal([]byte(text), &v) != nil {
				return nil, false
			}
		}
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[s.key]
			if !ok || s.kind != stepKey {
				return nil, false
			}
			v = next
		case []any:
			i := s.index
			if i == -1 {
				i = len(c) - 1
			}
			if s.kind != stepIndex || i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func TestPathFaults(t *testing.T) {
	for _, p := range []string{"", ".", "a.", "a..b", "a[", "a[x]", "a[-2]", `"a`, `"a"b`, `""`, "[0]x"} {
		if steps, err := parsePath(p); err == nil {
			t.Errorf("%q is read as %v", p, steps)
		}
	}
}

func TestSampledShare(t *testing.T) {
	for state, want := range map[string]float64{
		"": 0, "ot=th:0": 1, "ot=th:8": 0.5, "ot=th:c": 0.25, "a=b, ot=p:3;th:fd70a3d70a3d71": 0.01, "ot=th:": 0, "ot=th:xyz": 0,
		"ot=th:123456789012345": 0, "th:8": 0,
	} {
		if got := sampledShare([]byte(state), &attributes{}); got < want*0.999999 || got > want*1.000001 {
			t.Errorf("%q: %g, want %g", state, got, want)
		}
	}
	rate := number{v: 20, set: true}
	if got := sampledShare(nil, newAttributes([]keyValue{{Key: text("SampleRate"), Value: anyValue{Int: rate}}})); got != 0.05 {
		t.Errorf("a sample rate of 20: %g", got)
	}
}

// TestDetectFixtures: every fixture is found by looking, and only its own format fits.
func TestDetectFixtures(t *testing.T) {
	for _, c := range append(fuzzed, struct{ format, file string }{"litellm", "litellm.jsonl"}) {
		want := c.format
		if want == "openinference" || want == "vllm" { // parts of the same layout
			want = map[bool]string{true: "otlp-proto", false: "otlp-json"}[strings.HasSuffix(c.file, "binpb")]
		}
		data, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		values := [][]byte{data}
		if strings.HasSuffix(c.file, ".jsonl") {
			values = bytes.Split(bytes.TrimSpace(data), []byte{'\n'})
		}
		if d := detect(values); d.Format != want {
			t.Errorf("%s: %s, want %s", c.file, d.String(), want)
		}
	}
}
