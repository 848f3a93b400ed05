package sim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Limits of a connection.
const (
	maxHeader     = 1 << 20 // bytes of a request's header
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute
)

// peer is one connection of a client. Its goroutine reads requests one after the other; while an answer goes out it
// waits for the next byte, so that a hang-up is noticed at once.
type peer struct {
	s     *Server
	conn  net.Conn
	src   io.Reader // conn, or what stamps it
	br    *bufio.Reader
	limit int64 // bytes that may still be read
	busy  atomic.Bool
	socket
	stamps *stamps // nil: no truth is kept
}

func newPeer(s *Server, c net.Conn) *peer {
	p := &peer{s: s, conn: c, src: c, socket: newSocket(c), limit: maxHeader}
	if s.opts.Truth != nil {
		p.stamps = newStamps(c, s.opts.Truth.nextConn())
		p.src = p.stamps
	}
	p.br = bufio.NewReaderSize(p, 4096)
	return p
}

var errHeaderTooLong = errors.New("the header is too long")

// Read bounds what a request may take.
func (p *peer) Read(b []byte) (int, error) {
	if p.limit <= 0 {
		return 0, errHeaderTooLong
	}
	b = b[:min(int64(len(b)), p.limit)]
	n, err := p.src.Read(b)
	p.limit -= int64(n)
	return n, err
}

// serve answers requests until the client or the server has enough.
func (p *peer) serve() {
	defer func() {
		if r := recover(); r != nil {
			p.s.log.Error("serving a connection", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
	}()
	for {
		p.limit = maxHeader
		p.stamps.forget(p.br)
		// Between requests a client may take its time.
		if _, err := p.br.Peek(1); err != nil {
			return
		}
		p.busy.Store(true)
		if !p.next() {
			return
		}
		p.s.peers.idle(p)
	}
}

// next reads a request and answers it; it returns false when the connection ends.
func (p *peer) next() bool {
	p.within(headerTimeout)
	r, err := http.ReadRequest(p.br)
	if err != nil {
		p.refuse(err)
		return false
	}
	p.limit = math.MaxInt64
	switch {
	case r.ProtoMajor != 1:
		p.write(newAPIError(http.StatusHTTPVersionNotSupported, "BadRequestError", "", "only HTTP/1 is spoken here"), true)
		return false
	case r.Host == "" && r.ProtoAtLeast(1, 1):
		p.write(badRequest("", "the Host header is missing"), true)
		return false
	}
	x := &exchange{p: p, r: r, close: r.Close || !r.ProtoAtLeast(1, 1) && !hasToken(r.Header, "keep-alive")}
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") && r.ContentLength != 0 {
		// Sent late, in readBody: a body that is refused need not come.
		x.expects = true
	}
	p.s.route(x)
	return !x.close
}

// within ends reads that take longer; 0 = never.
func (p *peer) within(limit time.Duration) {
	var at time.Time
	if limit > 0 {
		at = time.Now().Add(limit)
	}
	// A connection that is closed fails at the next read.
	_ = p.conn.SetReadDeadline(at)
}

func hasToken(h http.Header, token string) bool {
	for _, v := range h.Values("Connection") {
		for t := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}

// refuse answers what is no request.
func (p *peer) refuse(err error) {
	var timeout net.Error
	switch {
	case errors.Is(err, errHeaderTooLong):
		p.write(newAPIError(http.StatusRequestHeaderFieldsTooLarge, "BadRequestError", "", "the header is larger than 1 MiB"), true)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &timeout):
		// Nobody waits for an answer.
	default:
		p.write(badRequest("", "this is no HTTP request"), true)
	}
}

// write answers with an error.
func (p *peer) write(e *apiError, last bool) {
	buf := appendHead(nil, e.Code, "application/json", last)
	if e.Code == http.StatusTooManyRequests {
		buf = append(buf, "Retry-After: 1\r\n"...)
	}
	buf = appendBody(buf, e.body())
	// A client that is gone needs no answer.
	_, _ = p.conn.Write(buf)
}

// exchange is one request and its answer.
type exchange struct {
	p       *peer
	r       *http.Request
	expects bool // the client waits for 100 Continue
	close   bool // the connection ends behind the answer
	read    bool // the body was read to its end
	buf     *bytes.Buffer
}

// fail answers with an error. A body that was not read ends the connection.
func (x *exchange) fail(e *apiError) {
	x.close = x.close || !x.read
	x.p.write(e, x.close)
}

// body reads the whole body.
func (x *exchange) body() ([]byte, *apiError) {
	if x.r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	if x.expects {
		if _, err := x.p.conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return nil, badRequest("", "the connection broke off")
		}
	}
	buf := x.p.s.buffer()
	buf.Grow(int(max(bytes.MinRead, x.r.ContentLength+bytes.MinRead)))
	x.p.within(bodyTimeout)
	_, err := buf.ReadFrom(io.LimitReader(x.r.Body, maxBody+1))
	x.p.within(0)
	switch {
	case err != nil:
		return nil, badRequest("", "reading the body: the connection broke off")
	case buf.Len() > maxBody:
		return nil, tooLarge()
	}
	x.read, x.buf = true, buf
	return buf.Bytes(), nil
}

// release gives the body back, which nobody may look at any more.
func (x *exchange) release() {
	const most = 64 << 10 // bytes that are kept for another request
	if x.buf != nil && x.buf.Cap() <= most {
		x.p.s.buffers.Put(x.buf)
	}
	x.buf = nil
}

// buffer returns an empty buffer.
func (s *Server) buffer() *bytes.Buffer {
	if b, ok := s.buffers.Get().(*bytes.Buffer); ok {
		b.Reset()
		return b
	}
	return new(bytes.Buffer)
}

// appendHead appends a status line and the headers that every answer has; the caller ends them.
func appendHead(buf []byte, status int, media string, last bool) []byte {
	buf = strconv.AppendInt(append(buf, "HTTP/1.1 "...), int64(status), 10)
	buf = append(append(buf, ' '), http.StatusText(status)...)
	buf = time.Now().UTC().AppendFormat(append(buf, "\r\nDate: "...), http.TimeFormat)
	buf = append(append(append(buf, "\r\nContent-Type: "...), media...), "\r\n"...)
	if last {
		buf = append(buf, "Connection: close\r\n"...)
	}
	return buf
}

// appendBody ends the headers and appends the body.
func appendBody(buf, body []byte) []byte {
	buf = strconv.AppendInt(append(buf, "Content-Length: "...), int64(len(body)), 10)
	return append(append(buf, "\r\n\r\n"...), body...)
}
