package ingest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"tailgate/internal/jsonscan"
)

// randomRecords writes LiteLLM records in which most members have the shape that they should have, and some any
// other one.
type randomRecords struct{ *rand.Rand }

// scalars are values for any place; rarities are what is hardly ever there.
var scalars = []string{
	`null`, `true`, `false`, `0`, `-0`, `7`, `1.5`, `-1`, `1e3`, `1795000003.118204`, `1e400`, `""`, `"x"`, `"a\n\"b\\"`, `"é"`, `"\u00e9\ud83d\udea2"`,
	`"\ud800"`, "\"\xff\"", "\"a\tb\"", `"{}"`, `"True"`, `"false"`, `"None"`, `"5"`, `"data:image/png;base64,AA"`, `"data:[TRUNCATED: 5]"`, `"<7 tokens>"`,
	`"redacted-by-litellm"`, `"user"`, `"text"`, `"image_url"`, `"input_audio"`, `"file"`, `"success"`, `"failure"`, `"acompletion"`,
}

var rarities = []string{`[]`, `{}`, `[1]`, `{"a":1}`, `["x"]`, `[null]`, `[{}]`, `tru`, `01`, `"`, ``}

func (r randomRecords) one(values ...string) string { return values[r.IntN(len(values))] }

// object has some of the members of f, seldom one twice, spelled otherwise or unknown.
func (r randomRecords) object(f *jsonscan.Fields) string {
	var members []string
	for _, name := range f.Names() {
		if r.IntN(2) == 0 {
			members = append(members, fmt.Sprintf(`"%s":%s`, name, r.value(name)))
		}
	}
	if r.IntN(8) == 0 {
		name := r.one(f.Names()...)
		odd := r.one(name, strings.ToUpper(name), "unknown", `\u00`+fmt.Sprintf("%02x", name[0])+name[1:], "ſ"+name, "")
		members = append(members, fmt.Sprintf(`"%s":%s`, odd, r.value(name)))
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return r.one("{", "{", "{ ", "{\n") + strings.Join(members, r.one(",", ",", ", ", " ,\n")) + "}"
}

func (r randomRecords) list(one func() string) string {
	items := make([]string, r.IntN(4))
	for i := range items {
		items[i] = one()
	}
	return "[" + strings.Join(items, ",") + "]"
}

// value is one for the member of this name.
func (r randomRecords) value(name string) string {
	of := func(f *jsonscan.Fields) func() string { return func() string { return r.object(f) } }
	shapes := map[string]func() string{
		"startTime": func() string { return "1795000003.118204" }, "endTime": func() string { return "1795000004" },
		"completionStartTime": func() string { return "1795000003.5" }, "status": func() string { return r.one(`"success"`, `"failure"`) },
		"prompt_tokens": func() string { return "40" }, "completion_tokens": func() string { return r.one("0", "9") },
		"messages": func() string { return r.list(of(messageMembers)) }, "content": func() string { return r.one(`"x"`, r.list(of(partMembers))) },
		"tool_calls": func() string { return r.list(of(toolCallMembers)) }, "function": of(functionMembers), "function_call": func() string { return "null" },
		"tools": func() string { return r.list(of(toolMembers)) }, "functions": func() string { return r.one("null", r.list(of(toolMembers))) },
		"response": of(answerMembers), "choices": func() string { return r.list(of(choiceMembers)) }, "message": of(saidMembers), "usage": of(usageMembers),
		"usage_object": of(usageMembers), "prompt_tokens_details": of(cachedMembers), "completion_tokens_details": of(reasoningMembers),
		"model_parameters": of(parametersMembers), "metadata": of(metadataMembers), "status_fields": of(statusMembers), "error_information": of(errorMembers),
		"request_tags": func() string { return r.list(func() string { return r.one(`"a"`, "null") }) }, "image_url": of(imageMembers), "input_audio": of(audioMembers),
		"file": of(fileMembers), "type": func() string { return r.one(`"text"`, `"image_url"`, `"input_audio"`, `"file"`, `"other"`) },
		"stream": func() string { return r.one("true", "false", "null") }, "cache_hit": func() string { return r.one("false", "null") },
		"cached_tokens": func() string { return "8" }, "reasoning_tokens": func() string { return "1" }, "cache_read_input_tokens": func() string { return "8" },
		"parameters": func() string { return `{"type":"object"}` }, "arguments": func() string { return r.one(`"{\"a\":1}"`, `{"a":1}`) },
		"output": func() string { return r.one("null", `[{"x":1}]`) }, "toolSpec": func() string { return "null" }, "input_schema": func() string { return "null" },
	}
	shape := shapes[name]
	switch {
	case r.IntN(40) == 0:
		return r.one(rarities...)
	case r.IntN(15) == 0:
		return r.one(scalars...)
	case shape == nil:
		return r.one(`"x"`, `"a\nb"`, `"é\u00e9"`, `""`)
	}
	return shape()
}

func (r randomRecords) message() string {
	record := func() string {
		s := r.object(payloadMembers)
		if strings.Contains(s, `"startTime"`) || r.IntN(4) == 0 {
			return s
		}
		return strings.TrimSuffix(s, "}") + `,"startTime":1795000003.5}`
	}
	switch r.IntN(10) {
	case 0:
		return r.list(record)
	case 1:
		return record() + r.one("\n", "\n\n", " ", "") + record() + r.one("", "\n", "x")
	}
	return r.one("", "", " ") + record() + r.one("", "", "\n", "}")
}

// TestScannerOnRandomRecords compares both decoders on records that are right in most of their members.
func TestScannerOnRandomRecords(t *testing.T) {
	n := 2000
	if os.Getenv("TAILGATE_PROVE") == "full" {
		n = 100_000
	}
	r := randomRecords{rand.New(rand.NewPCG(7, 41))}
	l := newLiteLLMScanner()
	accepted := 0
	for range n {
		if checkSame(t, l, []byte(r.message())) {
			accepted++
		}
	}
	if accepted < n/20 || accepted > n*9/10 {
		t.Errorf("%d of %d records are ordinary: the generator misses its aim", accepted, n)
	}
	t.Logf("%d of %d records are ordinary", accepted, n)
}
