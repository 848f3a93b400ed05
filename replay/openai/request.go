package openai

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"

	"tailgate/replay"
)

// buffers hold bodies while they are written; a prompt may take megabytes and is not needed afterwards.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// content is a request's body. Its reader is one that net/http knows to be in memory: it writes the head and the start
// of the body in one piece then, where it would flush the head alone for a reader that may block.
type content struct {
	bytes.Reader
	trace httptrace.ClientTrace
	buf   *[]byte // nil = given back
}

func (c *Client) content(call *replay.Call) *content {
	p := &content{buf: buffers.Get().(*[]byte)}
	*p.buf = c.writer.append((*p.buf)[:0], call)
	p.Reset(*p.buf)
	p.trace.WroteRequest = p.written
	return p
}

// written gives the buffer back once all of it was read. What could not be written may be tried on another connection
// with the same reader: its buffer is left to the collector.
func (p *content) written(w httptrace.WroteRequestInfo) {
	if w.Err == nil && p.buf != nil {
		buffers.Put(p.buf)
		p.buf = nil
	}
}

// request builds the request; its body is built here, once, before the clock of the request starts.
func (c *Client) request(ctx context.Context, t *target, call *replay.Call) *http.Request {
	p := c.content(call)
	req := t.request.WithContext(httptrace.WithClientTrace(ctx, &p.trace))
	req.Header, req.Body, req.ContentLength = c.headers(call), io.NopCloser(&p.Reader), p.Size()
	if t.base.Scheme == "http" || c.opts.HTTP1 || t.proto.Load() == 1 {
		// net/http needs this when an idle connection turns out to be closed before a byte was written. It is
		// no retry: the target has seen nothing. Over HTTP/2 it would retry what a GOAWAY refused, after a pause.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.writer.append(nil, call))), nil }
	}
	return req
}

func (c *Client) headers(call *replay.Call) http.Header {
	if c.opts.RunID == "" && len(c.perRow) == 0 {
		return c.header
	}
	header := maps.Clone(c.header)
	for _, h := range c.perRow {
		header[h.Name] = []string{c.writer.expand(h.Value, call)}
	}
	if _, own := header["X-Request-Id"]; c.opts.RunID != "" && !own {
		header["X-Request-Id"] = []string{c.opts.RunID + "-" + strconv.FormatInt(call.Row.Row, 10)}
	}
	return header
}
