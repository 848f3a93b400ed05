package openai_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/replay"
	"tailgate/replay/epoll"
	"tailgate/replay/openai"
	"tailgate/replay/transporttest"
	"tailgate/schemas"
)

// promptIDs is a row's prompt as a JSON list of token ids.
func promptIDs(p *replay.Prompts, row *schemas.TraceRow) string {
	return "[" + string(p.AppendIDs(nil, row, 0, row.InputTokens)) + "]"
}

func TestTransport(t *testing.T) {
	for _, api := range []string{openai.APICompletions, openai.APIChat, openai.APIResponses, openai.APIGenerate} {
		format := transporttest.Chunks
		if api == openai.APIResponses {
			format = transporttest.Responses
		}
		t.Run(api, func(t *testing.T) {
			transporttest.Run(t, format, func(t *testing.T, targets []string, dial transporttest.Dial) replay.Transport {
				return client(t, openai.Options{Targets: targets, API: api, DialContext: dial})
			})
		})
	}
}

func TestTransportsOnLoopback(t *testing.T) {
	for _, name := range transports() {
		t.Run(name, func(t *testing.T) {
			transporttest.RunReal(t, transporttest.Chunks, func(t *testing.T, targets []string, _ transporttest.Dial) replay.Transport {
				return client(t, openai.Options{Targets: targets, Transport: name})
			})
		})
	}
}

// transports are those that there are on this system.
func transports() []string {
	if !epoll.Supported {
		return []string{openai.TransportNetHTTP}
	}
	return []string{openai.TransportNetHTTP, openai.TransportEpoll}
}

