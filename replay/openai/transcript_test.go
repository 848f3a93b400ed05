package openai

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailgate/replay"
)

// recorded is one line of a recorded stream: what arrived at_ms after the request.
type recorded struct {
	AtMs float64 `json:"at_ms"`
	Raw  string  `json:"raw"`
	Hex  string  `json:"hex"`
	End  string  `json:"end"`
	data []byte
}

func (p recorded) at() time.Duration { return time.Duration(p.AtMs * float64(time.Millisecond)) }

func readTranscript(t *testing.T, path string) []recorded {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []recorded
	for s := bufio.NewScanner(f); s.Scan(); {
		var p recorded
		if err := json.Unmarshal(s.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		p.data = []byte(p.Raw)
		if p.Hex != "" {
			if p.data, err = hex.DecodeString(p.Hex); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, p)
	}
	return out
}

// play feeds a transcript with its own stamps.
func play(packets []recorded) replay.Outcome { return playAs(APICompletions, packets) }

func playAs(api string, packets []recorded) replay.Outcome { return playInto(api, nil, packets) }

func playInto(api string, keep *collector, packets []recorded) replay.Outcome {
	o := replay.NewOutcome()
	s := newStream(&o, api, keep)
	broken := ""
	for _, p := range packets {
		if p.End == "reset" {
			broken = replay.KindReset
		}
		if len(p.data) > 0 && !s.feed(p.data, p.at()) {
			break
		}
	}
	s.finish(broken)
	return o
}

// want is what a transcript must give. Times are in ms, -1 = never; counts -1 = not told.
type want struct {
	status, kind          string
	ttft, ttfo, last      int
	tokens, firstTokens   int32
	prompt, cached, think int32
	events                int32
}

func check(t *testing.T, o replay.Outcome, w want) {
	t.Helper()
	ms := func(d time.Duration) int {
		if d == replay.Never {
			return -1
		}
		return int(d.Milliseconds())
	}
	got := want{
		o.Status, o.ErrorKind, ms(o.FirstToken), ms(o.FirstOutput), ms(o.LastToken),
		o.Usage.Output, o.FirstEventTokens, o.Usage.Input, o.Usage.Cached, o.Usage.Reasoning, o.Events,
	}
	if got != w {
		t.Errorf("\n got %+v\nwant %+v", got, w)
	}
}

func TestPublicTranscripts(t *testing.T) {
	cases := []struct {
		file string
		want want
	}{
		{"01-role-chunk-is-not-a-token/transcript-0.jsonl", want{"ok", "", 200, 200, 240, 3, 0, 16, -1, -1, 3}},
		{"01-role-chunk-is-not-a-token/transcript-1.jsonl", want{"ok", "", 300, 300, 320, 2, 0, 16, -1, -1, 2}},
		{"02-reasoning-first-token/transcript-0.jsonl", want{"ok", "", 80, 400, 420, 18, 0, 16, -1, 16, 4}},
		{"02-reasoning-first-token/transcript-1.jsonl", want{"ok", "", 120, 200, 200, 5, 0, 16, -1, -1, 3}},
		{"03-many-tokens-per-chunk/transcript-0.jsonl", want{"ok", "", 100, 100, 260, 17, 1, 16, -1, -1, 5}},
		{"03-many-tokens-per-chunk/transcript-1.jsonl", want{"ok", "", 100, 100, 260, 21, 5, 16, -1, -1, 5}},
		{"05-error-object-inside-200/transcript-0.jsonl", want{"ok", "", 100, 100, 120, 2, 0, 16, -1, -1, 2}},
		{"05-error-object-inside-200/transcript-1.jsonl", want{"error_event", "engine_error", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
		{"05-error-object-inside-200/transcript-2.jsonl", want{"ok", "", 100, 100, 120, 2, 0, 16, -1, -1, 2}},
		{"05-error-object-inside-200/transcript-3.jsonl", want{"error_event", "engine_error", 100, 100, 100, -1, 0, -1, -1, -1, 1}},
		{"08-sse-framing/transcript-0.jsonl", want{"ok", "", 60, 60, 160, 6, 0, 16, -1, -1, 6}},
		{"09-keepalive-comments/transcript-0.jsonl", want{"ok", "", 150, 150, 170, 2, 0, 16, -1, -1, 2}},
		{"12-tpot-uses-real-length/transcript-0.jsonl", want{"ok", "", 100, 100, 300, 11, 0, 16, -1, -1, 11}},
	}
	for _, c := range cases {
		t.Run(strings.TrimSuffix(c.file, ".jsonl"), func(t *testing.T) {
			check(t, play(readTranscript(t, filepath.Join("testdata", "cases", c.file))), c.want)
		})
	}
}

// ev is a packet of one data event.
func ev(ms float64, data string) recorded {
	return recorded{AtMs: ms, data: []byte("data: " + data + "\n\n")}
}

const done = "[DONE]"

var streams = []struct {
	name    string
	packets []recorded
	want    want
}{
	{"role, empty and null content bear no token", []recorded{
		ev(5, `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`),
		ev(6, `{"choices":[{"index":0,"delta":{"content":null}}]}`),
		ev(50, `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`),
		ev(60, `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}}`), ev(61, done),
	}, want{"ok", "", 50, 50, 50, 1, 0, 7, 4, -1, 1}},
	{"completions text", []recorded{
		ev(10, `{"choices":[{"text":"a","finish_reason":null}],"usage":null}`),
		ev(20, `{"choices":[{"text":"b","finish_reason":"length"}],"usage":null}`), ev(21, done),
	}, want{"ok", "", 10, 10, 20, -1, 0, -1, -1, -1, 2}},
	{"both names of reasoning count once", []recorded{
		ev(10, `{"choices":[{"delta":{"reasoning":"x","reasoning_content":"x"}}]}`),
		ev(30, `{"choices":[{"delta":{"content":"y"},"finish_reason":"stop"}]}`),
	}, want{"ok", "", 10, 30, 30, -1, 0, -1, -1, -1, 2}},
	{"tool call deltas are output", []recorded{
		ev(10, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}}]}`),
		ev(20, `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}`),
		ev(30, `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]},"finish_reason":"tool_calls"}]}`),
	}, want{"ok", "", 10, 10, 20, -1, 0, -1, -1, -1, 2}},
	{"per-event usage: an event without text bears its token, an event without a new token none", []recorded{
		ev(5, `{"choices":[{"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":3,"completion_tokens":0}}`),
		ev(10, `{"choices":[{"delta":{"content":""}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`),
		ev(20, `{"choices":[{"delta":{"content":"é"}}],"usage":{"prompt_tokens":3,"completion_tokens":3}}`),
		ev(25, `{"choices":[{"delta":{"content":"z"}}],"usage":{"prompt_tokens":3,"completion_tokens":3}}`),
		ev(30, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":3}}`),
	}, want{"ok", "", 10, 10, 20, 3, 1, 3, -1, -1, 2}},
	{"a final usage on the finish chunk is not per event", []recorded{
		ev(10, `{"choices":[{"delta":{"content":"a"}}]}`),
		ev(20, `{"choices":[{"delta":{"content":"b"}}]}`),
		ev(40, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":9}}`),
	}, want{"ok", "", 10, 10, 20, 9, 0, 3, -1, -1, 2}},
	{"only a finish chunk with usage: no token was seen", []recorded{
		ev(10, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`), ev(11, done),
	}, want{"empty", "no_token", -1, -1, -1, 1, 0, 3, -1, -1, 0}},
	{"zero usage until the end is not per event", []recorded{
		ev(10, `{"choices":[{"text":"a"}],"usage":{"prompt_tokens":3,"completion_tokens":0}}`),
		ev(20, `{"choices":[{"text":"b"}],"usage":{"prompt_tokens":3,"completion_tokens":0}}`),
		ev(30, `{"choices":[{"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`),
	}, want{"ok", "", 10, 10, 20, 2, 0, 3, -1, -1, 2}},
	{"token ids count where usage does not", []recorded{
		ev(10, `{"choices":[{"text":"","token_ids":[5,6]}]}`),
		ev(20, `{"choices":[{"text":"x","token_ids":[7]}]}`),
		ev(30, `{"choices":[{"text":"y","token_ids":[8],"finish_reason":"length"}],"usage":{"completion_tokens":4}}`),
	}, want{"ok", "", 10, 10, 30, 4, 2, -1, -1, -1, 3}},
	{"textless tokens before reasoning are not output", []recorded{
		ev(10, `{"choices":[{"delta":{"content":""}}],"usage":{"completion_tokens":1}}`),
		ev(20, `{"choices":[{"delta":{"reasoning":"r"}}],"usage":{"completion_tokens":2}}`),
		ev(30, `{"choices":[{"delta":{"content":"o"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}`),
	}, want{"ok", "", 10, 30, 30, 3, 1, -1, -1, -1, 3}},
	{"finish without [DONE] is complete", []recorded{
		ev(10, `{"choices":[{"text":"a","finish_reason":"stop"}]}`), {End: "eof"},
	}, want{"ok", "", 10, 10, 10, -1, 0, -1, -1, -1, 1}},
	{"[DONE] without finish is complete", []recorded{ev(10, `{"choices":[{"text":"a"}]}`), ev(20, done)},
		want{"ok", "", 10, 10, 10, -1, 0, -1, -1, -1, 1}},
	{"neither is truncated", []recorded{ev(10, `{"choices":[{"text":"a"}]}`)},
		want{"truncated", "no_finish", 10, 10, 10, -1, 0, -1, -1, -1, 1}},
	{"a reset before [DONE]", []recorded{ev(10, `{"choices":[{"text":"a","finish_reason":"stop"}]}`), {End: "reset"}},
		want{"reset", "reset", 10, 10, 10, -1, 0, -1, -1, -1, 1}},
	{"a reset after [DONE] changes nothing", []recorded{ev(10, `{"choices":[{"text":"a"}]}`), ev(11, done), {End: "reset"}},
		want{"ok", "", 10, 10, 10, -1, 0, -1, -1, -1, 1}},
	{"complete without a token", []recorded{ev(10, `{"choices":[{"text":"","finish_reason":"stop"}]}`), ev(11, done)},
		want{"empty", "no_token", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"nothing at all", nil, want{"truncated", "no_finish", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"overload inside a 200", []recorded{ev(10, `{"error":{"message":"full","type":"SERVICE_UNAVAILABLE","code":503}}`), ev(11, done)},
		want{"error_event", "rate_limited", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"overload with a code in a string", []recorded{ev(10, `{"error":"full","code":"429"}`)},
		want{"error_event", "rate_limited", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"a flat error", []recorded{ev(10, `{"object":"error","message":"m","code":400}`)},
		want{"error_event", "engine_error", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"an event named error fails whatever it holds", []recorded{{AtMs: 5, data: []byte("event: error\ndata: oops\n\n")}},
		want{"error_event", "engine_error", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"empty errors are none", []recorded{
		ev(10, `{"error":{},"choices":[{"text":"a"}]}`), ev(11, `{"error":"","choices":[{"text":"a"}]}`), ev(12, done),
	}, want{"ok", "", 10, 10, 11, -1, 0, -1, -1, -1, 2}},
	{"an engine that aborts", []recorded{ev(10, `{"choices":[{"text":"a"}]}`), ev(20, `{"choices":[{"text":"","finish_reason":"abort"}]}`), ev(21, done)},
		want{"error_event", "engine_abort", 10, 10, 10, -1, 0, -1, -1, -1, 1}},
	{"a prompt that is too long, inside a 200", []recorded{ev(10, `{"error":{"message":"The input is longer than the model's context length","code":400}}`)},
		want{"error_event", "prompt_too_long", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"an overload that is named and has no number", []recorded{ev(10, `{"error":{"message":"full","type":"SERVICE_UNAVAILABLE"}}`)},
		want{"error_event", "rate_limited", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"llama.cpp tells cached tokens in its timings", []recorded{
		ev(10, `{"choices":[{"delta":{"content":"a"}}]}`),
		ev(11, `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1},"timings":{"cache_n":5,"prompt_ms":3.5}}`), ev(12, done),
	}, want{"ok", "", 10, 10, 10, 1, 0, 7, 5, -1, 1}},
	{"not JSON", []recorded{ev(10, `{"choices":[{"text":"a"`), ev(20, done)},
		want{"error_event", "bad_json", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"trailing blank behind [DONE] and JSON", []recorded{ev(10, `{"choices":[{"text":"a"}]} `), ev(20, done+" ")},
		want{"ok", "", 10, 10, 10, -1, 0, -1, -1, -1, 1}},
}

func TestStreamDefinitions(t *testing.T) {
	for _, c := range streams {
		t.Run(c.name, func(t *testing.T) { check(t, play(c.packets), c.want) })
	}
}

func TestServerTimesComeFromTheLastChunk(t *testing.T) {
	o := play([]recorded{
		ev(10, `{"choices":[{"text":"a","finish_reason":"stop"}]}`),
		ev(11, `{"choices":[],"usage":{"completion_tokens":1},"metrics":{"queue_time_ms":1.5,"time_to_first_token_ms":40,"mean_itl_ms":null}}`),
		ev(12, done),
	})
	if o.ServerQueue != 1500*time.Microsecond || o.ServerPrefill != 40*time.Millisecond {
		t.Errorf("queue %v, prefill %v", o.ServerQueue, o.ServerPrefill)
	}
}
