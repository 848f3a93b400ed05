// Package transporttest holds implementations of replay.Transport to one behaviour: the acceptance suite that
// every transport's own tests call.
//
// Run serves HTTP over an in-process network in virtual time (testing/synctest), so that every stamp has one right
// value. RunReal serves it over the loopback device, for transports that are nothing without a kernel: a stamp is right there
// when it is not before what it stamps, and not in the future. It is no test of a target.
package transporttest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/internal/pipenet"
	"tailgate/replay"
	"tailgate/schemas"
)

// Dial connects to a target, whatever its address says.
type Dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// New makes the transport under test for these base URLs, over dial.
type New func(t *testing.T, targets []string, dial Dial) replay.Transport

// Format is what the servers of the suite speak.
type Format struct {
	// Token is one token-bearing event of a stream, its blank line included.
	Token string
	// End ends a stream that had so many tokens, its usage included.
	End func(tokens int) string
	// Whole is an answer of three tokens that is not streamed, Empty a complete one without a token.
	Whole, Empty string
}

// Chunks is the format of completions and chat.
var Chunks = Format{
	Token: `data: {"choices":[{"index":0,"text":"x","delta":{"content":"x"}}]}` + "\n\n",
	End: func(tokens int) string {
		return `data: {"choices":[{"index":0,"text":"","delta":{},"finish_reason":"length"}]}` + "\n\n" +
			fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":%d}}`, tokens) + "\n\ndata: [DONE]\n\n"
	},
	Whole: `{"choices":[{"text":"abc","message":{"content":"abc"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3}}`,
	Empty: `{"choices":[{"text":"","finish_reason":"stop"}]}`,
}

