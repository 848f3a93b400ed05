package openai_test

import (
	"bufio"
	"compress/gzip"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tailgate/replay"
	"tailgate/replay/openai"
	"tailgate/replay/transporttest"
	"tailgate/schemas"
)

// send sends one row of ten tokens in and three out, and waits for its end.
func send(t *testing.T, cl *openai.Client) *replay.Outcome {
	t.Helper()
	out := int32(3)
	call := &replay.Call{
		Row:  &schemas.TraceRow{InputTokens: 10, OutputTokens: &out, HashIDs: []int64{1}},
		Zero: time.Now(), Outcome: replay.NewOutcome(),
	}
	done := make(chan struct{})
	cl.Send(t.Context(), call, func(*replay.Call) { close(done) })
	<-done
	return &call.Outcome
}

// raw answers every connection with bytes of its own and then does what after says.
func raw(t *testing.T, answer string, after func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				io.WriteString(conn, answer)
				if after != nil {
					after(conn)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// served starts a server whose complaints nobody wants to read.
func served(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(srv.Close)
	return srv
}

func url(srv *httptest.Server) string { srv.Start(); return srv.URL }

const (
	sseHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	event   = `data: {"choices":[{"text":"x"}]}` + "\n\n"
)

// reset ends a connection by RST.
func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

// until hands bytes to the client at a steady pace until it hangs up.
func until(pace time.Duration, piece string) func(net.Conn) {
	return func(conn net.Conn) {
		for {
			if _, err := io.WriteString(conn, piece); err != nil {
				return
			}
			time.Sleep(pace) // how slowly the target answers
		}
	}
}

// hold keeps a connection open until the client hangs up.
func hold(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func TestBadTargets(t *testing.T) {
	const limit = 150 * time.Millisecond
	closed := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return "http://" + l.Addr().String()
	}
	cases := []struct {
		name         string
		target       func(t *testing.T) string
		status, kind string
		timeout      time.Duration
		says         string // part of the sentence of the summary
	}{
		{"nobody listens", func(*testing.T) string { return closed() }, schemas.ResultReset, replay.KindConnectRefused, 0, "nobody listened"},
		{"no such name", func(*testing.T) string { return "http://nowhere.invalid:1" }, schemas.ResultReset, replay.KindDNS, 0, "did not resolve"},
		{"dies before the answer", func(t *testing.T) string { return raw(t, "", reset) }, schemas.ResultReset, replay.KindReset, 0, "the connection broke"},
		{"dies in the middle", func(t *testing.T) string { return raw(t, sseHead+event, reset) }, schemas.ResultReset, replay.KindReset, 0, "the connection broke"},
		{"ends in the middle", func(t *testing.T) string { return raw(t, sseHead+event, nil) }, schemas.ResultTruncated, replay.KindNoFinish, 0, "ended in the middle"},
		{"a web page", func(t *testing.T) string {
			return url(served(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<!doctype html><p>hello") }))
		}, schemas.ResultHTTPError, replay.KindNotSSE, 0, "web page"},
		{"never answers", func(t *testing.T) string { return raw(t, "", hold) }, schemas.ResultTimeout, replay.KindTimeout, limit, "no answer had begun"},
		{"goes silent", func(t *testing.T) string { return raw(t, sseHead+event, hold) }, schemas.ResultTimeout, replay.KindStalled, 2200 * time.Millisecond, "stopped coming"},
		{"never ends", func(t *testing.T) string { return raw(t, sseHead, until(5*time.Millisecond, event)) },
			schemas.ResultTimeout, replay.KindEndless, limit, "still going on"},
		{"a byte at a time", func(t *testing.T) string { return raw(t, sseHead, until(20*time.Millisecond, "d")) },
			schemas.ResultTimeout, replay.KindTrickle, limit, "so slowly"},
		{"redirects", func(t *testing.T) string {
			return url(served(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://elsewhere.invalid/", http.StatusFound)
			}))
		}, schemas.ResultHTTPError, replay.KindRedirect, 0, "redirected"},
		{"wants a key", func(t *testing.T) string {
			return url(served(t, func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, `{"error":"Unauthorized"}`, http.StatusUnauthorized)
			}))
		}, schemas.ResultHTTPError, replay.KindUnauthorized, 0, "TAILGATE_API_KEY"},
		{"prompt too long", func(t *testing.T) string {
			return url(served(t, func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, `{"object":"error","message":"Requested token count exceeds the model's maximum context length of 8 tokens.","code":400}`, http.StatusBadRequest)
			}))
		}, schemas.ResultHTTPError, replay.KindPromptTooLong, 0, "longer than the model allows"},
		{"broken chunks", func(t *testing.T) string {
			return raw(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n", nil)
		}, schemas.ResultReset, replay.KindBadHTTP, 0, "broken HTTP"},
		{"not HTTP", func(t *testing.T) string { return raw(t, "SSH-2.0-OpenSSH_9\r\n", nil) }, schemas.ResultReset, replay.KindBadHTTP, 0, "broken HTTP"},
		{"compressed", func(t *testing.T) string {
			return url(served(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				io.WriteString(z, event)
				z.Close()
			}))
		}, schemas.ResultHTTPError, replay.KindEncoded, 0, "compressed"},
		{"no such model", func(t *testing.T) string {
			return url(served(t, func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, `{"error":{"message":"The model does not exist"}}`, http.StatusNotFound)
			}))
		}, schemas.ResultHTTPError, replay.KindNotFound, 0, "no such model"},
		{"a certificate that nobody vouches for", func(t *testing.T) string {
			srv := served(t, func(http.ResponseWriter, *http.Request) {})
			srv.StartTLS()
			return srv.URL
		}, schemas.ResultReset, replay.KindTLS, 0, "TLS handshake"},
		{"plain HTTP where TLS is expected", func(t *testing.T) string {
			return strings.Replace(url(served(t, func(http.ResponseWriter, *http.Request) {})), "http:", "https:", 1)
		}, schemas.ResultReset, replay.KindTLS, 0, "TLS handshake"},
		{"GOAWAY", goAway, schemas.ResultReset, replay.KindGoAway, 0, "GOAWAY"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := openai.Options{Targets: []string{c.target(t)}, Timeout: c.timeout}
			o.TLS.Insecure = c.kind == replay.KindGoAway
			cl := client(t, o)
			defer cl.Close()
			got := send(t, cl)
			if got.Status != c.status || got.ErrorKind != c.kind {
				t.Errorf("status %q, kind %q; want %q, %q", got.Status, got.ErrorKind, c.status, c.kind)
			}
			if text := replay.Explain(got.ErrorKind, 3); !strings.Contains(text, c.says) || !strings.HasPrefix(text, "3 requests ("+c.kind+")") {
				t.Errorf("the summary says %q", text)
			}
			if got.Closed == replay.Never || got.Sent == replay.Never {
				t.Errorf("sent %v, closed %v", got.Sent, got.Closed)
			}
		})
	}
}

