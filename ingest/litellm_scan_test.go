package ingest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tailgate/internal/jsonscan"
	"tailgate/internal/samplelogs"
)

// sameItems compares what two decoders gave, field by field; an empty text and none are one.
var sameItems = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty(),
	cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal)),
}

func exactLiteLLM(value []byte) []item { return decodeEach(value, decodeLiteLLM) }

// litellmWith is an ordinary record with some members put in place of others.
func litellmWith(members string) string {
	return `{"id":"a","litellm_call_id":"c-1","call_type":"acompletion","status":"success","startTime":1795000003.118204,` +
		`"endTime":1795000005.5,"completionStartTime":1795000003.4,"prompt_tokens":40,"completion_tokens":9,"model":"m",` + members + `}`
}

// Records that the scanner reads by itself, and odd ones that it leaves to the exact decoder.
var (
	plainRecords = []string{
		litellmWith(`"stream":true,"messages":"Count.","response":"One."`),
		litellmWith(`"stream":"True","messages":[{"role":"user","content":"caf\u00e9 \ud83d\udea2\n"}],"response":{"choices":[{"message":{"content":""}}]}`),
		litellmWith(`"messages":["a","","{}",{"role":"user","content":[{"type":"text","text":"x"},{"text":"y"},{"type":"refusal","refusal":"no"}]}]`),
		litellmWith(`"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"image_url":"https://x.invalid","type":"image"},` +
			`{"type":"input_audio","input_audio":{"data":"AA=="}},{"type":"file","file":{"file_data":"[TRUNCATED: 5]"}},{"type":"input_file"}]}]`),
		litellmWith(`"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"t1","function":{"name":"f","arguments":"{\"a\":1}"}},` +
			`{"id":"t2","function":{"arguments":{"a": [1]}}},{"id":"t3","function":null}]},{"role":"tool","tool_call_id":"t1","name":"f","content":"5"}]`),
		litellmWith(`"model_parameters":{"stream":true,"cache_salt":"s\n","tools":[{"function":{"name":"f","description":"d","parameters":{"a": 1}}},` +
			`{"name":"g","parameters":[]},{"function":null,"name":"h","description":null}]},"messages":[{"role":"odd role","content":"x"}]`),
		litellmWith(`"model_parameters":{"functions":[{"name":"g"}],"tools":null},"messages":"x"`),
		litellmWith(`"model_parameters":"none","metadata":null,"request_tags":["a\"",null,""],"session_id":17,"trace_id":"t\u0031"`),
		litellmWith(`"metadata":{"user_api_key_team_id":"t","user_api_key_alias":"litellm-internal-health-check","usage_object":{"prompt_tokens_details":{"cached_tokens":8}}}`),
		litellmWith(`"response":{"usage":{"cache_read_input_tokens":4,"completion_tokens_details":{"reasoning_tokens":1}},"output":[{"x":1}]}`),
		litellmWith(`"error_information":{"error_code":429,"error_class":"RateLimitError"},"status_fields":{"guardrail_status":"blocked"},"cache_hit":"None"`),
		litellmWith(`"messages":"redacted-by-litellm","cache_hit":true`), litellmWith(`"messages":null,"response":null`),
		litellmWith(`"unknown":{"deep":[[[{"\u0069d":"\ud800"}]]],"id":"x"},"Unknown":1,"unknown":2`),
		litellmWith(`"messages":"x"`) + "\n" + litellmWith(`"messages":"y"`) + "\n",
		"[" + litellmWith(`"messages":"x"`) + " , " + litellmWith(`"messages":"y"`) + "]",
		"{\n\"startTime\": 1795000003,\n\"messages\": [ ]\n}\r\n",
	}
	oddRecords = []string{
		litellmWith(`"\u0069d":"b"`), litellmWith(`"ID":"b"`), litellmWith(`"id":"b"`), litellmWith(`"starttime":1`), litellmWith("\"me\u017f\u017fages\":\"x\""),
		litellmWith(`"messages":"x","messages":"y"`), litellmWith(`"messages":"\ud800"`), litellmWith(`"messages":"\udc00\ud800"`), litellmWith("\"messages\":\"\xff\""),
		litellmWith("\"messages\":\"a\nb\""), litellmWith(`"messages":"\x"`), litellmWith(`"messages":[1,2]`), litellmWith(`"messages":[[1]]`), litellmWith(`"messages":5`),
		litellmWith(`"messages":{"role":"user","content":"x"}`), litellmWith(`"messages":{}`), litellmWith(`"messages":[{"type":"function_call_output","output":"x"}]`),
		litellmWith(`"messages":[{"role":"user","content":{"a":1}}]`), litellmWith(`"messages":[{"role":3}]`), litellmWith(`"messages":[null]`), litellmWith(`"messages":[{"role":"u","content":[5]}]`),
		litellmWith(`"messages":[{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}]`), litellmWith(`"messages":[{"role":"u","content":[{"type":"text","text":5}]}]`),
		litellmWith(`"messages":[{"role":"u","content":[{"type":"input_audio","input_audio":"x"}]}]`), litellmWith(`"messages":[{"role":"u","content":[{"type":"image","image_url":5}]}]`),
		litellmWith(`"messages":[{"role":"u","tool_calls":[{"id":5}]}]`), litellmWith(`"messages":[{"role":"u","tool_calls":[null]}]`), litellmWith(`"messages":[{"role":"u","tool_calls":{}}]`),
		litellmWith(`"model_parameters":{"tools":"redacted-by-litellm"},"messages":"x"`), litellmWith(`"model_parameters":{"tools":{}},"messages":"x"`),
		litellmWith(`"model_parameters":{"tools":[],"functions":[{"name":"g"}]},"messages":"x"`), litellmWith(`"model_parameters":{"functions":[{"name":"g"}],"tools":[{"name":"h"}]},"messages":"x"`),
		litellmWith(`"model_parameters":{"cache_salt":5}`), litellmWith(`"model_parameters":{"tools":[null]},"messages":"x"`),
		litellmWith(`"model_parameters":{"tools":[{"name":"g","parameters":null}]},"messages":"x"`), litellmWith(`"model_parameters":{"tools":[{"name":"g","input_schema":{}}]},"messages":"x"`),
		litellmWith(`"response":5`), litellmWith(`"response":[]`), litellmWith(`"response":{"choices":[null]}`), litellmWith(`"response":{"choices":{"a":1}}`), litellmWith(`"response":{"usage":5}`),
		litellmWith(`"response":{"usage":{"prompt_tokens_details":{"cached_tokens":"5"}}}`), litellmWith(`"request_tags":"[\"a\"]"`), litellmWith(`"request_tags":[5]`), litellmWith(`"request_tags":{}`),
		litellmWith(`"metadata":[]`), litellmWith(`"metadata":{"user_api_key_hash":{}}`), litellmWith(`"stream":"yes"`), litellmWith("\"cache_hit\":\"fal\u017fe\""), litellmWith(`"stream":1`),
		litellmWith(`"status_fields":"x"`), litellmWith(`"error_information":5`), litellmWith(`"session_id":[]`), litellmWith(`"call_type":5`),
		`{"startTime":"1795000003.5","prompt_tokens":"7","messages":"x"}`, `{"startTime":1795000003,"prompt_tokens":-1}`, `{"startTime":1795000003,"prompt_tokens":1.5}`,
		`{"startTime":1e999}`, `{"startTime":-1}`, `{"startTime":1e12}`, `{"status":"success"}`, `{}`, `[]`, `null`, `""`, ``, `{"startTime":1795000003`, `{"startTime":01795000003}`,
		`{"startTime":1795000003} x`, `{"startTime":1795000003} {"startTime":1795000003}`, "{\"startTime\":1795000003}\n{\"startTime\":17950", "{\"startTime\":1795000003}\n{\n\"startTime\":1795000003}",
		"{\n\"startTime\":1795000003}\n{\"startTime\":1795000003}", `[{"startTime":1795000003},5]`, `[{"startTime":1795000003},{"startTime":"x"}]`, `[{"startTime":1795000003},]`, `[[{"startTime":1795000003}]]`,
		"\ufeff" + litellmWith(`"messages":"x"`), "\v" + litellmWith(`"messages":"x"`), "\x00{}", "\x1f\x8b",
		litellmWith(`"deep":` + strings.Repeat("[", 70) + strings.Repeat("]", 70)), litellmWith(`"deep":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001)),
	}
)

// checkSame decodes data both ways and tells whether the scanner took it.
func checkSame(t *testing.T, l *litellmScanner, data []byte) (accepted bool) {
	t.Helper()
	want := exactLiteLLM(bytes.Clone(data))
	l.reset(len(data))
	accepted = l.message(data)
	if accepted {
		for _, it := range l.items {
			if !json.Valid(it.raw) {
				t.Fatalf("the scanner reads %q", it.raw)
			}
		}
		if diff := cmp.Diff(want, l.items, sameItems); diff != "" {
			t.Fatalf("the scanner reads %q otherwise (-exact +scanner):\n%s", data, diff)
		}
	}
	if diff := cmp.Diff(want, l.decode(data), sameItems); diff != "" {
		t.Fatalf("%q is decoded otherwise (-exact +decoder):\n%s", data, diff)
	}
	return accepted
}

func TestScannerAgreesWithTheExactDecoder(t *testing.T) {
	l := newLiteLLMScanner()
	for _, s := range plainRecords {
		if !checkSame(t, l, []byte(s)) {
			t.Errorf("not read by the scanner: %s", s)
		}
	}
	for _, s := range oddRecords {
		if checkSame(t, l, []byte(s)) && s != "" {
			t.Errorf("read by the scanner: %s", s)
		}
	}
	fixtures, err := os.ReadFile(filepath.Join("testdata", "litellm.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, l, fixtures)
	for line := range bytes.Lines(fixtures) {
		checkSame(t, l, line)
	}
}

// Every record of a gateway in good order is ordinary.
func TestScannerReadsTheSampleLogs(t *testing.T) {
	l := newLiteLLMScanner()
	seen, odd := 0, 0
	for _, data := range sampleRecords(t, 10*time.Minute) {
		seen++
		if !checkSame(t, l, data) {
			odd++
		}
	}
	if seen < 100 || odd > 0 {
		t.Errorf("%d of %d records are odd", odd, seen)
	}
}

// FuzzLiteLLMScanner: what the scanner accepts, the exact decoder reads alike; what it does not, too.
func FuzzLiteLLMScanner(f *testing.F) {
	for _, s := range slices.Concat(plainRecords, oddRecords) {
		if len(s) < 10_000 {
			f.Add([]byte(s))
		}
	}
	fixtures, err := os.ReadFile(filepath.Join("testdata", "litellm.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(fixtures) {
		f.Add(line)
	}
	l := newLiteLLMScanner()
	f.Fuzz(func(t *testing.T, data []byte) { checkSame(t, l, data) })
}

// A member that only the exact decoder knew would get lost. Each type is held to the names that the scanner reads.
func TestScannerKnowsEveryMember(t *testing.T) {
	payload := reflect.TypeFor[litellmPayload]()
	within := func(t reflect.Type, path ...string) reflect.Type {
		for _, name := range path {
			f, _ := t.FieldByName(name)
			t = f.Type
			for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
				t = t.Elem()
			}
		}
		return t
	}
	usage, part := within(payload, "Metadata", "Usage"), reflect.TypeFor[openAIPart]()
	answer := reflect.TypeFor[litellmAnswer]()
	for _, c := range []struct {
		of    reflect.Type
		names *jsonscan.Fields
	}{
		{payload, payloadMembers}, {within(payload, "Metadata"), metadataMembers}, {within(payload, "StatusFields"), statusMembers},
		{within(payload, "Error"), errorMembers}, {usage, usageMembers}, {within(usage, "PromptDetails"), cachedMembers},
		{within(usage, "CompletionDetails"), reasoningMembers}, {answer, answerMembers}, {within(answer, "Choices"), choiceMembers},
		{within(answer, "Choices", "Message"), saidMembers}, {reflect.TypeFor[litellmParameters](), parametersMembers},
		{reflect.TypeFor[openAIMessage](), messageMembers}, {reflect.TypeFor[openAIToolCall](), toolCallMembers},
		{reflect.TypeFor[openAIFunction](), functionMembers}, {part, partMembers}, {within(part, "InputAudio"), audioMembers},
		{within(part, "File"), fileMembers}, {reflect.TypeFor[openAITool](), toolMembers},
	} {
		var want []string
		for _, f := range reflect.VisibleFields(c.of) {
			if tag := f.Tag.Get("json"); tag != "" {
				want = append(want, tag)
			}
		}
		for _, name := range want {
			if !slices.Contains(c.names.Names(), name) {
				t.Errorf("%v: the scanner does not know %q", c.of, name)
			}
		}
		if len(want) == 0 {
			t.Errorf("%v has no members: the test looks at the wrong type", c.of)
		}
	}
}

// TestScannerForgetsTexts: clearing the prompts, as the worker does, leaves no text in the arena, and the next
// message leaves nothing else.
func TestScannerForgetsTexts(t *testing.T) {
	const secret = "wren-in-the-reeds"
	l := newLiteLLMScanner()
	data := litellmWith(`"trace_id":"\u0077ren-in-the-reeds","messages":[{"role":"user","content":"` + secret + `\n"},{"role":"user","content":[{"type":"text","text":"` + secret + `"}]}],` +
		`"model_parameters":{"tools":[{"name":"f","description":"` + secret + `","parameters":{"a":"` + secret + `"}}]}`)
	items := l.decode([]byte(data))
	if n := bytes.Count(l.arena, []byte(secret)); len(items) != 1 || n != 5 {
		t.Fatalf("%d items, %d times", len(items), n)
	}
	items[0].rec.prompt.Clear()
	if n := bytes.Count(l.arena, []byte(secret)); n != 1 {
		t.Errorf("%d times after clearing, want only the session", n)
	}
	arena := l.arena[:cap(l.arena)]
	l.decode([]byte(`{}`))
	if bytes.Contains(arena, []byte(secret)) {
		t.Error("the text is still there")
	}
	l.decode([]byte(`{"messages":"` + secret + `\n\x"}`))
	if bytes.Contains(arena, []byte(secret)) {
		t.Error("the text of a broken record is still there")
	}
}

func TestScannerKeepsLittle(t *testing.T) {
	l := newLiteLLMScanner()
	l.decode([]byte(litellmWith(`"messages":[` + strings.Repeat(`"x",`, 2*keepItems) + `"` + strings.Repeat("y", keepArena) + `"]`)))
	if len(l.items) != 1 {
		t.Fatal("not decoded")
	}
	l.decode([]byte(`{}`))
	l.decode([]byte(`{}`))
	if cap(l.arena) > keepArena || cap(l.parts) > keepItems {
		t.Errorf("an arena of %d bytes and %d parts are kept", cap(l.arena), cap(l.parts))
	}
}

// sampleRecords makes LiteLLM records of the sample logs.
func sampleRecords(tb testing.TB, d time.Duration) (list [][]byte) {
	tb.Helper()
	err := samplelogs.Generate(samplelogs.Options{Seed: 3, Duration: d}, func(r samplelogs.Record) error {
		if r.Topic == samplelogs.TopicLiteLLM {
			list = append(list, r.Value)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

// benchRecords picks sample records between lo and hi bytes.
func benchRecords(b *testing.B, lo, hi int) (list [][]byte, mean int) {
	total := 0
	for _, r := range sampleRecords(b, 2*time.Hour) {
		if len(r) >= lo && len(r) <= hi && len(list) < 200 {
			list = append(list, r)
			total += len(r)
		}
	}
	if len(list) < 20 {
		b.Fatalf("%d records", len(list))
	}
	return list, total / len(list)
}

// sizes of the benchmarks' records: about 4 KB, and conversations of many turns.
var sizes = []struct {
	name   string
	lo, hi int
}{{"4KB", 3300, 4900}, {"long", 16 << 10, 64 << 10}}

func benchDecode(b *testing.B, decode decoder) {
	for _, s := range sizes {
		b.Run("size="+s.name, func(b *testing.B) {
			list, mean := benchRecords(b, s.lo, s.hi)
			b.SetBytes(int64(mean))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				items := decode(list[i%len(list)])
				if len(items) != 1 || items[0].rec == nil {
					b.Fatal("not decoded")
				}
				items[0].rec.prompt.Clear()
			}
		})
	}
}

func BenchmarkLiteLLMScan(b *testing.B)  { benchDecode(b, newLiteLLMScanner().decode) }
func BenchmarkLiteLLMExact(b *testing.B) { benchDecode(b, exactLiteLLM) }

// TestScannerAllocatesNothing: in steady state a record costs less than one allocation in a hundred.
func TestScannerAllocatesNothing(t *testing.T) {
	l := newLiteLLMScanner()
	list := sampleRecords(t, 10*time.Minute)
	for _, r := range list {
		l.decode(r)
	}
	i := 0
	n := testing.AllocsPerRun(10*len(list), func() {
		l.decode(list[i%len(list)])
		i++
	})
	if n > 0 {
		t.Errorf("%v allocations a record", n)
	}
	if !json.Valid(list[0]) {
		t.Error("the scanner changed its input")
	}
}
