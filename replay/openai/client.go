package openai

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tailgate/internal/version"
	"tailgate/replay"
	"tailgate/replay/epoll"
)

// Client implements replay.Transport. Make it with New.
type Client struct {
	opts    Options
	targets []*target
	http    *http.Transport
	lanes   lanes // of https targets that may speak HTTP/2
	names   *names
	fast    fast
	header  http.Header
	perRow  []Header // headers with places
	writer  *writer
	turn    atomic.Uint64
	log     *slog.Logger
}

var (
	_ replay.Transport = (*Client)(nil)
	_ replay.Driven    = (*Client)(nil)
)

// New makes a client. It does not connect.
func New(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := &Client{opts: o, log: o.Logger, names: newNames(), header: http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {"tailgate/" + version.String()},
	}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	dial := o.DialContext
	if dial == nil {
		dial = c.names.dial
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
		if c.transport(t) == TransportEpoll {
			if t.wire, err = c.newWire(t); err != nil {
				return nil, err
			}
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
	if t.wire != nil && c.plain(call) {
		c.fly(ctx, t, call, done)
		return
	}
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
	c.fast.once.Do(func() { c.fast.err = epoll.ErrClosed })
	if c.fast.client == nil {
		return nil
	}
	return c.fast.client.Close()
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
	r := reader{client: c, call: call}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		r.end(err, whyEnded(ctx), call.Now())
		return
	}
	defer resp.Body.Close()
	t.proto.Store(int32(resp.ProtoMajor))
	if r.head(resp, call.Now()) {
		err = r.pull(resp.Body, cancel)
	}
	r.end(err, whyEnded(ctx), call.Now())
}

// whyEnded is why ctx has ended; null = it has not.
func whyEnded(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// packet is a read buffer. Its size bounds what one read takes, not a line: what the kernel had is in the
// connection's own buffer by then, and 10,000 open streams hold a packet each.
type packet [1 << 10]byte

var packets = sync.Pool{New: func() any { return new(packet) }}

// pull reads an answer's body to its end and stamps each read. cancel ends it when it stays open.
func (r *reader) pull(body io.Reader, cancel func()) error {
	buf := packets.Get().(*packet)
	defer packets.Put(buf)
	for {
		n, err := body.Read(buf[:])
		next := epoll.More
		if n > 0 {
			next = r.feed(buf[:n], r.call.Now())
		}
		switch {
		case next == epoll.Stop || errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case next == epoll.Linger:
			defer time.AfterFunc(afterDone, cancel).Stop()
		}
	}
}