func client(t *testing.T, o openai.Options) *openai.Client {
	t.Helper()
	if o.Prompts == nil {
		o.Prompts = &replay.Prompts{BlockSize: 4}
	}
	c, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBodies(t *testing.T) {
	n, zero := int32(7), int32(0)
	no := false
	model := "from-the-trace"
	row := schemas.TraceRow{InputTokens: 6, HashIDs: []int64{1, 2}, OutputTokens: &n}
	noStream, noLength, noOutput, withModel := row, row, row, row
	noStream.Stream, noLength.OutputTokens, noOutput.OutputTokens, withModel.Model = &no, nil, &zero, &model
	p := &replay.Prompts{BlockSize: 4}
	ids, text := promptIDs(p, &row), string(p.AppendText(nil, &row))
	streamed := `"stream":true,"stream_options":{"include_usage":true}}`
	prompt := `"prompt":` + ids

	cases := []struct {
		name string
		opts openai.Options
		row  schemas.TraceRow
		path string
		want string
	}{
		{"natural", openai.Options{}, row, "/v1/completions", "{" + prompt + `,"max_tokens":7,` + streamed},
		{"pinned", openai.Options{Output: replay.OutputPinned, Model: "m\"x"}, withModel, "/v1/completions",
			`{"model":"m\"x",` + prompt + `,"max_tokens":7,"min_tokens":7,"ignore_eos":true,` + streamed},
		{"model of the row", openai.Options{}, withModel, "/v1/completions",
			`{"model":"from-the-trace",` + prompt + `,"max_tokens":7,` + streamed},
		{"chat", openai.Options{API: openai.APIChat}, row, "/v1/chat/completions",
			`{"messages":[{"role":"user","content":"` + text + `"}],"max_tokens":7,` + streamed},
		{"not streamed", openai.Options{}, noStream, "/v1/completions", "{" + prompt + `,"max_tokens":7,"stream":false}`},
		{"length unknown", openai.Options{Output: replay.OutputPinned}, noLength, "/v1/completions", "{" + prompt + "," + streamed},
		{"length 0 is asked for as 1", openai.Options{}, noOutput, "/v1/completions", "{" + prompt + `,"max_tokens":1,` + streamed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.opts.APIKey, c.opts.Prompts, c.opts.RunID = "secret", p, "run"
			call := &replay.Call{Row: &c.row}
			path, body, header := posted(t, c.opts, call)
			if call.Outcome.Status != schemas.ResultOK {
				t.Errorf("status %s", call.Outcome.Status)
			}
			auth, id := header.Get("Authorization"), header.Get("X-Request-Id")
			if path != c.path || auth != "Bearer secret" || id != fmt.Sprint("run-", c.row.Row) {
				t.Errorf("path %s, authorization %q, request id %q", path, auth, id)
			}
			if diff := cmp.Diff(c.want, body); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOptionsReportEveryFault(t *testing.T) {
	o := openai.Options{
		Targets: []string{"host:1", "http://", "http://u:p@h", "http://h/?q=1"}, API: "x", Output: "y",
		Timeout: -1, MaxIdlePerHost: -1, IdleTimeout: -1, APIKey: "a\nb",
	}
	err := o.Validate()
	if fault.Of(err) != fault.Usage {
		t.Errorf("kind %v", fault.Of(err))
	}
	for _, part := range []string{"host:1", "has no host", "password", "query", "api", "output", "prompts", "timeout", "idle connections", "idle timeout", "one line"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not reported in:\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "u:p@") {
		t.Error("a password is repeated")
	}
	if _, err := openai.New(openai.Options{}); fault.Of(err) != fault.Usage {
		t.Errorf("no target: %v", err)
	}
}

func TestTimeout(t *testing.T) {
	stop := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-stop }))
	defer srv.Close()
	defer close(stop)
	cl := client(t, openai.Options{Targets: []string{srv.URL}, Timeout: 20 * time.Millisecond})
	call := &replay.Call{Row: &schemas.TraceRow{InputTokens: 1}, Zero: time.Now(), Outcome: replay.NewOutcome()}
	done := make(chan struct{})
	cl.Send(t.Context(), call, func(*replay.Call) { close(done) })
	<-done
	if o := call.Outcome; o.Status != schemas.ResultTimeout || o.ErrorKind != replay.KindTimeout {
		t.Errorf("status %q, kind %q", o.Status, o.ErrorKind)
	}
}

func TestConnectRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	cl := client(t, openai.Options{Targets: []string{url}})
	call := &replay.Call{Row: &schemas.TraceRow{InputTokens: 1}, Zero: time.Now(), Outcome: replay.NewOutcome()}
	done := make(chan struct{})
	cl.Send(t.Context(), call, func(*replay.Call) { close(done) })
	<-done
	if o := call.Outcome; o.Status != schemas.ResultReset || o.ErrorKind != replay.KindConnectRefused {
		t.Errorf("status %q, kind %q", o.Status, o.ErrorKind)
	}
	_, err = cl.Probe(t.Context())
	if want := "connecting to " + url + ": connection refused"; err == nil || err.Error() != want {
		t.Errorf("probe: %v, want %s", err, want)
	}
	if !strings.Contains(fault.Hint(err), "--wait-ready") {
		t.Errorf("hint %q", fault.Hint(err))
	}
}

func TestProbe(t *testing.T) {
	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			io.WriteString(w, `{"data":[{"id":"m1","owned_by":"vllm","max_model_len":4096,"permission":[]},{"no":"id"}]}`)
		case "/version":
			io.WriteString(w, `{"version":"0.33"}`)
		}
	}))
	defer full.Close()
	bare := httptest.NewServer(http.NotFoundHandler())
	defer bare.Close()
	got, err := client(t, openai.Options{Targets: []string{full.URL, bare.URL + "/v1"}, NoLearn: true}).Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"model": "m1",
		"targets": []any{
			map[string]any{"url": full.URL, "engine": "vllm", "version": "0.33", "models": []any{
				map[string]any{"id": "m1", "owned_by": "vllm", "max_model_len": 4096.0},
			}},
			map[string]any{"url": bare.URL + "/v1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
