package openai_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/testshared"
	"tailgate/replay"
	"tailgate/replay/openai"
	"tailgate/schemas"
)

// seen is all that a transport records of a request, and of what the server saw of it, but for times.
type seen struct {
	Status, Kind           string
	HTTP                   int
	Streamed               bool
	Events                 int32
	FirstEventTokens       int32
	Usage                  replay.Usage
	Answer                 replay.Answer
	Queue                  time.Duration
	Head, First, Out, Last bool // the stamps are there
	Order                  bool // … and in order
}

func seenOf(o *replay.Outcome) seen {
	happened := func(d time.Duration) bool { return d != replay.Never }
	s := seen{
		o.Status, o.ErrorKind, o.HTTPStatus, o.Streamed, o.Events, o.FirstEventTokens, o.Usage, o.Answer, o.ServerQueue,
		happened(o.FirstByte), happened(o.FirstToken), happened(o.FirstOutput), happened(o.LastToken), happened(o.Sent) && happened(o.Closed),
	}
	if o.ErrorKind == replay.KindEndless { // how many there were is a matter of time
		s.Events = min(s.Events, 1)
	}
	last := o.Sent
	for _, at := range []time.Duration{o.FirstByte, o.FirstToken, o.FirstOutput, o.LastToken, o.Closed} {
		if happened(at) {
			s.Order = s.Order && at >= last
			last = at
		}
	}
	return s
}

// scripted serves a behaviour on the loopback device and keeps what it read.
type scripted struct {
	url string

	mu       sync.Mutex
	conns    int
	requests []string
}

func newScripted(t *testing.T, f func(s *scripted, conn net.Conn, in *bufio.Reader)) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &scripted{url: "http://" + l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
			go func() {
				defer conn.Close()
				f(s, conn, bufio.NewReader(conn))
			}()
		}
	}()
	return s
}

// request reads one request whole.
func (s *scripted) request(in *bufio.Reader) bool {
	var raw bytes.Buffer
	req, err := http.ReadRequest(bufio.NewReaderSize(io.TeeReader(oneByte{in}, &raw), 16))
	if err != nil {
		return false
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return false
	}
	head, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.ReplaceAll(head, strings.TrimPrefix(s.url, "http://"), "HOST")+"\n"+string(body))
	return true
}

// oneByte keeps a reader behind it from taking more than it needs.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

// each answers every request of a connection with the same bytes.
func each(answer string) func(*scripted, net.Conn, *bufio.Reader) {
	return func(s *scripted, conn net.Conn, in *bufio.Reader) {
		for s.request(in) {
			io.WriteString(conn, answer)
		}
	}
}

// once answers one request and then does what after says.
func once(answer string, after func(net.Conn)) func(*scripted, net.Conn, *bufio.Reader) {
	return func(s *scripted, conn net.Conn, in *bufio.Reader) {
		if s.request(in) {
			io.WriteString(conn, answer)
			if after != nil {
				after(conn)
			}
		}
	}
}

// slowly writes in pieces.
func slowly(answer string, size int) func(*scripted, net.Conn, *bufio.Reader) {
	return func(s *scripted, conn net.Conn, in *bufio.Reader) {
		for s.request(in) {
			for rest := answer; rest != ""; {
				n := min(size, len(rest))
				io.WriteString(conn, rest[:n])
				rest = rest[n:]
			}
		}
	}
}

func chunked(pieces ...string) string {
	out := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, p := range pieces {
		out += fmt.Sprintf("%x\r\n%s\r\n", len(p), p)
	}
	return out
}

