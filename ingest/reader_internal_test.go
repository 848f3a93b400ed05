package ingest

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/jsonscan"
)

// decoders decode a format in both ways: with the reader, and with the exact functions alone.
func bothDecoders(format string) (fast, exact decoder) {
	o := Options{Format: format}
	return o.decoderWith(&reader{}), o.decoderWith(&reader{exact: true})
}

func checkBoth(t *testing.T, format string, fast, exact decoder, data []byte) {
	t.Helper()
	before := bytes.Clone(data)
	want, got := exact(bytes.Clone(data)), fast(data)
	if diff := cmp.Diff(want, got, sameItems); diff != "" {
		t.Fatalf("%s: %q is decoded otherwise (-exact +reader):\n%s", format, data, diff)
	}
	if !bytes.Equal(before, data) {
		t.Fatalf("%s: the decoder changed its input %q", format, before)
	}
}

// oddParts are values to put in place of others.
var oddParts = []string{
	`null`, `""`, `"x"`, `0`, `-1`, `1.5`, `"7"`, `"1e3"`, `{}`, `[]`, `[1]`, `{"a":1}`, `true`, `"true"`, `"\ud800"`, `"\u0041"`, "\"\xff\"",
	`"{\"a\":1}"`, `"[TRUNCATED"`, `"redacted-by-litellm"`, `[{"role":"user","content":"x"}]`, `[{"content":null,"parts":[{"type":"text","content":"x"}]}]`,
	`"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"y\"}]}]"`, `{"role":"user"}`, `[{"type":"text","text":"x"}]`, `1e999`, `[null]`,
	`{"tools":[{"function":{"name":"f"}}]}`, `[{"name":"g","input_schema":{}}]`, `"2026-02-31T15:03:00.5Z"`, `"2026-11-19 15:03:00"`, `1795100000.5`,
	`{"choices":[{"message":{"content":"x"},"text":"y"}]}`, `{"content":[{"type":"text","text":"x"}],"output":{"a":1}}`, `{"error":null}`,
}

// TestReaderAgreesWithTheExactFunctions puts odd values in place of every value of every fixture.
func TestReaderAgreesWithTheExactFunctions(t *testing.T) {
	for _, c := range fuzzed {
		data, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		fast, exact := bothDecoders(c.format)
		checkBoth(t, c.format, fast, exact, data)
		n := 0
		for line := range bytes.Lines(data) {
			checkBoth(t, c.format, fast, exact, line)
			if len(line) < 100 || n > 12_000/len(line) {
				continue
			}
			for at := range values(line) {
				odd := oddParts[n%len(oddParts)]
				n += 7
				checkBoth(t, c.format, fast, exact, slices.Concat(line[:at[0]], []byte(odd), line[at[1]:]))
			}
			n %= 1000
		}
	}
}

// values yields where the strings, numbers and literals of a JSON text are, names too.
func values(data []byte) func(yield func([2]int) bool) {
	return func(yield func([2]int) bool) {
		for i := 0; i < len(data); i++ {
			if bytes.IndexByte([]byte(" \t\r\n{}[],:"), data[i]) >= 0 {
				continue
			}
			end := jsonscan.End(data, i)
			if end <= i {
				continue
			}
			if !yield([2]int{i, end}) {
				return
			}
			i = end - 1
		}
	}
}

// FuzzReader: whatever comes, the reader and the exact functions make the same of it.
func FuzzReader(f *testing.F) {
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
		l := slices.IndexFunc(layouts, func(l layout) bool { return l.format == c.format })
		if l >= 0 {
			f.Add(i, layouts[l].small(f))
		}
	}
	f.Fuzz(func(t *testing.T, which int, data []byte) {
		format := fuzzed[((which%len(fuzzed))+len(fuzzed))%len(fuzzed)].format
		fast, exact := bothDecoders(format)
		checkBoth(t, format, fast, exact, data)
	})
}

