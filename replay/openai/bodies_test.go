package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/replay"
	"tailgate/replay/openai"
	"tailgate/replay/transporttest"
	"tailgate/schemas"
)

// posted sends one call over a client and returns what the target got. It comes over a channel, since the detector of races
// sees no order in what goes over the sockets of a transport of our own.
func posted(t *testing.T, o openai.Options, call *replay.Call) (path, body string, header http.Header) {
	t.Helper()
	type request struct {
		path, body string
		header     http.Header
	}
	got := make(chan request, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.ContentLength != int64(len(b)) {
			t.Errorf("content length %d of %d", r.ContentLength, len(b))
		}
		got <- request{r.URL.Path, string(b), r.Header}
		transporttest.Events(w, 1, time.Microsecond)
	}))
	defer srv.Close()
	o.Targets = []string{srv.URL}
	if o.Prompts == nil {
		o.Prompts = &replay.Prompts{BlockSize: 4}
	}
	cl := client(t, o)
	defer cl.Close()
	call.Zero, call.Outcome = time.Now(), replay.NewOutcome()
	done := make(chan struct{})
	cl.Send(t.Context(), call, func(*replay.Call) { close(done) })
	<-done
	r := <-got
	if !json.Valid([]byte(r.body)) {
		t.Errorf("not JSON: %s", r.body)
	}
	return r.path, r.body, r.header
}

func text(s string) *string { return &s }

func TestBodiesOfEveryEngine(t *testing.T) {
	n := int32(7)
	row := schemas.TraceRow{Row: 3, InputTokens: 6, HashIDs: []int64{1, 2}, OutputTokens: &n}
	p := &replay.Prompts{BlockSize: 4}
	ids, words, forced := promptIDs(p, &row), string(p.AppendText(nil, &row)), string(p.AppendAnswer(nil, &row, 7))
	message := `[{"role":"user","content":"` + words + `"}]`
	all := `,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`
	usage := `,"stream":true,"stream_options":{"include_usage":true}`
	pinned := `,"max_tokens":7,"min_tokens":7,"ignore_eos":true`
	for _, c := range []struct {
		name, engine, api, output, path, want string
	}{
		{"vllm, pinned", "vllm", openai.APICompletions, replay.OutputPinned, "/v1/completions", `{"prompt":` + ids + pinned + all + "}"},
		{"vllm chat", "vllm", openai.APIChat, "", "/v1/chat/completions", `{"messages":` + message + `,"max_tokens":7` + all + "}"},
		{"vllm responses", "vllm", openai.APIResponses, "", "/v1/responses", `{"input":` + message + `,"max_output_tokens":7,"stream":true,"store":false}`},
		{"vllm generate, forced", "vllm", openai.APIGenerate, replay.OutputForced, "/inference/v1/generate",
			`{"token_ids":` + ids + `,"sampling_params":{"max_tokens":7,"trace_decode_token_ids":[` + forced + `]}` + all + "}"},
		{"sglang", "sglang", openai.APICompletions, "", "/v1/completions", `{"prompt":` + ids + `,"max_tokens":7` + all + "}"},
		{"trtllm, pinned", "trtllm", openai.APIChat, replay.OutputPinned, "/v1/chat/completions", `{"messages":` + message + pinned + all + "}"},
		{"tgi has no token ids, no pin", "tgi", openai.APICompletions, replay.OutputPinned, "/v1/completions", `{"prompt":"` + words + `","max_tokens":7` + usage + "}"},
		{"llama.cpp, pinned as far as it goes", "llamacpp", openai.APICompletions, replay.OutputPinned, "/v1/completions",
			`{"prompt":` + ids + `,"max_tokens":7,"ignore_eos":true` + usage + "}"},
		{"openai", "openai", openai.APIChat, "", "/v1/chat/completions", `{"messages":` + message + `,"max_completion_tokens":7` + usage + "}"},
		{"openai responses", "openai", openai.APIResponses, "", "/v1/responses", `{"input":` + message + `,"max_output_tokens":7,"stream":true,"store":false}`},
		{"unknown", "", openai.APICompletions, replay.OutputPinned, "/v1/completions", `{"prompt":` + ids + pinned + usage + "}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, body, _ := posted(t, openai.Options{Engine: c.engine, API: c.api, Output: c.output, Prompts: p}, &replay.Call{Row: &row})
			if diff := cmp.Diff(c.want, body); diff != "" || path != c.path {
				t.Errorf("%s\n%s", path, diff)
			}
		})
	}
}