func sized(head, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

const (
	usage    = `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}` + "\n\n"
	doneLine = "data: [DONE]\n\n"
	finish   = `data: {"choices":[{"text":"y","finish_reason":"stop"}]}` + "\n\n"
	jsonHead = "200 OK\r\nContent-Type: application/json"
	answerOK = `{"choices":[{"text":"abc","finish_reason":"stop"}],"usage":{"completion_tokens":3}}`
)

// TestFaultsAreTheSameOverEveryTransport sends two requests, one after the other, for every thing that a server may do, and
// compares all that is recorded but times, the requests as the server got them, and the connections that it took.
func TestFaultsAreTheSameOverEveryTransport(t *testing.T) {
	stream := chunked(event, finish, usage, doneLine)
	cases := []struct {
		name    string
		serve   func(*scripted, net.Conn, *bufio.Reader)
		timeout time.Duration
		want    string // status and kind of the first request, as "status kind"
		conns   int    // 0 = whatever is the same
		input   int32  // tokens; 0 = 10
		headers []openai.Header
		raced   bool // net/http gives the connection back in a goroutine of its own, which the next request may outrun
		single  bool // one request: the second would race with the connection's end
	}{
		{name: "a stream, kept alive", serve: each(stream + "0\r\n\r\n"), want: "ok ", conns: 1},
		{name: "a stream in one-byte packets", serve: slowly(stream+"0\r\n\r\n", 1), want: "ok ", conns: 1},
		{name: "a stream cut in twos and threes", serve: slowly(stream+"0\r\nA: b\r\n\r\n", 3), want: "ok ", conns: 1},
		{name: "trailers", serve: each(stream + "0\r\nServer-Timing: x\r\nB: c\r\n\r\n"), want: "ok ", conns: 1},
		{name: "a malformed trailer after the end", serve: each(stream + "0\r\nnothing\r\n\r\n"), want: "ok ", conns: 2},
		{name: "a malformed trailer, no end", serve: each(chunked(event) + "0\r\nnothing\r\n\r\n"), want: "reset bad_http", conns: 2},
		{name: "a trailer that is cut", serve: once(chunked(event)+"0\r\nA", nil), want: "reset bad_http", conns: 2},
		{name: "chunk extensions", serve: each("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x;a=b\r\n%s\r\n0\r\n\r\n", len(event+doneLine), event+doneLine)), want: "ok ", conns: 1},
		{name: "a chunk line ending in LF", serve: each(chunked(event) + "5\nabcde\r\n0\r\n\r\n"), want: "reset bad_http"},
		{name: "a chunk line with a CR inside", serve: each(chunked(event) + "5\r;\r\nabcde\r\n0\r\n\r\n"), want: "reset bad_http"},
		{name: "an invalid chunk size", serve: each(chunked(event) + "xyz\r\n"), want: "reset bad_http"},
		{name: "a chunk of more than 64 bits", serve: each(chunked(event) + "fffffffffffffffff\r\n"), want: "reset bad_http"},
		{name: "no CR LF behind a chunk", serve: each(chunked(event) + "2\r\nabXY"), want: "reset bad_http"},
		{name: "a chunk line that never ends", serve: each(chunked(event) + strings.Repeat("1", 3000)), want: "reset bad_http"},
		{name: "cut in a chunk", serve: once(chunked(event)+"ff\r\nabc", nil), want: "truncated no_finish"},
		{name: "cut in a chunk after the end", serve: once(stream+"ff\r\nabc", nil), want: "ok "},
		{name: "length", serve: each(sized("200 OK\r\nContent-Type: text/event-stream", event+finish+doneLine)), want: "ok ", conns: 1},
		{name: "length, cut", serve: once("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 900\r\n\r\n"+event, nil), want: "truncated no_finish"},
		{name: "two lengths", serve: each("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"), want: "reset other"},
		{name: "bytes behind the answer", serve: each(sized(jsonHead, answerOK) + "more"), want: "ok ", conns: 2},
		{name: "ended by the connection", serve: once(sseHead+event+finish, nil), want: "ok ", conns: 2},
		{name: "ended by the connection, HTTP/1.0", serve: once(strings.Replace(sseHead, "1.1", "1.0", 1)+event+finish, nil), want: "ok ", conns: 2},
		{name: "HTTP/1.0 kept alive", serve: each(strings.Replace(sized(jsonHead+"\r\nConnection: keep-alive", answerOK), "1.1", "1.0", 1)), want: "ok ", conns: 1},
		{name: "connection: close", serve: each(sized(jsonHead+"\r\nConnection: close", answerOK)), want: "ok ", conns: 2},
		{name: "half-closed after the answer", serve: once(sized(jsonHead, answerOK), func(c net.Conn) { c.(*net.TCPConn).CloseWrite(); hold(c) }), want: "ok ", single: true},
		{name: "half-closed in the middle", serve: once(chunked(event), func(c net.Conn) { c.(*net.TCPConn).CloseWrite(); hold(c) }), want: "truncated no_finish"},
		{name: "reset before the answer", serve: once("", reset), want: "reset reset", conns: 2},
		{name: "reset in the head", serve: once("HTTP/1.1 200 OK\r\nA: ", reset), want: "reset reset", conns: 2},
		{name: "reset in the middle", serve: once(chunked(event), reset), want: "reset reset", conns: 2},
		{name: "reset after the end", serve: once(chunked(event, finish, doneLine), reset), want: "ok ", conns: 2},
		{name: "closed before the answer", serve: once("", nil), want: "reset reset", conns: 2},
		{name: "closed in the head", serve: once("HTTP/1.1 200 OK\r\nA: b\r\n", nil), want: "reset reset", conns: 2},
		{name: "continue, early hints", serve: each("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + sized(jsonHead, answerOK)), want: "ok ", conns: 1},
		{name: "continue, one byte at a time", serve: slowly("HTTP/1.1 100 Continue\r\n\r\n"+sized(jsonHead, answerOK), 1), want: "ok ", conns: 1},
		{name: "switching protocols", serve: once("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nabc", nil), want: "http_error http_other"},
		{name: "switching, without a word", serve: once("HTTP/1.1 101 Switching Protocols\r\n\r\n", hold), want: "http_error http_other"},
		{name: "no content", serve: each("HTTP/1.1 204 No Content\r\n\r\n"), want: "http_error http_other", conns: 1},
		{name: "not modified", serve: each("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"), want: "http_error redirect", conns: 1},
		{name: "a redirect", serve: each(sized("307 Temporary Redirect\r\nLocation: /x", "x")), want: "http_error redirect", conns: 1},
		{name: "a redirect without an end", serve: once("HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", nil), want: "http_error redirect", conns: 2},
		{name: "a refusal", serve: each(sized("400 Bad Request", "maximum context length")), want: "http_error prompt_too_long", conns: 1},
		{name: "a long refusal", serve: each(sized("500 No", strings.Repeat("x", 1_000_000))), want: "http_error http_5xx", conns: 2},
		{name: "a refusal that is cut", serve: once("HTTP/1.1 429 No\r\nContent-Length: 9\r\n\r\nx", nil), want: "rate_limited rate_limited", conns: 2},
		{name: "compressed", serve: each(sized(jsonHead+"\r\nContent-Encoding: gzip", "\x1f\x8b")), want: "http_error encoded"},
		{name: "a web page", serve: each(sized("200 OK\r\nContent-Type: text/html", "<html>")), want: "http_error not_sse"},
		{name: "an empty web page", serve: each(sized("200 OK\r\nContent-Type: text/html", "")), want: "http_error not_sse", conns: 1},
		{name: "an empty stream", serve: each(sized("200 OK\r\nContent-Type: text/event-stream", "")), want: "truncated no_finish", conns: 1},
		{name: "whole, with the queue's time", serve: each(sized(jsonHead+"\r\nX-Queue-Time: 12.5", answerOK)), want: "ok ", conns: 1},
		{name: "whole, cut", serve: once("HTTP/1.1 "+jsonHead+"\r\nContent-Length: 900\r\n\r\n{", nil), want: "truncated no_finish"},
		{name: "whole, broken", serve: each(sized(jsonHead, "{")), want: "http_error bad_json", conns: 1},
		{name: "an error event", serve: each(chunked(event, `data: {"error":{"message":"m","code":500}}`+"\n\n", doneLine) + "0\r\n\r\n"), want: "error_event engine_error"},
		{name: "no HTTP, left open", serve: once("SSH-2.0-OpenSSH_9\r\n", hold), want: "reset bad_http", conns: 2},
		{name: "a header without a colon, left open", serve: once("HTTP/1.1 200 OK\r\nnothing\r\n", hold), want: "reset bad_http", conns: 2},
		{name: "a head of 11 MB", serve: once("HTTP/1.1 200 OK\r\n"+strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 11_000), hold), want: "reset bad_http", conns: 2},
		{name: "a header line of 3 MB", serve: each(sized(jsonHead+"\r\nA: "+strings.Repeat("b", 3<<20), answerOK)), want: "ok ", conns: 1},
		{name: "an event of 15 MiB", serve: each(sized("200 OK\r\nContent-Type: text/event-stream",
			`data: {"choices":[{"text":"`+strings.Repeat("x", 15<<20)+`"}]}`+"\n\n"+doneLine)), want: "ok ", raced: true},
		{name: "a line of 17 MiB", serve: each(sized("200 OK\r\nContent-Type: text/event-stream", "data: "+strings.Repeat("x", 17<<20))), want: "error_event event_too_long"},
		{name: "an answer before the request is read", serve: func(_ *scripted, conn net.Conn, in *bufio.Reader) {
			_, _ = in.Peek(1) // to net/http an answer before it is unsolicited
			io.WriteString(conn, sized("413 Too Large\r\nConnection: close", "too large"))
			hold(conn)
		}, want: "http_error http_4xx", input: 500_000},
		{name: "a server that reads slowly", serve: func(s *scripted, conn net.Conn, in *bufio.Reader) {
			conn.(*net.TCPConn).SetReadBuffer(64 << 10)
			for s.request(in) {
				io.WriteString(conn, sized(jsonHead, answerOK))
			}
		}, want: "ok ", conns: 1, input: 100_000},
		{name: "never answers", serve: once("", hold), timeout: 300 * time.Millisecond, want: "timeout timeout", conns: 2},
		{name: "never ends", serve: once(sseHead, until(time.Millisecond, event)), timeout: 300 * time.Millisecond, want: "timeout endless", conns: 2},
		{name: "a byte at a time", serve: once(sseHead, until(time.Millisecond, "d")), timeout: 300 * time.Millisecond, want: "timeout trickle", conns: 2},
		{name: "whole, never ends", serve: once("HTTP/1.1 "+jsonHead+"\r\n\r\n", until(time.Millisecond, " ")), timeout: 300 * time.Millisecond, want: "timeout trickle", conns: 2},
		{name: "a refusal that never ends", serve: once("HTTP/1.1 500 No\r\n\r\n", until(time.Millisecond, " ")), timeout: 300 * time.Millisecond, want: "http_error http_5xx", conns: 2},
		{name: "never answers after a good one", serve: func(s *scripted, conn net.Conn, in *bufio.Reader) {
			if s.request(in) {
				io.WriteString(conn, sized(jsonHead, answerOK))
				hold(conn)
			}
		}, timeout: time.Second, want: "ok ", conns: 1},
		{name: "dies with the second request", serve: func(s *scripted, conn net.Conn, in *bufio.Reader) {
			if s.request(in) {
				io.WriteString(conn, sized(jsonHead, answerOK))
				_ = s.request(in)
			}
		}, want: "ok ", conns: 1},
		{name: "dies with the second request, which is idempotent", serve: func(s *scripted, conn net.Conn, in *bufio.Reader) {
			if s.request(in) {
				io.WriteString(conn, sized(jsonHead, answerOK))
				_ = s.request(in)
			}
		}, want: "ok ", conns: 2, headers: []openai.Header{{Name: "Idempotency-Key", Value: "{{row}}"}}},
		{name: "headers", serve: each(sized(jsonHead, answerOK)), want: "ok ", conns: 1, headers: []openai.Header{
			{Name: "User-Agent", Value: "someone"}, {Name: "Accept", Value: " a "}, {Name: "X-Session", Value: "{{session}}/{{turn}}"}, {Name: "Zz", Value: ""},
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "an answer before the request is read" {
				testshared.NotUnderRace(t, "net/http so slowed down may still be writing the second request when its answer has come, and calls it a reset")
			}
			t.Parallel()
			type all struct {
				Seen     []seen
				Conns    int
				Requests []string
			}
			got := map[string]all{}
			for _, name := range transports() {
				s := newScripted(t, c.serve)
				cl := client(t, openai.Options{Targets: []string{s.url}, Transport: name, Timeout: c.timeout, RunID: "run", APIKey: "k", Headers: c.headers})
				var a all
				for row := range int64(2) {
					if c.single && row > 0 {
						break
					}
					out, session, n := int32(3), "s 1", c.input
					if n == 0 {
						n = 10
					}
					call := &replay.Call{KeepAnswer: true, Zero: time.Now(), Outcome: replay.NewOutcome(),
						Row: &schemas.TraceRow{Row: row, InputTokens: n, OutputTokens: &out, HashIDs: []int64{1}, Session: &session}}
					done := make(chan struct{})
					cl.Send(t.Context(), call, func(*replay.Call) { close(done) })
					<-done
					a.Seen = append(a.Seen, seenOf(&call.Outcome))
				}
				facts := cl.Facts()[0]
				if err := cl.Close(); err != nil {
					t.Error(err)
				}
				s.mu.Lock()
				a.Conns, a.Requests = s.conns, s.requests
				s.mu.Unlock()
				if c.raced && name == openai.TransportNetHTTP && a.Conns == 2 {
					a.Conns = 1
				}
				if first := a.Seen[0].Status + " " + a.Seen[0].Kind; first != c.want || !a.Seen[0].Order || c.conns > 0 && int(facts.Connections) != c.conns {
					t.Errorf("%s: %q in order %v over %d connections; want %q over %d", name, first, a.Seen[0].Order, facts.Connections, c.want, c.conns)
				}
				if facts.Transport != name {
					t.Errorf("%s calls itself %s", name, facts.Transport)
				}
				got[name] = a
			}
			if diff := cmp.Diff(got[openai.TransportNetHTTP], got[transports()[len(transports())-1]]); diff != "" {
				t.Errorf("net/http (-), epoll (+):\n%s", diff)
			}
		})
	}
}
