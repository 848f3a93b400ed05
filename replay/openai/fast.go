package openai

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tailgate/internal/waiter"
	"tailgate/replay"
	"tailgate/replay/epoll"
)

// Values of Options.Transport: what carries the requests to http targets. To https targets it is always net/http.
const (
	TransportNetHTTP = "nethttp"
	TransportEpoll   = "epoll" // Linux only, see package epoll
)

// fast is the client of package epoll, made with the first request.
type fast struct {
	once   sync.Once
	client *epoll.Client
	err    error
}

// transport is what carries the requests to t.
func (c *Client) transport(t *target) string {
	if c.opts.Transport == TransportNetHTTP || !epoll.Supported || t.base.Scheme != "http" || c.opts.DialContext != nil {
		return TransportNetHTTP
	}
	return TransportEpoll
}

// startFast makes the client of package epoll.
func (c *Client) startFast() (*epoll.Client, error) {
	c.fast.once.Do(func() {
		idle := c.opts.IdleTimeout
		if idle == 0 {
			idle = defaultIdle
		}
		c.fast.client, c.fast.err = epoll.New(epoll.Options{
			Resolve: c.names.lookup, Connected: c.connected, MaxIdlePerHost: c.opts.MaxIdlePerHost, IdleTimeout: idle, Linger: afterDone,
		})
	})
	return c.fast.client, c.fast.err
}

// Waiter implements replay.Driven: null where no target goes by epoll.
func (c *Client) Waiter() (waiter.Waiter, error) {
	if !slices.ContainsFunc(c.targets, func(t *target) bool { return t.wire != nil }) {
		return nil, nil
	}
	client, err := c.startFast()
	if err != nil {
		return nil, err
	}
	d, err := client.Drive()
	if errors.Is(err, epoll.ErrDriven) {
		return nil, nil // by another run
	}
	return d, err
}

// wire is what all requests to a target have in common, as net/http would write it.
type wire struct {
	front      []byte // up to the value of Content-Length
	lines      []line // behind it, sorted
	idempotent bool
}

// line is a header. Its value is made for each row where it has places, or is the request's id.
type line struct {
	name, value string
	perRow      bool
}

const requestID = "X-Request-Id"

func (c *Client) newWire(t *target) (*wire, error) {
	// net/http writes the request's line, the host and the user agent first, whatever else there is.
	var buf bytes.Buffer
	first := t.request.Clone(context.Background())
	first.Header = http.Header{"User-Agent": c.header["User-Agent"]}
	if err := first.Write(&buf); err != nil {
		return nil, err
	}
	front, _, _ := strings.Cut(buf.String(), "Content-Length:")
	w := &wire{front: []byte(strings.TrimSuffix(front, "\r\n\r\n"))}
	if !bytes.HasSuffix(w.front, []byte("\r\n")) {
		w.front = append(w.front, "\r\n"...)
	}
	w.front = append(w.front, "Content-Length: "...)
	for name, values := range c.header {
		if name != "User-Agent" {
			w.lines = append(w.lines, line{name: name, value: strings.Trim(values[0], " \t")})
		}
	}
	for _, h := range c.perRow {
		w.lines = append(w.lines, line{name: h.Name, value: h.Value, perRow: true})
	}
	own := slices.ContainsFunc(w.lines, func(l line) bool { return l.name == requestID })
	if c.opts.RunID != "" && !own {
		w.lines = append(w.lines, line{name: requestID, perRow: true})
	}
	slices.SortFunc(w.lines, func(a, b line) int { return strings.Compare(a.name, b.name) })
	w.idempotent = slices.ContainsFunc(w.lines, func(l line) bool { return l.name == "Idempotency-Key" || l.name == "X-Idempotency-Key" })
	return w, nil
}

// plain tells that package epoll can carry the call: net/http refuses header values that are none, and does so itself. A
// user agent of the row's own is written in another place.
func (c *Client) plain(call *replay.Call) bool {
	for _, h := range c.perRow {
		if h.Name == "User-Agent" || !isFieldValue(c.writer.expand(h.Value, call)) {
			return false
		}
	}
	return true
}

// flight is one request on its way by package epoll.
type flight struct {
	reader
	target *target
	done   func(*replay.Call)
}

// AppendRequest implements epoll.Payload. The request's own clock starts when it has been made.
func (f *flight) AppendRequest(dst []byte) []byte {
	c, w := f.client, f.target.wire
	body := buffers.Get().(*[]byte)
	defer buffers.Put(body)
	*body = c.writer.append((*body)[:0], f.call)
	dst = strconv.AppendInt(append(dst, w.front...), int64(len(*body)), 10)
	for i := range w.lines {
		l := &w.lines[i]
		dst = append(append(append(dst, "\r\n"...), l.name...), ": "...)
		switch {
		case l.perRow && l.value != "":
			dst = append(dst, strings.Trim(c.writer.expand(l.value, f.call), " \t")...)
		case l.perRow:
			dst = strconv.AppendInt(append(append(dst, c.opts.RunID...), '-'), f.call.Row.Row, 10)
		default:
			dst = append(dst, l.value...)
		}
	}
	dst = append(append(dst, "\r\n\r\n"...), *body...)
	if f.call.Outcome.Sent == replay.Never {
		f.call.Outcome.Sent = f.call.Now()
	}
	return dst
}

// Head implements epoll.Handler.
func (f *flight) Head(resp *http.Response, at time.Time) epoll.Next {
	f.target.proto.Store(int32(resp.ProtoMajor))
	if !f.head(resp, f.since(at)) {
		return epoll.Stop
	}
	return epoll.More
}

// Body implements epoll.Handler.
func (f *flight) Body(piece []byte, at time.Time) epoll.Next { return f.feed(piece, f.since(at)) }

// End implements epoll.Handler.
func (f *flight) End(err error, at time.Time) {
	var cause error
	switch {
	case errors.Is(err, epoll.ErrTimeout):
		cause = errTimeout
	case errors.Is(err, epoll.ErrCancelled), errors.Is(err, epoll.ErrClosed):
		cause = err
	}
	f.end(err, cause, f.since(at))
	f.target.note(&f.call.Outcome)
	f.done(f.call)
}

func (f *flight) since(at time.Time) time.Duration { return at.Sub(f.call.Zero) }

// ownThread is the length of a prompt, in tokens, up to which making it delays the next request by less than another
// thread's start would delay this one.
const ownThread = 4096

// fly sends a call by package epoll.
func (c *Client) fly(ctx context.Context, t *target, call *replay.Call, done func(*replay.Call)) {
	f := &flight{reader: reader{client: c, call: call}, target: t, done: done}
	call.Outcome.Target = t.name
	client, err := c.startFast()
	if err != nil {
		go func() {
			call.Outcome.Sent = call.Now()
			f.End(err, time.Now())
		}()
		return
	}
	r := epoll.Request{Addr: t.address(), Payload: f, Handler: f, Timeout: c.opts.Timeout, Idempotent: t.wire.idempotent}
	if call.Row.InputTokens > ownThread {
		go client.Do(ctx, r)
		return
	}
	client.Do(ctx, r)
}