func TestFieldsAndHeadersOfTheOperator(t *testing.T) {
	n := int32(7)
	row := &schemas.TraceRow{Row: 3, Turn: 2, InputTokens: 1, OutputTokens: &n, Session: text("s_1"), Tenant: text("t_{{row}}"), Model: text("m")}
	o := openai.Options{RunID: "run", APIKey: "key", Path: "/custom/route"}
	for _, s := range []string{"temperature=0", `max_tokens = 99`, `extra={"a":["b"]}`, `stream_options={"include_usage":false}`} {
		f, err := openai.ParseField(s)
		if err != nil {
			t.Fatal(err)
		}
		o.Fields = append(o.Fields, f)
	}
	for _, s := range []string{"x-session: {{session}}/{{turn}}", "X-Fixed:a: b", "authorization: Basic abc", "X-None: [{{class}}]", "X-Tenant: {{tenant}} {{ row }}", "X-Request-Id: mine-{{row}}"} {
		h, err := openai.ParseHeader(s)
		if err != nil {
			t.Fatal(err)
		}
		o.Headers = append(o.Headers, h)
	}
	path, body, header := posted(t, o, &replay.Call{Row: row})
	ids := promptIDs(&replay.Prompts{BlockSize: 4}, row)
	want := `{"model":"m","prompt":` + ids + `,"stream":true,"temperature":0,"max_tokens":99,"extra":{"a":["b"]},"stream_options":{"include_usage":false}}`
	if diff := cmp.Diff(want, body); diff != "" || path != "/custom/route" {
		t.Errorf("%s\n%s", path, diff)
	}
	for name, want := range map[string]string{
		"X-Session": "s_1/2", "X-Fixed": "a: b", "Authorization": "Basic abc", "X-None": "[]", "X-Tenant": "t_{{row}} 3", "X-Request-Id": "mine-3", "Content-Type": "application/json",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestBadFieldsAndHeaders(t *testing.T) {
	for _, s := range []string{"temperature", "=1", "a=b", "a={"} {
		if _, err := openai.ParseField(s); err == nil {
			t.Errorf("%q was read", s)
		}
	}
	if _, err := openai.ParseHeader("secret"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	one := json.RawMessage("1")
	o := openai.Options{
		Targets: []string{"http://a", "http://a"}, Prompts: &replay.Prompts{}, Strategy: "x", Engine: "y", Path: "v1?x", Output: replay.OutputForced,
		Fields:  []openai.Field{{Name: "prompt", Value: one}, {Name: "a", Value: one}, {Name: "a", Value: one}, {Name: "b"}},
		Headers: []openai.Header{{Name: "Content-Length"}, {Name: "a b"}, {Name: "X", Value: "a\nb"}, {Name: "Y", Value: "{{prompt}}"}, {Name: "Z"}, {Name: "Z"}},
		TLS:     openai.TLS{CertFile: "c"},
	}
	err := o.Validate()
	if fault.Of(err) != fault.Usage {
		t.Fatal(err)
	}
	for _, part := range []string{
		"given twice", `strategy: "x"`, `engine: "y"`, "path", "needs the api generate", "body field prompt", "body field a: is given twice", "body field b",
		"header Content-Length", `header "a b"`, "header X", "header Y: {{prompt}}", "header Z: is given twice", "certificate and its key",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not reported in:\n%v", part, err)
		}
	}
}

func TestBodyTemplates(t *testing.T) {
	n := int32(7)
	no := false
	p := &replay.Prompts{BlockSize: 4}
	row := &schemas.TraceRow{Row: 3, InputTokens: 2, OutputTokens: &n, Stream: &no, Session: text(`s"1`)}
	words, ids := string(p.AppendText(nil, row)), promptIDs(p, row)
	const full = `{
  "inputs": "{{prompt}}", "ids": "{{prompt_ids}}", "chat": "{{messages}}",
  "parameters": {"max_new_tokens": "{{max_tokens}}", "stream": "{{stream}}"},
  "note": "row {{row}} of {{ session }}: \"{{prompt}}\"", "class": "{{class}}", "row": "{{row}}", "session": "{{session}}"
}`
	tmpl, err := openai.ParseTemplate("t.json", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := posted(t, openai.Options{Template: tmpl, Prompts: p}, &replay.Call{Row: row})
	want := `{
  "inputs": "` + words + `", "ids": ` + ids + `, "chat": [{"role":"user","content":"` + words + `"}],
  "parameters": {"max_new_tokens": 7, "stream": false},
  "note": "row 3 of s\"1: \"` + words + `\"", "class": null, "row": 3, "session": "s\"1"
}`
	want = strings.Replace(want, `: "`+words+`"",`, `: \"`+words+`\"",`, 1)
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ text, says string }{
		{"{\n\"a\": 1,\n}", "t.json:3: reading the body template: not a JSON object"},
		{`["{{prompt}}"]`, "t.json:1: reading the body template: not a JSON object"},
		{`{"a": "b"}`, "no place for the prompt"},
		{"{\"prompt\": \"{{prompt}}\",\n\"x\": \"{{secret}}\"}", "t.json:2: there is no place {{secret}}"},
		{`{"x": "ids: {{prompt_ids}}"}`, "t.json:1: {{prompt_ids}} must be a string of its own"},
		{`{"x": "{{prompt}}", "y": "a {{row"}`, "t.json:1: {{ without }}"},
	} {
		_, err := openai.ParseTemplate("t.json", []byte(c.text))
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), c.says) || !strings.Contains(fault.Hint(err), "{{prompt_ids}}") {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add([]byte(`{"a": "{{prompt}}", "b": "x {{row}} \" {{prompt}}"}`))
	f.Add([]byte(`{"a\"{{": "{{messages}}"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tmpl, err := openai.ParseTemplate("t", data)
		if err != nil {
			return
		}
		n := int32(1)
		row := &schemas.TraceRow{InputTokens: 2, OutputTokens: &n}
		_, _, _ = posted(t, openai.Options{Template: tmpl}, &replay.Call{Row: row})
	})
}

// A turn of live history is what was said so far and what the user added since.
func TestLiveHistory(t *testing.T) {
	out := int32(3)
	p := &replay.Prompts{BlockSize: 4}
	row := func(n int64, in int32, ids ...int64) *schemas.TraceRow {
		return &schemas.TraceRow{Row: n, InputTokens: in, OutputTokens: &out, HashIDs: ids}
	}
	first, second, third := row(0, 6, 1, 2), row(1, 14, 1, 2, 3, 4), row(2, 19, 1, 2, 3, 4, 5)
	one := &replay.Exchange{Row: first, Answer: replay.Answer{Text: "say \"hi\"", TokenIDs: []int32{8, 9, 10}}}
	two := &replay.Exchange{Row: second, Answer: replay.Answer{Text: "ho", TokenIDs: []int32{11}}, Before: one}
	tail := func(r *schemas.TraceRow, n int32) string {
		return string(p.AppendWords(nil, r, r.InputTokens-n, r.InputTokens))
	}
	ids := func(r *schemas.TraceRow, from int32) string { return string(p.AppendIDs(nil, r, from, r.InputTokens)) }

	_, body, _ := posted(t, openai.Options{API: openai.APIChat, LiveHistory: true, Prompts: p}, &replay.Call{Row: third, Before: two})
	want := `{"messages":[{"role":"user","content":"` + string(p.AppendText(nil, first)) + `"},{"role":"assistant","content":"say \"hi\""},` +
		`{"role":"user","content":"` + tail(second, 14-6-3) + `"},{"role":"assistant","content":"ho"},` +
		`{"role":"user","content":"` + tail(third, 19-14-3) + `"}],"max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	_, body, _ = posted(t, openai.Options{Engine: "vllm", LiveHistory: true, Prompts: p}, &replay.Call{Row: third, Before: two})
	want = `{"prompt":[` + ids(first, 0) + `,8,9,10,` + ids(second, 9) + `,11,` + ids(third, 17) + `],"max_tokens":3,"stream":true,` +
		`"stream_options":{"include_usage":true,"continuous_usage_stats":true},"return_token_ids":true}`
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	// A prompt that did not grow has one token of its own.
	_, body, _ = posted(t, openai.Options{Prompts: p}, &replay.Call{Row: row(3, 6, 1, 2), Before: one})
	if want := `{"prompt":[` + ids(first, 0) + `,8,9,10,` + ids(first, 5) + `]`; !strings.HasPrefix(body, want) {
		t.Errorf("%s\nwant %s…", body, want)
	}
}

func TestQueueTimeOfWholeAnswers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Queue-Time", "12.5")
		io.WriteString(w, transporttest.Chunks.Whole)
	}))
	defer srv.Close()
	cl := client(t, openai.Options{Targets: []string{srv.URL}})
	defer cl.Close()
	if o := send(t, cl); o.Status != schemas.ResultOK || o.ServerQueue != 12500*time.Microsecond {
		t.Errorf("%s, queue %v", o.Status, o.ServerQueue)
	}
}