// TestLayoutsAreRead: records of every layout as the benchmarks measure them need no exact function, and both ways
// agree on them.
func TestLayoutsAreRead(t *testing.T) {
	for i := range layouts {
		l := &layouts[i]
		fast, exact := bothDecoders(l.format)
		list, _ := l.records(t, 1000, 8000, 20)
		for _, raw := range list {
			checkBoth(t, l.format, fast, exact, raw)
			if err := l.std(raw); err != nil {
				t.Errorf("%s: the baseline does not read %s: %v", l.name, raw, err)
			}
		}
		most := 16.0
		if l.format == formatAPIM { // its pieces are made for waiting
			most = 40
		}
		if n := testing.AllocsPerRun(20, func() { fast(list[0]) }); n > most {
			t.Errorf("%s: %v allocations a record: not read in one pass", l.name, n)
		}
	}
}

// A member that only the exact functions knew would get lost: each type is held to the names that the reader knows.
func TestReaderKnowsEveryMember(t *testing.T) {
	for _, c := range []struct {
		of    reflect.Type
		names *jsonscan.Fields
	}{
		{reflect.TypeFor[openAIPair](), pairMembers}, {reflect.TypeFor[envoyEntry](), envoyMembers}, {reflect.TypeFor[spendLog](), spendMembers},
		{reflect.TypeFor[spendMetadata](), spendMetaMembers}, {reflect.TypeFor[responseBody](), responseMembers}, {reflect.TypeFor[responseUsage](), countMembers},
		{reflect.TypeFor[genAIMessage](), genAIMembers}, {reflect.TypeFor[genAIPart](), genAIPartMembers}, {reflect.TypeFor[otlpExport](), exportMembers},
		{reflect.TypeFor[otlpResourceSpans](), resourceSpansMembers}, {reflect.TypeFor[otlpResourceLogs](), resourceLogsMembers},
		{reflect.TypeFor[otlpResource](), resourceMembers}, {reflect.TypeFor[otlpScopeSpans](), scopeSpansMembers}, {reflect.TypeFor[otlpScopeLogs](), scopeLogsMembers},
		{reflect.TypeFor[otlpSpan](), spanMembers}, {reflect.TypeFor[otlpEvent](), eventMembers}, {reflect.TypeFor[otlpStatus](), codeMembers},
		{reflect.TypeFor[otlpLog](), logMembers}, {reflect.TypeFor[keyValue](), pairMember}, {reflect.TypeFor[anyValue](), valueMembers},
		{reflect.TypeFor[anyArray](), listMembers}, {reflect.TypeFor[anyMap](), listMembers},
	} {
		var want []string
		for _, f := range reflect.VisibleFields(c.of) {
			if tag := f.Tag.Get("json"); tag != "" {
				want = append(want, tag)
			}
		}
		got := slices.Sorted(slices.Values(c.names.Names()))
		if slices.Sort(want); !slices.Equal(want, got) {
			t.Errorf("%v has %q, the reader knows %q", c.of, want, got)
		}
	}
	var body []string
	for _, k := range bodyPaths.keys {
		body = append(body, k.key)
	}
	if got := bodyMembers.Names(); !slices.Equal(slices.Sorted(slices.Values(body)), slices.Sorted(slices.Values(got))) {
		t.Errorf("a body has %q, the reader knows %q", body, got)
	}
}

// TestReaderForgetsTexts: a decoder that is given nothing has none of the last message left.
func TestReaderForgetsTexts(t *testing.T) {
	const secret = "wren-in-the-reeds"
	for _, c := range fuzzed {
		if strings.HasSuffix(c.file, ".binpb") {
			continue
		}
		data, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		data = bytes.ReplaceAll(data, []byte("lighthouse"), []byte(secret))
		r := &reader{}
		decode := (&Options{Format: c.format}).decoderWith(r)
		decode(data)
		arena := r.arena[:cap(r.arena)]
		decode(nil)
		if bytes.Contains(arena, []byte(secret)) {
			t.Errorf("%s: the text is still there", c.format)
		}
	}
}
