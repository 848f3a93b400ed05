package openai

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tailgate/internal/version"
	"tailgate/replay"
	"tailgate/schemas"
)

// Client implements replay.Transport. Make it with New.
type Client struct {
	opts    Options
	targets []*target
	http    *http.Transport
	lanes   lanes // of https targets that may speak HTTP/2
	header  http.Header
	perRow  []Header // headers with places
	writer  *writer
	turn    atomic.Uint64
	log     *slog.Logger
}

var _ replay.Transport = (*Client)(nil)

// New makes a client. It does not connect.
func New(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := &Client{opts: o, log: o.Logger, header: http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {"tailgate/" + version.String()},
	}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	dial := o.DialContext
	if dial == nil {
		dial = newNames().dial
	}
	counted := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil {
			c.connected(addr)
		}
		return conn, err
	}
	config, err := o.TLS.config()
	if err != nil {
		return nil, err
	}
	c.http = newHTTP(&o, config, counted)
	c.lanes.make = func() *http.Transport { return newHTTP(&o, config.Clone(), counted) }
	if o.TLS.Insecure {
		c.log.Warn("certificates are not checked: anyone between here and the target can read and answer the requests")
	}
	c.setHeaders()
	prompts := *o.Prompts
	c.opts.Prompts = &prompts // Probe may change it
	c.writer = newWriter(&c.opts)
	for _, name := range o.Targets {
		t, err := newTarget(name, o.route())
		if err != nil {
			return nil, err
		}
		c.targets = append(c.targets, t)
	}
	return c, nil
}

func (c *Client) setHeaders() {
	if c.opts.APIKey != "" {
		c.header.Set("Authorization", "Bearer "+c.opts.APIKey)
	}
	for _, h := range c.opts.Headers {
		if strings.Contains(h.Value, "{{") {
			c.perRow = append(c.perRow, h)
			continue
		}
		c.header.Set(h.Name, h.Value)
	}
}

// Send implements replay.Transport.
func (c *Client) Send(ctx context.Context, call *replay.Call, done func(*replay.Call)) {
	t := c.pick(call)
	go func() {
		c.exchange(ctx, t, call)
		t.note(&call.Outcome)
		done(call)
	}()
}

// Close implements replay.Transport.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	c.lanes.close()
	return nil
}

// exchange sends one request and reads its answer.
func (c *Client) exchange(ctx context.Context, t *target, call *replay.Call) {
	o := &call.Outcome
	o.Target = t.name
	var cancel func()
	if c.opts.Timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, c.opts.Timeout, errTimeout)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	req := c.request(ctx, t, call)
	rt := c.http
	if t.base.Scheme == "https" && !c.opts.HTTP1 {
		lane := c.lanes.take()
		defer c.lanes.leave(lane)
		rt = lane.rt
	}
	o.Sent = call.Now()
	resp, err := rt.RoundTrip(req)
	if err != nil {
		fail(ctx, o, err)
		o.Closed = call.Now()
		return
	}
	defer resp.Body.Close()
	o.FirstByte = call.Now()
	o.HTTPStatus = resp.StatusCode
	t.proto.Store(int32(resp.ProtoMajor))
	c.answer(ctx, cancel, call, resp)
	o.Closed = call.Now()
}

// answer reads an answer whose head has come.
func (c *Client) answer(ctx context.Context, cancel func(), call *replay.Call, resp *http.Response) {
	o := &call.Outcome
	var keep *collector
	if call.KeepAnswer {
		keep = &collector{api: c.opts.api()}
	}
	kind := mediaType(resp.Header)
	switch {
	case resp.StatusCode != http.StatusOK:
		refused(o, resp.Body)
	case isEncoded(resp.Header):
		o.Status, o.ErrorKind = schemas.ResultHTTPError, replay.KindEncoded
	case kind == "text/event-stream" || kind == "" && call.WantsStream():
		c.readStream(ctx, cancel, call, keep, resp.Body)
	case kind == "application/json" || strings.HasSuffix(kind, "+json") || kind == "":
		c.readWhole(ctx, call, keep, resp.Body)
		if ms, err := strconv.ParseFloat(resp.Header.Get("X-Queue-Time"), 64); err == nil && ms >= 0 && ms < 1e12 {
			o.ServerQueue = fromMillis(ms) // TGI tells it, of whole answers only
		}
	default:
		o.Status, o.ErrorKind = schemas.ResultHTTPError, replay.KindNotSSE
	}
}

func mediaType(h http.Header) string {
	switch v := h.Get("Content-Type"); v {
	case "text/event-stream", "text/event-stream; charset=utf-8":
		return "text/event-stream"
	default:
		kind, _, _ := mime.ParseMediaType(v)
		return kind
	}
}

func isEncoded(h http.Header) bool {
	v := h.Get("Content-Encoding")
	return v != "" && !strings.EqualFold(v, "identity")
}

// packet is a read buffer. Its size bounds what one read takes, not a line: what the kernel had is in the
// connection's own buffer by then, and 10,000 open streams hold a packet each.
type packet [1 << 10]byte

var packets = sync.Pool{New: func() any { return new(packet) }}

// afterDone is how long an answer may stay open after its [DONE].
const afterDone = time.Second

// readStream reads an event stream to its end and stamps each read.
func (c *Client) readStream(ctx context.Context, cancel func(), call *replay.Call, keep *collector, r io.Reader) {
	buf := packets.Get().(*packet)
	defer packets.Put(buf)
	o := &call.Outcome
	if call.Row.OutputTokens != nil {
		o.ExpectTokens(*call.Row.OutputTokens)
	}
	s := newStream(o, c.opts.api(), keep)
	done := false
	for {
		n, err := r.Read(buf[:])
		more := true
		if n > 0 {
			more = s.feed(buf[:n], call.Now())
		}
		switch {
		case !more || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			s.finish("")
			return
		case err != nil && (s.ended || ctx.Err() == nil):
			_, kind := classify(err)
			s.finish(kind)
			return
		case err != nil:
			ended(ctx, o, lateKind(call.Now(), s.at, s.seen))
			return
		case s.ended && !done:
			done = true
			defer time.AfterFunc(afterDone, cancel).Stop()
		}
	}
}

// readWhole reads an answer that is not streamed.
func (c *Client) readWhole(ctx context.Context, call *replay.Call, keep *collector, r io.Reader) {
	o := &call.Outcome
	stamped := &stampedReader{r: r, call: call, last: replay.Never}
	data, err := io.ReadAll(io.LimitReader(stamped, maxBody+1))
	at := call.Now()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		o.Status, o.ErrorKind = schemas.ResultTruncated, replay.KindNoFinish
	case err != nil && ctx.Err() != nil:
		ended(ctx, o, lateKind(at, stamped.last, replay.Never))
	case err != nil:
		o.Status, o.ErrorKind = classify(err)
	case len(data) > maxBody:
		o.Status, o.ErrorKind = schemas.ResultHTTPError, replay.KindBodyTooLong
	default:
		finishWhole(o, c.opts.api(), keep, data, at)
	}
}

// stampedReader notes when the last bytes came.
type stampedReader struct {
	r    io.Reader
	call *replay.Call
	last time.Duration
}

func (s *stampedReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if n > 0 {
		s.last = s.call.Now()
	}
	return n, err
}
