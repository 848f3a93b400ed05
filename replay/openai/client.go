package openai

import (
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
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
	targets []target
	http    *http.Transport
	header  http.Header
	turn    atomic.Uint64
}

var _ replay.Transport = (*Client)(nil)

// target is one base URL and the route for requests below it.
type target struct {
	name string // as given
	base *url.URL
	send *url.URL
}

// New makes a client. It does not connect.
func New(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	var http1 http.Protocols
	http1.SetHTTP1(true)
	idle := o.IdleTimeout
	if idle == 0 {
		idle = defaultIdle
	}
	perHost := o.MaxIdlePerHost
	if perHost == 0 {
		perHost = 1 << 30 // net/http reads 0 as two
	}
	c := &Client{
		opts: o,
		http: &http.Transport{
			DialContext:         o.DialContext,
			MaxIdleConnsPerHost: perHost,
			IdleConnTimeout:     idle,
			DisableCompression:  true,
			// Any proxy of the environment would be measured with the target: none is used.
			Proxy: nil,
			// One HTTP/2 connection has a limit of streams of its own, behind which sends would queue unseen.
			Protocols: &http1,
		},
		header: http.Header{
			"Content-Type": {"application/json"},
			"User-Agent":   {"tailgate/" + version.String()},
		},
	}
	if o.APIKey != "" {
		c.header.Set("Authorization", "Bearer "+o.APIKey)
	}
	route := "v1/completions"
	if o.API == APIChat {
		route = "v1/chat/completions"
	}
	for _, name := range o.Targets {
		base, err := parseTarget(name)
		if err != nil {
			return nil, err
		}
		c.targets = append(c.targets, target{name: name, base: base, send: base.JoinPath(route)})
	}
	return c, nil
}

// Send implements replay.Transport.
func (c *Client) Send(ctx context.Context, call *replay.Call, done func(*replay.Call)) {
	t := &c.targets[(c.turn.Add(1)-1)%uint64(len(c.targets))]
	go func() {
		c.exchange(ctx, t, call)
		done(call)
	}()
}

// Close implements replay.Transport.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// exchange sends one request and reads its answer.
func (c *Client) exchange(ctx context.Context, t *target, call *replay.Call) {
	o := &call.Outcome
	o.Target = t.name
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.opts.Timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, c.opts.Timeout, errTimeout)
		defer cancel()
	}
	req := c.request(t, call).WithContext(ctx)
	o.Sent = call.Now()
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		fail(ctx, o, err)
		o.Closed = call.Now()
		return
	}
	defer resp.Body.Close()
	o.FirstByte = call.Now()
	o.HTTPStatus = resp.StatusCode
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode != http.StatusOK:
		refused(o, resp.Body)
	case media == "text/event-stream" || media == "" && call.WantsStream():
		readStream(ctx, cancel, call, resp.Body)
	case media == "application/json" || strings.HasSuffix(media, "+json") || media == "":
		readWhole(ctx, call, resp.Body)
	default:
		o.Status, o.ErrorKind = schemas.ResultHTTPError, replay.KindNotSSE
	}
	o.Closed = call.Now()
}

// request builds the request; its body is built here, once, before the clock of the request starts.
func (c *Client) request(t *target, call *replay.Call) *http.Request {
	build := func() *body { return newBody(func(b []byte) []byte { return c.appendBody(b, call) }) }
	b := build()
	header := c.header
	if c.opts.RunID != "" {
		header = maps.Clone(header)
		header["X-Request-Id"] = []string{c.opts.RunID + "-" + strconv.FormatInt(call.Row.Row, 10)}
	}
	return &http.Request{
		Method: http.MethodPost, URL: t.send, Host: t.send.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: b, ContentLength: b.size(),
		// net/http needs this when an idle connection turns out to be closed before a byte was written. It is
		// no retry: the target has seen nothing.
		GetBody: func() (io.ReadCloser, error) { return build(), nil },
	}
}

// refused sets the outcome of any status but 200. A little of the body is read so that the connection lives on.
func refused(o *replay.Outcome, body io.Reader) {
	const enough = 64 << 10
	// Only the connection's reuse is at stake.
	_, _ = io.CopyN(io.Discard, body, enough)
	o.Status, o.ErrorKind = schemas.ResultHTTPError, replay.HTTPKind(o.HTTPStatus)
	if o.HTTPStatus == http.StatusTooManyRequests {
		o.Status = schemas.ResultRateLimited
	}
}

// packet is a read buffer. Its size bounds what one read takes, not a line.
type packet [4 << 10]byte

var packets = sync.Pool{New: func() any { return new(packet) }}

// afterDone is how long an answer may stay open after its [DONE].
const afterDone = time.Second

// readStream reads an event stream to its end and stamps each read.
func readStream(ctx context.Context, cancel func(), call *replay.Call, r io.Reader) {
	buf := packets.Get().(*packet)
	defer packets.Put(buf)
	o := &call.Outcome
	if call.Row.OutputTokens != nil {
		o.ExpectTokens(*call.Row.OutputTokens)
	}
	s := newStream(o)
	done := false
	for {
		n, err := r.Read(buf[:])
		more := true
		if n > 0 {
			more = s.feed(buf[:n], call.Now())
		}
		switch {
		case !more || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			s.finish(false)
			return
		case err != nil && (s.ended || ctx.Err() == nil):
			s.finish(true)
			return
		case err != nil:
			fail(ctx, o, err)
			return
		case s.ended && !done:
			done = true
			defer time.AfterFunc(afterDone, cancel).Stop()
		}
	}
}

// readWhole reads an answer that is not streamed.
func readWhole(ctx context.Context, call *replay.Call, r io.Reader) {
	o := &call.Outcome
	data, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	at := call.Now()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		o.Status, o.ErrorKind = schemas.ResultTruncated, replay.KindNoFinish
	case err != nil:
		fail(ctx, o, err)
	case len(data) > maxBody:
		o.Status, o.ErrorKind = schemas.ResultHTTPError, replay.KindBodyTooLong
	default:
		finishWhole(o, data, at)
	}
}
