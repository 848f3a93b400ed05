package openai

import (
	"testing"
)

// ordinary are chunks that engines send all the time: the scanner must not leave them to encoding/json.
var ordinary = []string{
	`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
	`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" a\"\né"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`,
	`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":"hm","tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}`,
	`{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"x","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":5,"total_tokens":6,"completion_tokens":1}}`,
	`{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":5,"total_tokens":6,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":null}}`,
	`{"error":null,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]} `,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]},"finish_reason":null}]}`,
	`{"choices":[{"text":"","token_ids":[1,22,333],"x":[{"y":-1.5e-3},true,false]}]}`,
}

func TestOrdinaryChunksAreScanned(t *testing.T) {
	for _, data := range ordinary {
		got, ok := scanChunk([]byte(data))
		if !ok {
			t.Errorf("left to encoding/json: %s", data)
			continue
		}
		if want, err := decodeChunk([]byte(data)); err != nil || got != want {
			t.Errorf("%s\n got %+v\nwant %+v (%v)", data, got, want, err)
		}
	}
}

// odd chunks must be left to encoding/json, or be refused by both.
var odd = []string{
	`{"choices":[{"delta":{"content":"a"},"delta":{"content":""}}]}`,
	`{"choices":[],"choices":[{"text":"a"}]}`,
	`{"cho\u0069ces":[{"text":"a"}]}`,
	`{"choices":[{"text":"a\x"}]}`,
	`{"choices":[{"text":"a` + "\n" + `"}]}`,
	`{"choices":[{"text":"a"}]}}`,
	`{"choices":[{"text":"a"}]} {}`,
	`{"choices":[{"text":"a",}]}`,
	`{"choices":[{"text":1}]}`,
	`{"choices":[{"finish_reason":"\u0061bort"}]}`,
	`{"choices":[],"usage":{"completion_tokens":1.0}}`,
	`{"choices":[],"usage":{"completion_tokens":-1}}`,
	`{"choices":[],"usage":{"completion_tokens":01}}`,
	`{"choices":[],"usage":{"completion_tokens":12345678901}}`,
	`{"choices":[],"usage":{"reasoning_tokens":4}}`,
	`{"choices":[],"usage":1}`,
	`{"choices":[],"error":{"message":"m"}}`,
	`{"choices":[],"object":"error"}`,
	`{"choices":[],"metrics":{"queue_time_ms":1}}`,
	`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","name":""}}]}}]}`,
	`{"choices":[{"delta":{"tool_calls":[{"function":{"name":1}}]}}]}`,
	`{"choices":[{"text":"a"}],"timings":{"prompt_ms":1}}`,
	`{"message":"m","code":500}`,
	`{"usage":{"completion_tokens":1}}`,
	`[]`, `null`, `1`, `"x"`, ``, `{`, `{"a"`, `{"choices":[{"a":0123}]}`, `{"choices":[{"a":-}]}`, `{"choices":[{"a":1.}]}`, `{"choices":[{"a":tru}]}`,
}

func TestOddChunksAreNotScanned(t *testing.T) {
	for _, data := range odd {
		if c, ok := scanChunk([]byte(data)); ok {
			t.Errorf("scanned %s as %+v", data, c)
		}
	}
}

func FuzzChunk(f *testing.F) {
	for _, data := range ordinary {
		f.Add([]byte(data))
	}
	for _, data := range odd {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := scanChunk(data)
		want, err := decodeChunk(data)
		if ok && (err != nil || got != want) {
			t.Errorf("scanned %q\n got %+v\nwant %+v (%v)", data, got, want, err)
		}
	})
}

func BenchmarkScanChunk(b *testing.B) {
	data := []byte(ordinary[1])
	for b.Loop() {
		scanChunk(data)
	}
}

func BenchmarkDecodeChunk(b *testing.B) {
	data := []byte(ordinary[1])
	for b.Loop() {
		_, _ = decodeChunk(data)
	}
}
