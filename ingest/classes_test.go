package ingest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/ingest"
	"tailgate/internal/yamldoc/yamltest"
)

func TestClassRules(t *testing.T) {
	rules, err := ingest.ParseClasses("classes.yaml", []byte(`
rules:
  - {class: search, route: "/v1/search*"}
  - {class: nightly, tag: ["job:*", "cron"], stream: false}
  - {class: premium, tenant: team-gold, model: ["*-70b", pelican-8b], session: true}
  - {class: mid, input_tokens: [100, 200], op: chat}
  - {class: long, input_tokens: [8192, null]}
  - class: tools
    tools: true
`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"search", "nightly", "premium", "mid", "long", "tools", "other"}, rules.Classes()); diff != "" {
		t.Error(diff)
	}
	tools := fields{"stream": true, "tools": []fields{{"function": fields{"name": "f"}}}}
	for name, c := range map[string]struct {
		change fields
		want   string
	}{
		"route":        {fields{"metadata": fields{"user_api_key_request_route": "/v1/search/9"}}, "search"},
		"tag":          {fields{"request_tags": []string{"x", "job:7"}, "stream": false}, "nightly"},
		"tag as JSON":  {fields{"request_tags": `["cron"]`, "stream": false}, "nightly"},
		"tag, stream":  {fields{"request_tags": []string{"cron"}, "prompt_tokens": 5000}, "other"},
		"tenant":       {fields{"metadata": fields{"user_api_key_team_id": "team-gold"}}, "premium"},
		"no session":   {fields{"metadata": fields{"user_api_key_team_id": "team-gold"}, "trace_id": nil}, "mid"},
		"range start":  {fields{"prompt_tokens": 100}, "mid"},
		"range end":    {fields{"prompt_tokens": 200}, "other"},
		"op":           {fields{"call_type": "aembedding"}, "other"},
		"long":         {fields{"prompt_tokens": 9000}, "long"},
		"tools":        {fields{"prompt_tokens": 500, "model_parameters": tools}, "tools"},
		"unknown size": {fields{"prompt_tokens": 0, "messages": nil}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t.TempDir())
			o.Classes = rules
			run(t, newMemory([]ingest.Record{message(0, litellm(0, c.change))}), o)
			if got := *segmentRows(t, o.Lake)[0].Class; got != c.want {
				t.Errorf("class %s, want %s", got, c.want)
			}
		})
	}
}

func TestDefaultClasses(t *testing.T) {
	for want, change := range map[string]fields{
		"agent":        {"messages": []fields{{"role": "tool", "tool_call_id": "x", "content": "1013"}}},
		"long_context": {"prompt_tokens": 8192},
		"interactive":  {"prompt_tokens": 8191},
		"batch":        {"stream": nil, "model_parameters": fields{}},
		"other":        {"stream": nil},
	} {
		if got := *one(t, change).Class; got != want {
			t.Errorf("class %s, want %s", got, want)
		}
	}
}

func TestClassFilesReportEveryFault(t *testing.T) {
	yamltest.Faults(t, func(data []byte) error {
		_, err := ingest.ParseClasses("f", data)
		return err
	}, map[string]yamltest.File{
		"many": {Text: "rules:\n  - {class: Big, tools: maybe}\n  - {class: a, op: [chat, talk]}\n  - {route: x}\n  - {class: b, colour: red}\n  - {class: c, input_tokens: [9, 3]}\n",
			Want: []string{"f:2: class must", `f:2: "maybe" is not true or false`, "f:3: op \"talk\"", "f:4: class is missing", `f:5: unknown key "colour" in a rule, use class, route`, "f:6: the range is empty"}},
		"syntax":   {Text: "rules: [\n", Want: []string{"f:1: not readable as YAML"}},
		"empty":    {Text: "", Want: []string{"f:1: the file is empty"}},
		"no rules": {Text: "classes: []\n", Want: []string{"f:1: unknown key \"classes\""}},
		"a list":   {Text: "- class: a\n", Want: []string{"f:1: a classes file must be key: value pairs"}},
		"types":    {Text: "rules:\n  - {class: a, route: [], model: {}, input_tokens: 5}\n", Want: []string{"f:2: the list is empty", "f:2: want a text", "f:2: want a range"}},
	})
}

func FuzzParseClasses(f *testing.F) {
	f.Add([]byte("rules:\n  - {class: a, input_tokens: [1, null]}\n"))
	f.Add([]byte("rules: [{class: &x a}, *x, !!str b]\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := ingest.ParseClasses("f", data)
		if (rules == nil) == (err == nil) {
			t.Fatal("want rules or an error")
		}
	})
}
