package sim_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/sim"
)

// quick has steps of 100 µs.
const quick = "sim:a=.1,b=0,c=0,d=0,e=0"

func dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c.(*net.TCPConn)
}

// post is a request as it stands on the wire; header lines end with \r\n.
func post(path, header, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n%s\r\n%s", path, len(body), header, body)
}

func TestHTTPOnTheWire(t *testing.T) {
	address := loopback(t, quick, sim.ServerOptions{})
	const path, small = "/v1/completions", `{"prompt":"x","max_tokens":2}`
	for _, tc := range []struct {
		name, send string
		status     []int // of the answers, in order
		closes     bool  // the connection ends behind them
		header     string
		body       string // part of the last answer
	}{
		{"one after the other in one packet", post(path, "", small) + "GET /health HTTP/1.1\r\nHost: sim\r\n\r\n" + post(path, "", small), []int{200, 200, 200}, false, "", "cmpl-"},
		{"streams in one packet", post(path, "", `{"prompt":"x","max_tokens":3,"stream":true}`) + post(path, "", `{"prompt":"x","max_tokens":3,"stream":true}`), []int{200, 200}, false, "Content-Type: text/event-stream", "[DONE]"},
		{"asks to close", post(path, "Connection: close\r\n", small), []int{200}, true, "Connection: close", "cmpl-"},
		{"a stream, asks to close", post(path, "Connection: close\r\n", `{"prompt":"x","max_tokens":3,"stream":true}`), []int{200}, true, "Connection: close", "[DONE]"},
		{"HTTP/1.0", strings.Replace(post(path, "", small), "HTTP/1.1", "HTTP/1.0", 1), []int{200}, true, "", "cmpl-"},
		{"HTTP/1.0, a stream", strings.Replace(post(path, "", `{"prompt":"x","max_tokens":3,"stream":true}`), "HTTP/1.1", "HTTP/1.0", 1), []int{200}, true, "", "[DONE]"},
		{"a body in chunks", "POST " + path + " HTTP/1.1\r\nHost: sim\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"pro\r\n18\r\nmpt\":\"x\",\"max_tokens\":2}\r\n0\r\n\r\n", []int{200}, false, "", "cmpl-"},
		{"expects 100", post(path, "Expect: 100-continue\r\n", small), []int{100, 200}, false, "", "cmpl-"},
		{"no host", "GET /health HTTP/1.1\r\n\r\n", []int{400}, true, "", "Host"},
		{"no HTTP", "hello there\r\n\r\n", []int{400}, true, "", "no HTTP request"},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{505}, true, "", "HTTP/1"},
		{"long header", "GET /health HTTP/1.1\r\nHost: sim\r\nX: " + strings.Repeat("x", 2<<20), []int{431}, true, "", "larger than 1 MiB"},
		{"body over the limit", "POST " + path + " HTTP/1.1\r\nHost: sim\r\nContent-Length: 99999999999\r\n\r\n", []int{413}, true, "", "larger than 64 MiB"},
		{"wrong method", "DELETE " + path + " HTTP/1.1\r\nHost: sim\r\n\r\n", []int{405}, false, "Allow: POST", "must be POST"},
		{"wrong route", post("/v1/embeddings", "", "{}"), []int{404}, false, "", "no such route"},
		{"wrong content type", post(path, "Content-Type: text/plain\r\n", small), []int{415}, false, "", "only application/json"},
		{"content type with charset", post(path, "Content-Type: application/json; charset=utf-8\r\n", small), []int{200}, false, "", "cmpl-"},
	} {
		c := dial(t, address)
		go io.WriteString(c, tc.send)
		r := bufio.NewReader(c)
		last := ""
		for i, want := range tc.status {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Errorf("%s: answer %d: %v", tc.name, i, err)
				break
			}
			body, err := io.ReadAll(resp.Body)
			var head bytes.Buffer
			resp.Header.Write(&head)
			if resp.Close {
				head.WriteString("Connection: close") // which net/http takes out
			}
			last = string(body)
			if resp.StatusCode != want || err != nil || i == len(tc.status)-1 && !strings.Contains(head.String(), tc.header) {
				t.Errorf("%s: answer %d: %d %v\n%s", tc.name, i, resp.StatusCode, err, &head)
			}
			if want >= 400 {
				var e struct {
					Error struct{ Message, Type string }
				}
				if json.Unmarshal(body, &e) != nil || e.Error.Message == "" || e.Error.Type == "" {
					t.Errorf("%s: the error is %s", tc.name, body)
				}
			}
		}
		if !strings.Contains(last, tc.body) {
			t.Errorf("%s: answer %q", tc.name, last)
		}
		if tc.closes {
			if b, err := r.ReadByte(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: the connection goes on with %q, %v", tc.name, b, err)
			}
			continue
		}
		io.WriteString(c, "GET /health HTTP/1.1\r\nHost: sim\r\n\r\n")
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: the connection is of no more use: %v", tc.name, err)
		}
	}
}

