package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/pipenet"
	"tailgate/replay"
	"tailgate/replay/openai"
)

// fakeEngine is a server with an engine's habits.
type fakeEngine struct {
	owner   string
	refuses []string // fields that are answered with 400
	honours []string // fields that have an effect
	cache   bool     // cached tokens are told
	takes   time.Duration

	mu     sync.Mutex
	bodies []map[string]any
	seen   map[string]bool // salt + prompt
}

func (e *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/models":
		fmt.Fprintf(w, `{"data":[{"id":"m","owned_by":%q,"max_model_len":4096}]}`, e.owner)
		return
	case "/v1/completions":
	default:
		http.NotFound(w, r)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	var body map[string]any
	if json.Unmarshal(raw, &body) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	time.Sleep(e.takes)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bodies = append(e.bodies, body)
	options, _ := body["stream_options"].(map[string]any)
	for _, name := range e.refuses {
		if body[name] != nil || options[name] != nil {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"[{'type': 'extra_forbidden', 'loc': ('body', '%s')}]"}`, name)
			return
		}
	}
	e.answer(w, body, options)
}

func (e *fakeEngine) answer(w http.ResponseWriter, body, options map[string]any) {
	does := func(name string) bool {
		return slices.Contains(e.honours, name) && (body[name] != nil || options[name] != nil)
	}
	key, _ := json.Marshal(body["prompt"])
	if does("cache_salt") {
		key = append(key, body["cache_salt"].(string)...)
	}
	cached := 0
	if e.seen[string(key)] {
		cached = 16
	}
	if e.seen == nil {
		e.seen = map[string]bool{}
	}
	e.seen[string(key)] = true
	w.Header().Set("Content-Type", "text/event-stream")
	n := 3 // more than asked for, unless the length is pinned
	if does("min_tokens") {
		n = int(body["min_tokens"].(float64))
	}
	for i := range n {
		extra := ""
		if does("continuous_usage_stats") {
			extra += fmt.Sprintf(`,"usage":{"prompt_tokens":32,"completion_tokens":%d}`, i+1)
		}
		ids := ""
		if does("return_token_ids") {
			ids = `,"token_ids":[7]`
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":\"x\"%s}]%s}\n\n", ids, extra)
	}
	fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n")
	if does("include_usage") {
		details := ""
		if e.cache {
			details = fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, cached)
		}
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":32,\"completion_tokens\":%d%s}}\n\n", n, details)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// last is the body of the newest request.
func (e *fakeEngine) last() map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bodies[len(e.bodies)-1]
}

var all = []string{"include_usage", "continuous_usage_stats", "return_token_ids", "cache_salt", "min_tokens", "ignore_eos"}

func TestProbeLearnsWhatATargetTakes(t *testing.T) {
	cases := []struct {
		name   string
		engine *fakeEngine
		output string
		report map[string]string
		body   string // what the run's bodies then hold, beside payload and length
	}{
		{"vllm with everything", &fakeEngine{owner: "vllm", honours: all, cache: true}, replay.OutputPinned,
			map[string]string{"include_usage": "used", "continuous_usage_stats": "used", "return_token_ids": "used", "cache_salt": "used", "min_tokens": "used", "ignore_eos": "used"},
			"cache_salt ignore_eos max_tokens min_tokens model prompt stream stream_options"},
		{"an old one that ignores what it does not know", &fakeEngine{owner: "vllm", honours: []string{"include_usage"}, cache: true}, replay.OutputPinned,
			map[string]string{"include_usage": "used", "continuous_usage_stats": "ignored", "return_token_ids": "ignored", "cache_salt": "ignored", "min_tokens": "ignored", "ignore_eos": "used"},
			"ignore_eos max_tokens min_tokens model prompt stream stream_options"},
		{"no cache that can be seen", &fakeEngine{owner: "sglang", honours: all}, "",
			map[string]string{"include_usage": "used", "continuous_usage_stats": "used", "return_token_ids": "used", "cache_salt": "unknown"},
			"max_tokens model prompt stream stream_options"},
		{"trtllm is never sent what it refuses", &fakeEngine{owner: "tensorrt_llm", refuses: []string{"return_token_ids", "cache_salt"}, honours: all}, replay.OutputPinned,
			map[string]string{"include_usage": "used", "continuous_usage_stats": "used", "min_tokens": "used", "ignore_eos": "used"},
			"ignore_eos max_tokens min_tokens model prompt stream stream_options"},
		{"a refusal that names its field", &fakeEngine{owner: "vllm", refuses: []string{"continuous_usage_stats", "cache_salt"}, honours: all}, "",
			map[string]string{"include_usage": "used", "continuous_usage_stats": "refused", "return_token_ids": "used", "cache_salt": "refused"},
			"max_tokens model prompt return_token_ids stream stream_options"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			srv := httptest.NewServer(c.engine)
			defer srv.Close()
			cl := client(t, openai.Options{Targets: []string{srv.URL}, Output: c.output, Prompts: &replay.Prompts{BlockSize: 4, Salt: "run"}})
			defer cl.Close()
			told, err := cl.Probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			about := told["targets"].([]any)[0].(map[string]any)
			if got := fmt.Sprint(about["fields"]); got != fmt.Sprint(c.report) {
				t.Errorf("fields %s, want %v", got, c.report)
			}
			if o := send(t, cl); o.Status != "ok" {
				t.Fatalf("%s %s", o.Status, o.ErrorKind)
			}
			body := c.engine.last()
			var names []string
			for name := range body {
				names = append(names, name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != c.body || body["model"] != "m" {
				t.Errorf("bodies hold %s of model %v, want %s", got, body["model"], c.body)
			}
			perEvent := body["stream_options"].(map[string]any)["continuous_usage_stats"] == true
			if perEvent != (c.report["continuous_usage_stats"] == "used") {
				t.Errorf("per-event usage is asked for: %v", perEvent)
			}
		})
	}
}

// Where the engine's own salt works, prompts are equal in every run; else the salt is in the prompts.
func TestSaltIsInThePromptsWhereTheEngineHasNone(t *testing.T) {
	prompts := func(honours []string, salt string) string {
		e := &fakeEngine{owner: "vllm", honours: honours, cache: true}
		srv := httptest.NewServer(e)
		defer srv.Close()
		cl := client(t, openai.Options{Targets: []string{srv.URL}, Prompts: &replay.Prompts{BlockSize: 4, Salt: salt}})
		defer cl.Close()
		if _, err := cl.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		send(t, cl)
		if got := e.last()["cache_salt"]; (got == salt) != slices.Contains(honours, "cache_salt") {
			t.Errorf("cache_salt %v", got)
		}
		return fmt.Sprint(e.last()["prompt"])
	}
	if prompts(all, "a") != prompts(all, "b") {
		t.Error("prompts differ although the engine's salt parts the runs")
	}
	if prompts([]string{"include_usage"}, "a") == prompts([]string{"include_usage"}, "b") {
		t.Error("prompts of two runs are equal and nothing parts them")
	}
}

// The start of a run waits for no more answers, one after the other, than depend on each other.
func TestLearningTakesTwoAnswersInTurn(t *testing.T) {
	cases := []struct {
		name    string
		refuses []string
		want    int
	}{
		{"nothing is refused", nil, 2},
		{"a field is refused", []string{"continuous_usage_stats"}, 4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := pipenet.Listen()
				srv := &http.Server{Handler: &fakeEngine{owner: "vllm", refuses: c.refuses, honours: all, cache: true, takes: time.Second}}
				var served sync.WaitGroup
				served.Go(func() { _ = srv.Serve(l) })
				cl := client(t, openai.Options{
					Targets: []string{"http://a", "http://b"}, DialContext: l.DialContext, Prompts: &replay.Prompts{BlockSize: 4, Salt: "s"},
				})
				began := time.Now()
				out, err := cl.Probe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := time.Since(began); got != time.Duration(c.want)*time.Second {
					t.Errorf("took %v, want %d answers of a second", got, c.want)
				}
				report := out["targets"].([]any)[1].(map[string]any)["fields"].(map[string]string)
				if report["cache_salt"] != "used" {
					t.Errorf("fields %v", report)
				}
				cl.Close()
				srv.Close()
				served.Wait()
			})
		})
	}
}

func TestNothingIsLearnedFromAStranger(t *testing.T) {
	for _, e := range []*fakeEngine{{owner: "somebody", honours: all}, {owner: "vllm", honours: all}} {
		srv := httptest.NewServer(e)
		defer srv.Close()
		cl := client(t, openai.Options{Targets: []string{srv.URL}, NoLearn: e.owner == "vllm"})
		defer cl.Close()
		if _, err := cl.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(e.bodies) != 0 {
			t.Errorf("%s: %d requests were sent", e.owner, len(e.bodies))
		}
	}
}

func TestATargetWithoutTheRouteStopsTheRun(t *testing.T) {
	srv := httptest.NewServer(&fakeEngine{owner: "vllm", honours: all})
	defer srv.Close()
	cl := client(t, openai.Options{Targets: []string{srv.URL}, API: openai.APIResponses, Tokenizer: words})
	defer cl.Close()
	_, err := cl.Probe(t.Context())
	if fault.Of(err) != fault.Failure || !strings.Contains(err.Error(), "/v1/responses") {
		t.Errorf("%v", err)
	}
}

// words is a tokenizer with a token for every blank.
func words(text string) ([]int32, error) {
	var out []int32
	for _, w := range strings.SplitAfter(strings.ReplaceAll(text, ".", " ."), " ") {
		id := int32(7)
		for _, c := range []byte(strings.TrimSpace(w)) {
			id = id*31 + int32(c)
		}
		if strings.TrimSpace(w) != "" {
			out = append(out, id&0xffffff)
		}
	}
	return out, nil
}

func TestTargetsThatWantAKeyOrAreNotReady(t *testing.T) {
	code := http.StatusUnauthorized
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer secret" {
			return
		}
		w.WriteHeader(code)
	}))
	defer srv.Close()
	cl := client(t, openai.Options{Targets: []string{srv.URL}})
	_, err := cl.Probe(t.Context())
	if fault.Of(err) != fault.Failure || !strings.Contains(fault.Hint(err), "TAILGATE_API_KEY") {
		t.Errorf("%v (%s)", err, fault.Hint(err))
	}
	code = http.StatusServiceUnavailable
	if _, err := cl.Probe(t.Context()); !errors.Is(err, openai.ErrNotReady) || !strings.Contains(fault.Hint(err), "--wait-ready") {
		t.Errorf("%v (%s)", err, fault.Hint(err))
	}
	with := client(t, openai.Options{Targets: []string{srv.URL}, APIKey: "secret"})
	if _, err := with.Probe(t.Context()); err != nil {
		t.Error(err)
	}
}
