package sim_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/pipenet"
	"tailgate/sim"
)

func TestErrorsHaveTheOpenAIShape(t *testing.T) {
	const completions, chat = "/v1/completions", "/v1/chat/completions"
	withServer(t, plain+",model=served,max_model_len=100", func(t *testing.T, b *bench) {
		for _, tc := range []struct {
			name, path, body string
			status           int
			param, message   string
		}{
			{"malformed", completions, `{"prompt":"secret"`, 400, "", "malformed JSON at byte 18"},
			{"empty body", chat, ``, 400, "", "malformed JSON at byte 0"},
			{"not an object", chat, `[1]`, 400, "", "the body must be an object"},
			{"wrong type", completions, `{"prompt":"x","max_tokens":"many"}`, 400, "max_tokens", "max_tokens must be a whole number"},
			{"fraction", completions, `{"prompt":"x","max_tokens":1.5}`, 400, "max_tokens", "whole number"},
			{"nested type", completions, `{"prompt":"x","stream":true,"stream_options":{"include_usage":3}}`, 400, "stream_options.include_usage", "true or false"},
			{"unknown model", completions, `{"model":"other","prompt":"x"}`, 404, "model", "The model `other` does not exist."},
			{"negative max_tokens", completions, `{"prompt":"x","max_tokens":-1}`, 400, "max_tokens", "at least 1, got -1"},
			{"zero max_tokens", chat, `{"messages":[{"role":"user","content":"x"}],"max_completion_tokens":0}`, 400, "max_completion_tokens", "at least 1"},
			{"min over max", completions, `{"prompt":"x","max_tokens":4,"min_tokens":5}`, 400, "min_tokens", "at most max_tokens=4"},
			{"min over context", completions, `{"prompt":"x","max_tokens":200,"min_tokens":200}`, 400, "min_tokens", "at most max_tokens=99"},
			{"long text", completions, `{"prompt":"` + strings.Repeat("x", 400) + `"}`, 400, "input_tokens", "maximum context length is 100 tokens"},
			{"long ids", completions, `{"prompt":[` + strings.Repeat("1,", 100) + `1],"max_tokens":1}`, 400, "input_tokens", "101 input tokens"},
			{"no prompt", completions, `{"max_tokens":1}`, 400, "prompt", "prompt is required"},
			{"null prompt", completions, `{"prompt":null}`, 400, "prompt", "prompt is required"},
			{"number", completions, `{"prompt":7}`, 400, "prompt", "a string or a list"},
			{"empty ids", completions, `{"prompt":[]}`, 400, "prompt", "must not be empty"},
			{"negative id", completions, `{"prompt":[1,-2]}`, 400, "prompt", "token ids from 0"},
			{"fraction id", completions, `{"prompt":[1,2.5]}`, 400, "prompt", "token ids from 0"},
			{"two prompts", completions, `{"prompt":[[1],[2]]}`, 400, "prompt", "one prompt here, got 2"},
			{"deep list", completions, `{"prompt":[[[1]]]}`, 400, "prompt", "token ids"},
			{"no messages", chat, `{"messages":[]}`, 400, "messages", "must not be empty"},
			{"bad content", chat, `{"messages":[{"role":"user","content":7}]}`, 400, "messages", "messages[0].content"},
			{"two answers", completions, `{"prompt":"x","n":2}`, 400, "n", "n must be 1"},
			{"options without stream", completions, `{"prompt":"x","stream_options":{"include_usage":true}}`, 400, "stream_options", "stream is true"},
			{"long salt", completions, `{"prompt":"x","cache_salt":"` + strings.Repeat("s", 1025) + `"}`, 400, "cache_salt", "at most 1024"},
			{"tokenize", "/tokenize", `{}`, 400, "prompt", "prompt is required"},
		} {
			resp := b.post(tc.path, tc.body)
			body := read(t, resp)
			var e struct {
				Error struct {
					Message, Type string
					Param         *string
					Code          int
				}
			}
			if err := json.Unmarshal([]byte(body), &e); err != nil {
				t.Errorf("%s: body %q: %v", tc.name, body, err)
				continue
			}
			param := ""
			if e.Error.Param != nil {
				param = *e.Error.Param
			}
			if resp.StatusCode != tc.status || e.Error.Code != tc.status || param != tc.param || e.Error.Type == "" || !strings.Contains(e.Error.Message, tc.message) {
				t.Errorf("%s: %d %s", tc.name, resp.StatusCode, body)
			}
			if strings.Contains(body, "secret") {
				t.Errorf("%s: the answer quotes the prompt: %s", tc.name, body)
			}
		}
	})
}