// A reader that takes nothing for a while gets every token in the end, and holds up nobody.
func TestSlowReaderGetsEverything(t *testing.T) {
	address := loopback(t, quick, sim.ServerOptions{})
	c := dial(t, address)
	c.SetReadBuffer(64 << 10)
	const tokens = 30000
	io.WriteString(c, post("/v1/completions", "X-Request-Id: slow-1\r\n", fmt.Sprintf(`{"prompt":"x","max_tokens":%d,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`, tokens)))
	// Others come and go meanwhile, until the slow one's answer is complete but not read.
	for {
		resp, err := http.Post("http://"+address+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","max_tokens":300}`))
		if err != nil {
			t.Fatal(err)
		}
		read(t, resp)
		resp, err = http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(read(t, resp), `vllm:num_requests_running{engine="0",model_name="llama-3.1-8b"} 0`) {
			break
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "data: {") || strings.Contains(lines.Text(), `"choices":[]`) {
			continue
		}
		if n++; !strings.Contains(lines.Text(), fmt.Sprintf(`"completion_tokens":%d}`, n)) {
			t.Fatalf("token %d: %s", n, lines.Text())
		}
	}
	if n != tokens || lines.Err() != nil {
		t.Errorf("%d tokens, %v", n, lines.Err())
	}
}

// A client that has sent its next request already is not heard when it hangs up; the first write that fails tells.
func TestHangUpBehindTheNextRequest(t *testing.T) {
	address := loopback(t, quick, sim.ServerOptions{})
	c := dial(t, address)
	io.WriteString(c, post("/v1/completions", "", `{"prompt":"x","max_tokens":90000,"stream":true}`)+post("/v1/completions", "", `{"prompt":"x"}`))
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
		t.Fatal(err, resp)
	}
	c.SetLinger(0)
	c.Close()
	for {
		resp, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		if text := read(t, resp); strings.Contains(text, `finished_reason="abort",model_name="llama-3.1-8b"} 1`) {
			return
		}
	}
}

func TestResetIsAReset(t *testing.T) {
	address := loopback(t, quick+",reset=1", sim.ServerOptions{})
	for _, stream := range []bool{true, false} {
		c := dial(t, address)
		io.WriteString(c, post("/v1/completions", "", fmt.Sprintf(`{"prompt":"x","stream":%v}`, stream)))
		if b, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) || len(b) > 0 {
			t.Errorf("stream %v: %q, %v", stream, b, err)
		}
	}
}