// Responses is the format of /v1/responses.
var Responses = Format{
	Token: "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","delta":"x"}` + "\n\n",
	End: func(tokens int) string {
		return "event: response.incomplete\n" + fmt.Sprintf(`data: {"type":"response.incomplete","response":{"status":"incomplete",`+
			`"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":10,"output_tokens":%d}}}`, tokens) + "\n\n"
	},
	Whole: `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"abc"}]}],` +
		`"usage":{"input_tokens":10,"output_tokens":3}}`,
	Empty: `{"object":"response","status":"completed","output":[]}`,
}

// Events writes a stream: one event with a token, flushed, at each of the times after the request; then its end,
// with a usage of tokens.
func (f Format) Events(w http.ResponseWriter, tokens int, at ...time.Duration) {
	w.Header().Set("Content-Type", "text/event-stream")
	last := time.Duration(0)
	for _, d := range at {
		time.Sleep(d - last)
		last = d
		io.WriteString(w, f.Token)
		w.(http.Flusher).Flush()
	}
	io.WriteString(w, f.End(tokens))
}

// Events writes a stream of Chunks.
func Events(w http.ResponseWriter, tokens int, at ...time.Duration) { Chunks.Events(w, tokens, at...) }

const ms = time.Millisecond

// Run runs the suite with servers that speak f, in virtual time.
func Run(t *testing.T, f Format, newTransport New) { run(t, f, &env{newTransport: newTransport}) }

// RunReal runs the suite with servers that speak f on the loopback device. The transport has no dial.
func RunReal(t *testing.T, f Format, newTransport New) {
	run(t, f, &env{newTransport: newTransport, real: true})
}

// env is where a suite runs.
type env struct {
	newTransport New
	real         bool
}

// test runs one test of the suite.
func (e *env) test(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		if e.real {
			f(t)
			return
		}
		synctest.Test(t, f)
	})
}

// long is how long something takes that must not be waited for.
func (e *env) long() time.Duration {
	if e.real {
		return 300 * ms
	}
	return time.Minute
}

// wrong tells that a stamp is not what it should be.
func (e *env) wrong(got, want time.Duration, b *bench) bool {
	if !e.real || want == never {
		return got != want
	}
	return got < want || got > time.Since(b.zero)
}

func run(t *testing.T, f Format, e *env) {
	for _, c := range answers(f) {
		e.test(t, c.name, func(t *testing.T) { c.run(t, e) })
	}
	e.test(t, "Send returns at once", func(t *testing.T) { testSendReturnsAtOnce(t, f, e) })
	e.test(t, "cancelled", func(t *testing.T) { testCancel(t, f, e) })
	e.test(t, "round robin", func(t *testing.T) { testRoundRobin(t, f, e) })
	e.test(t, "no cap on requests in flight", func(t *testing.T) { testNoCap(t, f, e) })
	e.test(t, "nobody listens", func(t *testing.T) { testRefused(t, e) })
}

// bench is one transport with one server.
type bench struct {
	env     *env
	tr      replay.Transport
	targets []string // as the transport has them
	zero    time.Time
}

// start serves h and makes the transport; everything ends with the test.
func (e *env) start(t *testing.T, targets []string, h http.HandlerFunc) *bench {
	t.Helper()
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	var served sync.WaitGroup
	b := &bench{env: e, targets: slices.Clone(targets)}
	var dial Dial
	if e.real {
		for i, target := range targets {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			u, _ := url.Parse(target) // a constant
			u.Host = l.Addr().String()
			b.targets[i] = u.String()
			served.Go(func() { _ = srv.Serve(l) })
		}
	} else {
		l := pipenet.Listen()
		dial = l.DialContext
		served.Go(func() { _ = srv.Serve(l) })
		t.Cleanup(func() { l.Close() })
	}
	b.tr, b.zero = e.newTransport(t, b.targets, dial), time.Now()
	t.Cleanup(func() {
		if err := b.tr.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		srv.Close()
		served.Wait()
	})
	return b
}

// call makes a call for a row of ten tokens in and three out.
func (b *bench) call(stream bool) *replay.Call {
	out := int32(3)
	row := &schemas.TraceRow{InputTokens: 10, OutputTokens: &out, HashIDs: []int64{1}, Stream: &stream}
	return &replay.Call{Row: row, Phase: schemas.PhaseMeasure, Zero: b.zero, Outcome: replay.NewOutcome()}
}

// do sends one call and waits for its end.
func (b *bench) do(ctx context.Context, t *testing.T, c *replay.Call) *replay.Outcome {
	t.Helper()
	done := make(chan *replay.Call, 2)
	b.tr.Send(ctx, c, func(c *replay.Call) { done <- c })
	if got := <-done; got != c {
		t.Fatal("done was called with another call")
	}
	if !b.env.real {
		synctest.Wait()
	}
	if len(done) > 0 {
		t.Fatal("done was called twice")
	}
	return &c.Outcome
}

// answer is one thing that a server may do, and what must be seen of it.
type answer struct {
	name         string
	stream       bool
	handle       http.HandlerFunc
	status, kind string
	http         int
	// Stamps in ms since the request was sent, -1 = never.
	first, last, closed time.Duration
	tokens              int32 // -1 = not told
}

func plain(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(5 * ms)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

// hangUp answers with what and then breaks the connection in the middle of the body.
func hangUp(what string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		time.Sleep(5 * ms)
		_, _ = buf.WriteString(what) // Flush reports it
		buf.Flush()
		conn.Close()
	}
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	never      = replay.Never
)

// inChunk frames s as one chunk of a chunked body.
func inChunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func answers(f Format) []answer {
	const js = "application/json"
	return []answer{
		{"streamed", true, func(w http.ResponseWriter, _ *http.Request) { f.Events(w, 3, 10*ms, 20*ms, 35*ms) },
			schemas.ResultOK, "", 200, 10 * ms, 35 * ms, 35 * ms, 3},
		{"whole", false, plain(200, js, f.Whole), schemas.ResultOK, "", 200, never, 5 * ms, 5 * ms, 3},
		{"whole although a stream was asked for", true, plain(200, js, f.Whole), schemas.ResultOK, "", 200, never, 5 * ms, 5 * ms, 3},
		{"whole but empty", false, plain(200, js, f.Empty), schemas.ResultEmpty, replay.KindNoToken, 200, never, never, 5 * ms, -1},
		{"whole with an error inside", false, plain(200, js, `{"error":{"message":"m","code":500}}`),
			schemas.ResultErrorEvent, replay.KindEngineError, 200, never, never, 5 * ms, -1},
		{"whole but broken", false, plain(200, js, `{"choices":[`), schemas.ResultHTTPError, replay.KindBadJSON, 200, never, never, 5 * ms, -1},
		{"a web page", true, plain(200, "text/html", "<html>"), schemas.ResultHTTPError, replay.KindNotSSE, 200, never, never, 5 * ms, -1},
		{"compressed", true, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			plain(200, "text/event-stream", "\x1f\x8b")(w, r)
		}, schemas.ResultHTTPError, replay.KindEncoded, 200, never, never, 5 * ms, -1},
		{"400", true, plain(400, js, `{"error":"m"}`), schemas.ResultHTTPError, replay.KindHTTP4xx, 400, never, never, 5 * ms, -1},
		{"a prompt that is too long", true, plain(400, js, `{"error":{"message":"This model's maximum context length is 8 tokens."}}`),
			schemas.ResultHTTPError, replay.KindPromptTooLong, 400, never, never, 5 * ms, -1},
		{"401", true, plain(401, js, `{}`), schemas.ResultHTTPError, replay.KindUnauthorized, 401, never, never, 5 * ms, -1},
		{"404", true, plain(404, js, `{}`), schemas.ResultHTTPError, replay.KindNotFound, 404, never, never, 5 * ms, -1},
		{"429", true, plain(429, js, `{}`), schemas.ResultRateLimited, replay.KindRateLimited, 429, never, never, 5 * ms, -1},
		{"500", true, plain(500, "text/plain", "m"), schemas.ResultHTTPError, replay.KindHTTP5xx, 500, never, never, 5 * ms, -1},
		{"503", true, plain(503, "text/plain", "m"), schemas.ResultHTTPError, replay.KindRateLimited, 503, never, never, 5 * ms, -1},
		{"redirect", true, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, schemas.ResultHTTPError, replay.KindRedirect, 307, never, never, 0, -1},
		{"closed in the middle of a stream", true, hangUp(streamHead + inChunk(f.Token)),
			schemas.ResultTruncated, replay.KindNoFinish, 200, 5 * ms, 5 * ms, 5 * ms, -1},
		{"broken chunks", true, hangUp(streamHead + inChunk(f.Token) + "zz\r\n"),
			schemas.ResultReset, replay.KindBadHTTP, 200, 5 * ms, 5 * ms, 5 * ms, -1},
		{"no HTTP", true, hangUp("220 mail.example ESMTP\r\n"), schemas.ResultReset, replay.KindBadHTTP, 0, never, never, 5 * ms, -1},
		{"closed before the answer", true, hangUp(""), schemas.ResultReset, replay.KindReset, 0, never, never, 5 * ms, -1},
		{"a stream that stays open after its end", true, func(w http.ResponseWriter, r *http.Request) {
			f.Events(w, 1, 10*ms)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, schemas.ResultOK, "", 200, 10 * ms, 10 * ms, 1010 * ms, 1},
	}
}

func (a *answer) run(t *testing.T, e *env) {
	var requests atomic.Int32
	b := e.start(t, []string{"http://a"}, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		a.handle(w, r)
	})
	later := time.Second // a request that does not start at zero
	if e.real {
		later = ms
	}
	time.Sleep(later)
	c := b.call(a.stream)
	o := b.do(t.Context(), t, c)
	if e.wrong(o.Sent, later, b) {
		t.Errorf("sent at %v", o.Sent)
	}
	since := func(d time.Duration) time.Duration {
		if d == never {
			return never
		}
		return d - o.Sent
	}
	if o.Status != a.status || o.ErrorKind != a.kind || o.HTTPStatus != a.http || o.Usage.Output != a.tokens || o.Target != b.targets[0] {
		t.Errorf("status %q, kind %q, http %d, %d tokens, target %q", o.Status, o.ErrorKind, o.HTTPStatus, o.Usage.Output, o.Target)
	}
	if first, last, closed := since(o.FirstToken), since(o.LastToken), since(o.Closed); e.wrong(first, a.first, b) || e.wrong(last, a.last, b) || e.wrong(closed, a.closed, b) {
		t.Errorf("first %v, last %v, closed %v; want %v, %v, %v", first, last, closed, a.first, a.last, a.closed)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("the server saw %d requests", n)
	}
}

func testSendReturnsAtOnce(t *testing.T, f Format, e *env) {
	b := e.start(t, []string{"http://a"}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		f.Events(w, 1, e.long())
	})
	done := make(chan *replay.Call)
	for range 3 {
		b.tr.Send(t.Context(), b.call(true), func(c *replay.Call) { done <- c })
	}
	if d := time.Since(b.zero); d != 0 && !e.real || d > e.long() {
		t.Errorf("Send took %v", d)
	}
	for range 3 {
		if c := <-done; e.wrong(c.Outcome.FirstToken, e.long(), b) {
			t.Errorf("first token at %v", c.Outcome.FirstToken)
		}
	}
}

func testCancel(t *testing.T, f Format, e *env) {
	for _, when := range []string{"waiting", "streaming"} {
		b := e.start(t, []string{"http://a"}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if when == "streaming" {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, f.Token)
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		after := min(time.Second, e.long())
		time.AfterFunc(after, cancel)
		o := b.do(ctx, t, b.call(true))
		if o.Status != schemas.ResultCancelled || o.ErrorKind != replay.KindAborted || e.wrong(o.Closed, after, b) {
			t.Errorf("%s: status %q, kind %q, closed %v", when, o.Status, o.ErrorKind, o.Closed)
		}
	}
}

func testRoundRobin(t *testing.T, f Format, e *env) {
	seen := map[string]int{}
	var mu sync.Mutex
	b := e.start(t, []string{"http://a", "http://b/v1/", "http://c"}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.Count(r.URL.Path, "v1") != 1 {
			t.Errorf("path %s", r.URL.Path)
		}
		mu.Lock()
		seen[r.Host]++
		mu.Unlock()
		f.Events(w, 1, ms)
	})
	for range 9 {
		c := b.call(true)
		o := b.do(t.Context(), t, c)
		mu.Lock()
		seen[o.Target]++
		mu.Unlock()
	}
	for _, name := range b.targets {
		u, _ := url.Parse(name) // a constant, or made of one
		if seen[name] != 3 || seen[u.Host] != 3 {
			t.Errorf("%s had %d of 9 requests by its name and %d at its address", name, seen[name], seen[u.Host])
		}
	}
}

func testNoCap(t *testing.T, f Format, e *env) {
	const n = 500
	b := e.start(t, []string{"http://a"}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		f.Events(w, 1, time.Second)
	})
	done := make(chan *replay.Call, n)
	for range n {
		b.tr.Send(t.Context(), b.call(true), func(c *replay.Call) { done <- c })
	}
	for range n {
		if c := <-done; c.Outcome.Status != schemas.ResultOK || e.wrong(c.Outcome.FirstToken, time.Second, b) {
			t.Fatalf("status %q, first token at %v", c.Outcome.Status, c.Outcome.FirstToken)
		}
	}
}

func testRefused(t *testing.T, e *env) {
	b := &bench{env: e, zero: time.Now()}
	if e.real {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		b.tr = e.newTransport(t, []string{"http://" + l.Addr().String()}, nil)
	} else {
		l := pipenet.Listen()
		l.Close()
		b.tr = e.newTransport(t, []string{"http://a"}, l.DialContext)
	}
	defer b.tr.Close()
	o := b.do(t.Context(), t, b.call(true))
	if o.Status != schemas.ResultReset || o.ErrorKind == "" || e.wrong(o.Sent, 0, b) || e.wrong(o.Closed, 0, b) || o.HTTPStatus != 0 {
		t.Errorf("status %q, kind %q, sent %v, closed %v", o.Status, o.ErrorKind, o.Sent, o.Closed)
	}
}
