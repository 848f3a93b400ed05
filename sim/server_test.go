package sim_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/pipenet"
	"tailgate/sim"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// bench is a server in a synctest bubble with a client.
type bench struct {
	t      *testing.T
	server *sim.Server
	client *http.Client
	stop   context.CancelFunc
	ran    chan error
}

// withServer runs f against a server in virtual time and then ends the server.
func withServer(t *testing.T, spec string, f func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := sim.NewServer(mustConfig(t, spec), sim.ServerOptions{GoTimers: true})
		if err != nil {
			t.Fatal(err)
		}
		l := pipenet.Listen()
		ctx, stop := context.WithCancel(t.Context())
		b := &bench{t: t, server: s, stop: stop, ran: make(chan error, 1),
			client: &http.Client{Transport: &http.Transport{DialContext: l.DialContext, MaxIdleConnsPerHost: 100}}}
		go func() { b.ran <- s.Serve(ctx, l) }()
		f(t, b)
		b.client.CloseIdleConnections()
		s.Close()
		stop()
		if err := <-b.ran; err != nil {
			t.Error(err)
		}
	})
}

func (b *bench) post(path, body string, header ...string) *http.Response {
	b.t.Helper()
	resp, err := b.try(b.t.Context(), path, body, header...)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

func (b *bench) try(ctx context.Context, path, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sim"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return b.client.Do(req)
}

func (b *bench) get(path string) string {
	b.t.Helper()
	resp, err := b.client.Get("http://sim" + path)
	if err != nil {
		b.t.Fatal(err)
	}
	return read(b.t, resp)
}

func read(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// metric returns the value of the one sample that begins with name.
func (b *bench) metric(name string) string {
	b.t.Helper()
	for line := range strings.Lines(b.get("/metrics")) {
		if v, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(v)
		}
	}
	b.t.Fatalf("no sample %s", name)
	return ""
}

// Virtual time in a bubble starts at a fixed date, so answers are equal to the byte.
func TestAnswersAreGolden(t *testing.T) {
	const ids = `"prompt":[1,2,3,4,5]`
	const chat = `"messages":[{"role":"user","content":"hello"}]`
	for name, tc := range map[string]struct{ path, body string }{
		"completion.sse":  {"/v1/completions", `{"model":"m",` + ids + `,"max_tokens":3,"stream":true}`},
		"completion.json": {"/v1/completions", `{"model":"m",` + ids + `,"max_tokens":3}`},
		"usage.sse":       {"/v1/completions", `{"model":"a\"b",` + ids + `,"max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`},
		"chat.sse":        {"/v1/chat/completions", `{` + chat + `,"max_tokens":2,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
		"chat.json":       {"/v1/chat/completions", `{` + chat + `,"max_completion_tokens":3,"max_tokens":9}`},
		"fault.sse":       {"/v1/completions", `{"model":"fault",` + ids + `,"max_tokens":4,"stream":true}`},
	} {
		spec := plain
		if strings.HasPrefix(name, "fault") {
			spec += ",error_event=1"
		}
		withServer(t, spec, func(t *testing.T, b *bench) {
			resp := b.post(tc.path, tc.body, "X-Request-Id", "run-7")
			got := read(t, resp)
			if want := map[bool]string{true: "text/event-stream; charset=utf-8", false: "application/json"}[strings.HasSuffix(name, ".sse")]; resp.Header.Get("Content-Type") != want {
				t.Errorf("%s: content type %s", name, resp.Header.Get("Content-Type"))
			}
			golden(t, name, got)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

func TestHangUpFreesTheSlotAtOnce(t *testing.T) {
	for _, stream := range []bool{true, false} {
		withServer(t, plain+",max_num_seqs=1", func(t *testing.T, b *bench) {
			ctx, hangUp := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if resp, err := b.try(ctx, "/v1/completions", fmt.Sprintf(`{"prompt":"x","max_tokens":5000,"stream":%v}`, stream)); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
			time.Sleep(time.Second)
			if n := b.metric(`vllm:num_requests_running{engine="0",model_name="llama-3.1-8b"}`); n != "1" {
				t.Errorf("%s running before", n)
			}
			hangUp()
			<-gone
			synctest.Wait()
			if n := b.metric(`vllm:num_requests_running{engine="0",model_name="llama-3.1-8b"}`); n != "0" {
				t.Errorf("%s running after the hang-up", n)
			}
			start := time.Now()
			read(t, b.post("/v1/completions", `{"prompt":"x","max_tokens":1}`))
			if d := time.Since(start); d > 100*time.Millisecond {
				t.Errorf("the next request took %v", d)
			}
			if n := b.metric(`vllm:request_success_total{engine="0",finished_reason="abort",model_name="llama-3.1-8b"}`); n != "1" {
				t.Errorf("%s aborted", n)
			}
		})
	}
}

func TestEndOfContextDrains(t *testing.T) {
	withServer(t, plain, func(t *testing.T, b *bench) {
		resp := b.post("/v1/completions", `{"prompt":"x","max_tokens":100,"stream":true,"stream_options":{"include_usage":true}}`)
		time.Sleep(200 * time.Millisecond)
		b.stop()
		synctest.Wait()
		late := b.post("/v1/completions", `{"prompt":"x"}`)
		if body := read(t, late); late.StatusCode != 503 || !strings.Contains(body, "shutting down") {
			t.Errorf("while draining: %d %s", late.StatusCode, body)
		}
		if tm := streamed(t, resp, time.Now()); tm.tokens != 100 {
			t.Errorf("%d tokens of the request in flight", tm.tokens)
		}
		if err := <-b.ran; err != nil {
			t.Error(err)
		}
		b.ran <- nil
	})
}

func TestCloseCutsStreams(t *testing.T) {
	withServer(t, plain, func(t *testing.T, b *bench) {
		resp := b.post("/v1/completions", `{"prompt":"x","max_tokens":5000,"stream":true}`)
		time.Sleep(200 * time.Millisecond)
		b.server.Close()
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("stream ended with %v", err)
		}
		resp.Body.Close()
	})
}