// Virtual time in a bubble starts at a fixed date, so answers are equal to the byte.
func TestWireFaultsAreGolden(t *testing.T) {
	for name, tc := range map[string]struct{ spec, path, body string }{
		"empty.sse":            {"empty=1", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`},
		"shapes.sse":           {"role_first=1,chunk=1:3,reasoning=1:50%,late_usage=1:2500ms,keep_alive=1:1s", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":10,"stream":true,"stream_options":{"include_usage":true}}`},
		"shapes.json":          {"reasoning=1:50%", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":4}`},
		"response.sse":         {"reasoning=1:50%", "/v1/responses", `{"input":"x","max_output_tokens":4,"stream":true}`},
		"response.json":        {"seed=1", "/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call_output","output":"7"}],"instructions":"be brief","tools":[{"a":1}]}`},
		"response_failed.sse":  {"error_event=1", "/v1/responses", `{"input":"x","max_output_tokens":4,"stream":true}`},
		"response_empty.sse":   {"empty=1", "/v1/responses", `{"input":"x","stream":true}`},
		"completion_think.sse": {"reasoning=1:50%,chunk=1:2", "/v1/completions", `{"prompt":[1,2],"max_tokens":4,"stream":true}`},
	} {
		withServer(t, plain+","+tc.spec, func(t *testing.T, b *bench) {
			got := read(t, b.post(tc.path, tc.body, "X-Request-Id", "run-7"))
			if name == "response.json" {
				var v struct {
					Usage struct {
						Output int `json:"output_tokens"`
					}
				}
				if err := json.Unmarshal([]byte(got), &v); err != nil || v.Usage.Output != 256 {
					t.Errorf("%v %s", err, got)
				}
			}
			golden(t, name, got)
		})
	}
}

func TestCutBreaksOffBehindItsTokens(t *testing.T) {
	withServer(t, plain+",cut=1,seed=5", func(t *testing.T, b *bench) {
		resp := b.post("/v1/completions", `{"prompt":"x","max_tokens":40,"stream":true}`)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		n := bytes.Count(body, []byte(`"text":`))
		if !errors.Is(err, io.ErrUnexpectedEOF) || n == 0 || n >= 40 || !bytes.HasSuffix(body, []byte("}\n\n")) {
			t.Errorf("%d tokens, %v", n, err)
		}
	})
}

// A replica that dies takes its requests with it, and while none is alive requests are refused.
func TestKilledReplicaCutsItsStreams(t *testing.T) {
	withServer(t, plain+",kill=0@1s+2s", func(t *testing.T, b *bench) {
		resp := b.post("/v1/completions", `{"prompt":"x","max_tokens":5000,"stream":true}`)
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("stream ended with %v", err)
		}
		resp.Body.Close()
		if late := b.post("/v1/completions", `{"prompt":"x"}`); late.StatusCode != 503 || !strings.Contains(read(t, late), "no replica") {
			t.Errorf("while it is dead: %d", late.StatusCode)
		}
		time.Sleep(3 * time.Second) // of the bubble's time
		if again := b.post("/v1/completions", `{"prompt":"x"}`); again.StatusCode != 200 {
			t.Errorf("when it is back: %d", again.StatusCode)
		}
	})
}

func TestDrainClosesIdleConnections(t *testing.T) {
	s, err := sim.NewServer(mustConfig(t, quick), sim.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Serve(ctx, l) }()
	c := dial(t, l.Addr().String())
	io.WriteString(c, post("/v1/completions", "", `{"prompt":"x"}`))
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	read(t, resp)
	stop()
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection ended with %v", err)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is open after the drain")
	}
}

func TestTruthIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "truth.parquet")
	log, err := sim.NewTruthLog(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.NewServer(mustConfig(t, "sim:a=2,b=0,c=0,d=0,e=0,http_429=50%,seed=2"), sim.ServerOptions{Truth: log})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Serve(context.Background(), l) }()
	c := dial(t, l.Addr().String())
	r := bufio.NewReader(c)
	var before, after [8]time.Time
	var status [8]int
	for i := range before {
		// The first bytes come alone; they are what counts.
		request := post("/v1/completions", fmt.Sprintf("X-Request-Id: mine-%d\r\n", i), fmt.Sprintf(`{"prompt":"x","max_tokens":4,"stream":%v}`, i%4 != 3))
		before[i] = time.Now()
		io.WriteString(c, request[:20])
		time.Sleep(3 * time.Millisecond) // longer than a stamp may be off
		after[i] = time.Now()
		io.WriteString(c, request[20:])
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		status[i] = resp.StatusCode
		read(t, resp)
	}
	hung := dial(t, l.Addr().String())
	io.WriteString(hung, post("/v1/completions", "X-Request-Id: hung-8\r\n", `{"prompt":"x","max_tokens":90000,"stream":true}`))
	if resp, err := http.ReadResponse(bufio.NewReader(hung), nil); err != nil || resp.StatusCode != 200 {
		t.Fatal(err, resp)
	}
	hung.Close()
	for running := true; running; {
		resp, err := http.Get("http://" + l.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		running = !strings.Contains(read(t, resp), `vllm:num_requests_running{engine="0",model_name="llama-3.1-8b"} 0`)
	}
	s.Close()
	if err := errors.Join(<-ran, log.Close()); err != nil {
		t.Fatal(err)
	}
	rows, footer, err := parquetio.ReadFile[schemas.Truth](path)
	if err != nil || footer[schemas.KeySchema] != schemas.TableTruth {
		t.Fatal(err, footer)
	}
	if len(rows) != 9 {
		t.Fatalf("%d rows", len(rows))
	}
	slices.SortFunc(rows, func(a, b schemas.Truth) int { return a.ReceivedAt.Compare(b.ReceivedAt) })
	for i, row := range rows[:8] {
		want := map[int]string{200: schemas.ResultOK, 429: schemas.ResultRateLimited}[status[i]]
		if row.RequestID != fmt.Sprint("mine-", i) || row.Status != want || int(row.HTTPStatus) != status[i] || row.Op != schemas.OpCompletion || row.Conn != 0 {
			t.Errorf("row %d: %+v", i, row)
		}
		if row.KernelStamp && (row.ReceivedAt.Before(before[i].Truncate(time.Microsecond)) || row.ReceivedAt.After(after[i])) {
			t.Errorf("row %d: received at %v, sent from %v to %v", i, row.ReceivedAt, before[i], after[i])
		}
		if read := row.ReceivedAt.Add(time.Duration(row.ReadUs) * time.Microsecond); read.Before(after[i].Add(-time.Microsecond)) {
			t.Errorf("row %d: read whole %v before it was sent whole", i, after[i].Sub(read))
		}
		tokens := map[bool]int{true: 4}[status[i] == 200 && i%4 != 3]
		if len(row.TokenUs) != tokens || row.Streamed != (i%4 != 3) {
			t.Errorf("row %d: tokens at %v", i, row.TokenUs)
		}
		at := row.ReadUs
		for _, us := range row.TokenUs {
			if int64(us) < at || int64(us) > row.ClosedUs {
				t.Errorf("row %d: read at %d µs, tokens at %v, closed at %d", i, row.ReadUs, row.TokenUs, row.ClosedUs)
			}
			at = int64(us)
		}
	}
	if row := rows[8]; row.Status != schemas.ResultCancelled || int(row.OutputTokens) != len(row.TokenUs) {
		t.Errorf("the request that was hung up: %+v", row)
	}
}

// The detokenizer keeps counts.
func TestDetokenize(t *testing.T) {
	withServer(t, plain, func(t *testing.T, b *bench) {
		var v struct{ Prompt string }
		if err := json.Unmarshal([]byte(read(t, b.post("/detokenize", `{"tokens":[1,2,3,99999]}`))), &v); err != nil || len(v.Prompt) != 16 {
			t.Errorf("%q, %v", v.Prompt, err)
		}
		if got := read(t, b.post("/detokenize", `{"tokens":"x"}`)); !strings.Contains(got, `"param":"tokens"`) {
			t.Error(got)
		}
		if got := b.get("/v1/models/llama-3.1-8b"); !strings.Contains(got, `"object":"model"`) {
			t.Error(got)
		}
		if got := b.get("/v1/models/other/one"); !strings.Contains(got, `"code":404`) {
			t.Error(got)
		}
	})
}
