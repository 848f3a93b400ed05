// Package openaigo holds OpenAI's own Go client against `tailgate sim`. It is a module of its own, so that tailgate
// does not depend on the client. TAILGATE names the binary; without it the tests are skipped.
package openaigo

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

const model = "served"

// sim starts the simulated engine and returns a client of it.
func sim(t *testing.T, settings ...string) openai.Client {
	t.Helper()
	binary := os.Getenv("TAILGATE")
	if binary == "" {
		t.Skip("TAILGATE names no binary")
	}
	spec := strings.Join(append([]string{"a=2,b=0,c=0,d=0,e=0,max_model_len=2000,model=" + model}, settings...), ",")
	cmd := exec.Command(binary, "sim", spec, "--listen", "127.0.0.1:0", "--quiet")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 130 {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:])
	return openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0), option.WithRequestTimeout(20*time.Second))
}

func messages() []openai.ChatCompletionMessageParamUnion {
	return []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be brief"), openai.UserMessage("hello there")}
}

func TestChat(t *testing.T) {
	c := sim(t)
	p := openai.ChatCompletionNewParams{Model: model, Messages: messages(), MaxCompletionTokens: openai.Int(7)}
	r, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Usage.CompletionTokens != 7 || len(r.Choices[0].Message.Content) != 28 || r.Choices[0].FinishReason != "length" {
		t.Errorf("%s", r.RawJSON())
	}
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	s := c.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		acc.AddChunk(s.Current())
	}
	if s.Err() != nil || acc.Usage.CompletionTokens != 7 || len(acc.Choices[0].Message.Content) != 28 {
		t.Errorf("%v %+v", s.Err(), acc.ChatCompletion)
	}
}

func TestCompletions(t *testing.T) {
	c := sim(t)
	p := openai.CompletionNewParams{Model: model, MaxTokens: openai.Int(4), Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfTokens: []int64{1, 2, 3}}}
	r, err := c.Completions.New(t.Context(), p)
	if err != nil || r.Usage.PromptTokens != 3 || len(r.Choices[0].Text) != 16 {
		t.Fatalf("%v %+v", err, r)
	}
	p.Prompt = openai.CompletionNewParamsPromptUnion{OfString: openai.String("hello")}
	s, n := c.Completions.NewStreaming(t.Context(), p), 0
	for s.Next() {
		n += len(s.Current().Choices)
	}
	if s.Err() != nil || n != 4 {
		t.Errorf("%v, %d tokens", s.Err(), n)
	}
}

func TestResponses(t *testing.T) {
	c := sim(t, "reasoning=1:50%")
	p := responses.ResponseNewParams{Model: model, MaxOutputTokens: openai.Int(6), Instructions: openai.String("be brief"),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")}}
	r, err := c.Responses.New(t.Context(), p)
	if err != nil || len(r.OutputText()) != 12 || r.Usage.OutputTokens != 6 || r.Status != "incomplete" {
		t.Fatalf("%v %+v", err, r)
	}
	s := c.Responses.NewStreaming(t.Context(), p)
	text, last := "", ""
	for s.Next() {
		e := s.Current()
		last = e.Type
		if e.Type == "response.output_text.delta" {
			text += e.Delta
		}
	}
	if s.Err() != nil || text != r.OutputText() && len(text) != 12 || last != "response.incomplete" {
		t.Errorf("%v %q, ends with %s", s.Err(), text, last)
	}
}

func TestErrors(t *testing.T) {
	c := sim(t)
	for _, tc := range []struct {
		name   string
		status int
		param  string
		p      openai.ChatCompletionNewParams
	}{
		{"model", 404, "model", openai.ChatCompletionNewParams{Model: "other", Messages: messages()}},
		{"messages", 400, "messages", openai.ChatCompletionNewParams{Model: model}},
		{"max_tokens", 400, "max_tokens", openai.ChatCompletionNewParams{Model: model, Messages: messages(), MaxTokens: openai.Int(-1)}},
	} {
		_, err := c.Chat.Completions.New(t.Context(), tc.p)
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != tc.status || e.Param != tc.param || e.Message == "" {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if m, err := c.Models.Get(t.Context(), model); err != nil || m.ID != model {
		t.Errorf("%v %+v", err, m)
	}
}

func TestFaults(t *testing.T) {
	ask := func(c openai.Client) error {
		_, err := c.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: model, Messages: messages()})
		return err
	}
	stream := func(c openai.Client) error {
		s := c.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{Model: model, Messages: messages()})
		for s.Next() {
		}
		return s.Err()
	}
	var e *openai.Error
	if err := ask(sim(t, "http_429=1")); !errors.As(err, &e) || e.StatusCode != 429 || e.Response.Header.Get("Retry-After") != "1" {
		t.Errorf("429: %v", err)
	}
	if err := ask(sim(t, "http_503=1")); !errors.As(err, &e) || e.StatusCode != 503 {
		t.Errorf("503: %v", err)
	}
	if err := stream(sim(t, "error_event=1")); err == nil || !strings.Contains(err.Error(), "the engine failed") {
		t.Errorf("error event: %v", err)
	}
	if err := stream(sim(t, "reset=1")); err == nil || !strings.Contains(err.Error(), "connection reset") {
		t.Errorf("reset: %v", err)
	}
	if err := stream(sim(t, "cut=1")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
	if err := stream(sim(t, "chunk=1:4", "role_first=1", "reasoning=1:25%", "keep_alive=1:1ms", "late_usage=1:50ms")); err != nil {
		t.Errorf("shapes: %v", err)
	}
}