// goAway serves HTTP/2 by hand: to the first request it says GOAWAY, nothing was processed.
func goAway(t *testing.T) string {
	t.Helper()
	helper := httptest.NewUnstartedServer(nil)
	helper.StartTLS() // for its certificate
	config := &tls.Config{Certificates: helper.TLS.Certificates, NextProtos: []string{"h2"}}
	helper.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	frame := func(conn net.Conn, kind byte, payload []byte) {
		head := make([]byte, 9, 9+len(payload))
		head[2], head[3] = byte(len(payload)), kind
		_, _ = conn.Write(append(head, payload...))
	}
	const settings, goaway, headers = 4, 7, 1
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				if _, err := in.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
					return
				}
				frame(conn, settings, nil)
				for head := make([]byte, 9); ; {
					if _, err := io.ReadFull(in, head); err != nil {
						return
					}
					if _, err := in.Discard(int(binary.BigEndian.Uint32(append([]byte{0}, head[:3]...)))); err != nil {
						return
					}
					if head[3] == headers {
						frame(conn, goaway, make([]byte, 8)) // last stream 0, no error
						hold(conn)
						return
					}
				}
			}()
		}
	}()
	return "https://" + l.Addr().String()
}

func TestEveryKindHasASentence(t *testing.T) {
	if text := replay.Explain("no_such_kind", 1); !strings.HasPrefix(text, "1 request (no_such_kind): ") {
		t.Errorf("%q", text)
	}
	if text := replay.Explain(replay.KindTLS, 1); !strings.HasPrefix(text, "1 request (tls): the TLS handshake failed") {
		t.Errorf("%q", text)
	}
}

func TestHTTP2ByALPN(t *testing.T) {
	const n, streams = 100, 32
	inflight := make(chan string, n)
	release := make(chan struct{})
	srv := served(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		inflight <- r.Proto
		<-release
		transporttest.Events(w, 1, time.Microsecond)
	})
	srv.EnableHTTP2 = true
	srv.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	srv.StartTLS()
	for _, c := range []struct {
		proto string
		http1 bool
		conns int64
	}{{"HTTP/2.0", false, (n + streams - 1) / streams}, {"HTTP/1.1", true, n}} {
		cl := client(t, openai.Options{Targets: []string{srv.URL}, TLS: openai.TLS{Insecure: true}, HTTP1: c.http1})
		defer cl.Close()
		out := int32(1)
		done := make(chan *replay.Call, n)
		for i := range n {
			call := &replay.Call{Row: &schemas.TraceRow{Row: int64(i), InputTokens: 4, OutputTokens: &out}, Zero: time.Now(), Outcome: replay.NewOutcome()}
			cl.Send(t.Context(), call, func(c *replay.Call) { done <- c })
		}
		for range n { // all at once, over as many connections as that takes
			select {
			case proto := <-inflight:
				if proto != c.proto {
					t.Errorf("%s, want %s", proto, c.proto)
				}
			case c := <-done:
				t.Fatalf("row %d: %s %s", c.Row.Row, c.Outcome.Status, c.Outcome.ErrorKind)
			case <-time.After(20 * time.Second):
				t.Fatal("some requests wait for others")
			}
		}
		for range n {
			release <- struct{}{}
		}
		for range n {
			if c := <-done; c.Outcome.Status != schemas.ResultOK {
				t.Errorf("row %d: %s %s", c.Row.Row, c.Outcome.Status, c.Outcome.ErrorKind)
			}
		}
		before := cl.Connections() // net/http may still open some
		if f := cl.Facts()[0]; f.Connections < c.conns || f.OK != n || f.Sent != n || fmt.Sprintf("HTTP/%d", f.HTTP) != c.proto[:6] || before > f.Connections || cl.Connections() < f.Connections {
			t.Errorf("%+v", f)
		}
	}
}
