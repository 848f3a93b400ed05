package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tailgate/internal/bpe"
	"tailgate/replay"
	"tailgate/replay/openai"
	"tailgate/replay/transporttest"
	"tailgate/schemas"
)

// chatEngine serves chat with a real vocabulary (o200k) behind a template, as vLLM does.
type chatEngine struct {
	trims     bool // the template trims the blanks around a message
	tokenizes bool // there is a /tokenize

	mu  sync.Mutex
	enc *bpe.Encoder
	got []int // tokens of each completion's prompt
}

func (e *chatEngine) ids(text string) []uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.enc.Append(nil, []byte(text))
}

type chatMessage struct{ Role, Content string }

// render is three tokens of its own in front, then each message, then the assistant's opening.
func (e *chatEngine) render(messages []chatMessage) []uint32 {
	ids := []uint32{1, 2, 3}
	for _, m := range messages {
		text := m.Content
		if e.trims {
			text = strings.TrimSpace(text)
		}
		ids = append(append(ids, 10), e.ids(m.Role+"\n")...)
		ids = append(append(ids, e.ids(text)...), 11)
	}
	return append(append(ids, 10), e.ids("assistant\n")...)
}

func (e *chatEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Prompt   string
		Messages []chatMessage
		Stream   bool
	}
	raw, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(raw, &body)
	switch r.URL.Path {
	case "/v1/models":
		io.WriteString(w, `{"data":[{"id":"m","owned_by":"vllm","max_model_len":4096}]}`)
	case "/tokenize":
		if !e.tokenizes {
			http.NotFound(w, r)
			return
		}
		ids := append([]uint32{1}, e.ids(body.Prompt)...) // it adds BOS, whatever it is asked
		if body.Messages != nil {
			ids = e.render(body.Messages)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"count": len(ids), "tokens": ids})
	case "/v1/chat/completions":
		n := len(e.render(body.Messages))
		e.mu.Lock()
		e.got = append(e.got, n)
		e.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, transporttest.Chunks.Token+strings.ReplaceAll(transporttest.Chunks.End(1), `"prompt_tokens":10`, fmt.Sprintf(`"prompt_tokens":%d`, n)))
	default:
		http.NotFound(w, r)
	}
}

func TestChatPromptsHaveExactlyTheTracesLength(t *testing.T) {
	enc, err := bpe.O200k()
	if err != nil {
		t.Fatal(err)
	}
	local := newEncoderIDs(enc)
	for _, c := range []struct {
		name      string
		engine    habits
		tokenizer func(string) ([]int32, error)
		exact     bool
	}{
		{"the target tokenizes", habits{false, true}, nil, true},
		{"its template trims", habits{true, true}, nil, true},
		{"it does not tokenize, but tells usage", habits{false, false}, local, true},
		{"nobody knows its tokens", habits{false, false}, nil, false},
	} {
		for _, prose := range []bool{false, true} {
			if prose && !c.exact {
				continue
			}
			t.Run(fmt.Sprintf("%s, prose %v", c.name, prose), func(t *testing.T) {
				e := &chatEngine{trims: c.engine.trims, tokenizes: c.engine.tokenizes, enc: enc.NewEncoder()}
				srv := httptest.NewServer(e)
				defer srv.Close()
				cl := client(t, openai.Options{Targets: []string{srv.URL}, API: openai.APIChat, Tokenizer: c.tokenizer, Prompts: &replay.Prompts{BlockSize: 16, Prose: prose}})
				defer cl.Close()
				told, err := cl.Probe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if about := told["prompts"].(map[string]any); about["exact"] != c.exact {
					t.Fatalf("%v", about)
				}
				for _, n := range []int32{30, 31, 100, 777, 2000} {
					out := int32(1)
					call := &replay.Call{Row: &schemas.TraceRow{Row: int64(n), InputTokens: n, OutputTokens: &out}, Zero: time.Now(), Outcome: replay.NewOutcome()}
					done := make(chan struct{})
					cl.Send(t.Context(), call, func(*replay.Call) { close(done) })
					<-done
					if got := call.Outcome.Usage.Input; c.exact && got != n {
						t.Errorf("%d prompt tokens, want %d", got, n)
					}
				}
			})
		}
	}
}

type habits struct{ trims, tokenizes bool }

func newEncoderIDs(enc *bpe.Encoding) func(string) ([]int32, error) {
	e := enc.NewEncoder()
	return func(text string) ([]int32, error) {
		var out []int32
		for _, id := range e.Append(nil, []byte(text)) {
			out = append(out, int32(id))
		}
		return out, nil
	}
}

func TestProseNeedsATokenizer(t *testing.T) {
	srv := httptest.NewServer(&chatEngine{})
	defer srv.Close()
	cl := client(t, openai.Options{Targets: []string{srv.URL}, API: openai.APIChat, Prompts: &replay.Prompts{Prose: true}})
	defer cl.Close()
	if _, err := cl.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "making prose") {
		t.Errorf("%v", err)
	}
}