// usage is what a whole answer tells of its tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (b *bench) usage(path, body string) [3]int {
	b.t.Helper()
	var v struct{ Usage usage }
	text := read(b.t, b.post(path, body))
	if err := json.Unmarshal([]byte(text), &v); err != nil || v.Usage.Total != v.Usage.Prompt+v.Usage.Completion {
		b.t.Errorf("%s: %v", text, err)
	}
	return [3]int{v.Usage.Prompt, v.Usage.Completion, v.Usage.Details.Cached}
}

func TestTokensAreCountedAndCached(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 25) // 400 bytes, 100 tokens
	withServer(t, plain, func(t *testing.T, b *bench) {
		for _, tc := range []struct {
			name, path, body string
			want             [3]int // prompt, completion, cached
		}{
			{"text", "/v1/completions", `{"prompt":"` + long + `x"}`, [3]int{101, 16, 0}},
			{"text again", "/v1/completions", `{"prompt":["` + long + `y"],"max_tokens":1}`, [3]int{101, 1, 96}},
			{"salted", "/v1/completions", `{"prompt":"` + long + `","max_tokens":1,"cache_salt":"s"}`, [3]int{100, 1, 0}},
			{"empty text", "/v1/completions", `{"prompt":"","max_tokens":1}`, [3]int{1, 1, 0}},
			{"ids", "/v1/completions", `{"prompt":[` + strings.Repeat("5, ", 31) + `5],"max_tokens":2}`, [3]int{32, 2, 0}},
			{"ids in a list, full repeat", "/v1/completions", `{"prompt":[[` + strings.Repeat("5,", 31) + `5]],"max_tokens":2}`, [3]int{32, 2, 16}},
			{"min raises the default", "/v1/completions", `{"prompt":[1],"min_tokens":20}`, [3]int{1, 20, 0}},
			{"context ends the answer", "/v1/completions", `{"prompt":[1],"max_tokens":99999999}`, [3]int{1, 99999, 0}},
			{"chat", "/v1/chat/completions", `{"messages":[{"role":"user","content":"` + long + `"}]}`, [3]int{106, 256, 0}},
			{"next turn, in parts", "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"` + long + `"},{"type":"image_url"}]},` +
				`{"role":"assistant","content":"hi"},{"role":"user","content":null,"tool_calls":[1]}],"max_tokens":1}`, [3]int{114, 1, 96}},
			{"tools", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"tools":[{"a":1}],"max_tokens":1}`, [3]int{12, 1, 0}},
		} {
			if diff := cmp.Diff(tc.want, b.usage(tc.path, tc.body)); diff != "" {
				t.Errorf("%s: prompt, completion, cached tokens (-want +got)\n%s", tc.name, diff)
			}
		}
		if body := read(t, b.post("/reset_prefix_cache", "")); body != `{"success":true}` {
			t.Errorf("reset: %s", body)
		}
		if got := b.usage("/v1/completions", `{"prompt":"`+long+`","max_tokens":1}`); got[2] != 0 {
			t.Errorf("after the reset %d tokens are cached", got[2])
		}
	})
}

// An answer counts, in the next prompt, as many tokens as it had.
func TestAnswersCountTheirTokens(t *testing.T) {
	withServer(t, plain, func(t *testing.T, b *bench) {
		var v struct{ Choices []struct{ Text string } }
		if err := json.Unmarshal([]byte(read(t, b.post("/v1/completions", `{"prompt":"x","max_tokens":77}`))), &v); err != nil {
			t.Fatal(err)
		}
		var n struct{ Count, MaxModelLen int }
		body, _ := json.Marshal(map[string]string{"prompt": v.Choices[0].Text})
		if err := json.Unmarshal([]byte(read(t, b.post("/tokenize", string(body)))), &n); err != nil || n.Count != 77 {
			t.Errorf("%d tokens, %v", n.Count, err)
		}
	})
}

func TestSideRoutes(t *testing.T) {
	withServer(t, plain, func(t *testing.T, b *bench) {
		if got, want := read(t, b.post("/tokenize", `{"messages":[{"role":"user","content":"x"}]}`)), `{"count":7,"max_model_len":100000,"tokens":[`; !strings.HasPrefix(got, want) {
			t.Errorf("tokenize: %s", got)
		}
		if got := read(t, b.post("/tokenize", `{"prompt":"abcdabcde"}`)); strings.Count(got, ",") != 4 {
			t.Errorf("tokenize: %s", got)
		}
		if got := b.get("/v1/models"); !strings.Contains(got, `"id":"llama-3.1-8b"`) || !strings.Contains(got, `"max_model_len":100000`) {
			t.Errorf("models: %s", got)
		}
		if got := b.get("/version"); !strings.HasPrefix(got, `{"version":"tailgate-sim `) {
			t.Errorf("version: %s", got)
		}
		if got := b.get("/health"); got != "" {
			t.Errorf("health: %s", got)
		}
	})
}

func TestMetricsUseVLLMNames(t *testing.T) {
	withServer(t, plain, func(t *testing.T, b *bench) {
		const body = `{"prompt":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17],"max_tokens":5}`
		read(t, b.post("/v1/completions", body))
		read(t, b.post("/v1/completions", body))
		for name, want := range map[string]string{
			"num_requests_running": "0", "num_requests_waiting": "0", "kv_cache_usage_perc": "0", "num_preemptions_total": "0",
			"prefix_cache_queries_total": "34", "prefix_cache_hits_total": "16", "prompt_tokens_total": "34", "generation_tokens_total": "10",
			"time_to_first_token_seconds_count": "2", "inter_token_latency_seconds_count": "8",
			"e2e_request_latency_seconds_count": "2", "request_queue_time_seconds_count": "2",
			"request_prefill_time_seconds_count": "2", "request_decode_time_seconds_count": "2", "request_inference_time_seconds_count": "2",
			"request_time_per_output_token_seconds_count": "2", "request_prompt_tokens_sum": "34", "request_generation_tokens_sum": "10",
		} {
			if got := b.metric("vllm:" + name + `{engine="0",model_name="llama-3.1-8b"}`); got != want {
				t.Errorf("%s = %s, want %s", name, got, want)
			}
		}
		if got := b.metric(`vllm:cache_config_info{block_size="16",enable_prefix_caching="true",engine="0",num_gpu_blocks="6250"}`); got != "1" {
			t.Errorf("cache_config_info = %s", got)
		}
		// In virtual time nothing is late.
		if late, n := b.metric("tailgate_sim_step_lateness_seconds_sum"), b.metric("tailgate_sim_step_lateness_seconds_count"); late != "0" || n == "0" {
			t.Errorf("steps late by %s s in %s wake-ups", late, n)
		}
		if n := b.metric("tailgate_sim_write_lateness_seconds_count"); n != "2" {
			t.Errorf("%s writes", n)
		}
	})
}

// loopback serves the spec over real sockets and returns its address.
func loopback(t testing.TB, spec string, o sim.ServerOptions) string {
	t.Helper()
	s, err := sim.NewServer(mustConfig(t, spec), o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// The same over real sockets, once.
func TestLoopback(t *testing.T) {
	address := loopback(t, "sim:fixed:service=1ms,slots=4", sim.ServerOptions{})
	resp, err := http.Post("http://"+address+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","max_tokens":3,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || strings.Count(string(body), "data: ") != 4 || resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
}

func FuzzRequestBody(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"x","max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[[1,2,3]],"min_tokens":2,"cache_salt":"s"}`, `{"prompt":[1, 2],"n":1}`, `{"prompt":[" "]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[],"max_completion_tokens":1}`,
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	s, err := sim.NewServer(mustConfig(f, plain+",max_model_len=64,http_503=1"), sim.ServerOptions{GoTimers: true})
	if err != nil {
		f.Fatal(err)
	}
	l := pipenet.Listen()
	go s.Serve(f.Context(), l)
	c := &http.Client{Transport: &http.Transport{DialContext: l.DialContext}}
	f.Fuzz(func(t *testing.T, body string, chat bool) {
		path := "/v1/completions"
		if chat {
			path = "/v1/chat/completions"
		}
		resp, err := c.Post("http://sim"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		// A body that can be served is refused by the fault.
		var e struct{ Error *struct{ Code int } }
		text := read(t, resp)
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Error == nil || e.Error.Code != resp.StatusCode || e.Error.Code != 400 && e.Error.Code != 503 {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
	})
}
