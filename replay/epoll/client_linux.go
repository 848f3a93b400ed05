//go:build amd64 || arm64

package epoll

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"tailgate/internal/deadlines"
	"tailgate/internal/http1"
	"tailgate/internal/sockets"
)

// Supported tells whether New works on this system.
const Supported = true

// Client exchanges requests and answers. Make it with New; it is safe for concurrent use.
type Client struct {
	opts    Options
	stopped chan struct{}
	epoch   time.Time
	loop    loop

	mu       sync.Mutex // guards what follows; taken alone or inside a conn's
	hosts    map[string]*host
	conns    []*conn // by descriptor; nil = none
	born     int32   // connections so far
	watched  map[<-chan struct{}]*watch
	timers   deadlines.Queue[*exchange]
	alarm    time.Duration // the next instant at which expire has something to do, or an earlier one
	asleep   time.Duration // the loop sleeps until then; 0 = it does not
	driver   *Driver       // nil = the client's own goroutine runs the loop
	closed   bool
	building sync.Pool // *[]byte
}

// exchange is one request on its way.
type exchange struct {
	Request
	client *Client
	host   *host
	buf    *[]byte // the request until it is written; nil = it is
	sent   int     // bytes of it
	tries  []netip.AddrPort
	first  error // of the addresses tried
	last   time.Time

	conn  atomic.Pointer[conn]
	ended atomic.Bool
	dead  atomic.Pointer[error] // set before it is ended from outside: it goes on no further

	watch *watch // guarded by the client's mu, as is the rest
	place int    // in watch
	limit time.Duration
	due   deadlines.Entry[*exchange]
	why   error // of the end when it is due; nil = the next address is tried
}

// New starts a client and its loop. End it with Close.
func New(o Options) (*Client, error) {
	if o.Resolve == nil || o.IdleTimeout <= 0 || o.Linger <= 0 || o.MaxIdlePerHost < 0 {
		return nil, errors.New("epoll: Resolve, IdleTimeout and Linger are required, MaxIdlePerHost must be >= 0")
	}
	if o.Connected == nil {
		o.Connected = func(string) {}
	}
	poller, err := sockets.OpenPoller()
	if err != nil {
		return nil, err
	}
	c := &Client{
		opts: o, stopped: make(chan struct{}), epoch: time.Now(), alarm: never,
		hosts: map[string]*host{}, watched: map[<-chan struct{}]*watch{},
		building: sync.Pool{New: func() any { return new([]byte) }},
	}
	c.loop.client, c.loop.poller, c.loop.heads = c, poller, http1.NewHeads()
	go c.run()
	return c, nil
}

// Close closes all connections; what is in flight ends with ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.loop.poller.Ring()
	}
	c.mu.Unlock()
	<-c.stopped
	return nil
}

// Do starts an exchange and returns as soon as the socket has what it takes of the request, without waiting for
// anybody. The handler may be called before Do returns.
func (c *Client) Do(ctx context.Context, r Request) {
	x := &exchange{Request: r, client: c}
	x.due.Owner = x
	if r.Timeout > 0 {
		x.limit = c.now() + r.Timeout
	}
	err := c.admit(ctx, x)
	x.build()
	if err != nil {
		c.fail(x, err)
		return
	}
	c.start(x)
}

// now counts from the client's start, on the monotonic clock.
func (c *Client) now() time.Duration { return time.Since(c.epoch) }

// never is later than anything.
const never time.Duration = 1<<63 - 1

// build writes the request to a buffer.
func (x *exchange) build() {
	x.buf, x.sent = x.client.building.Get().(*[]byte), 0
	*x.buf = x.Payload.AppendRequest((*x.buf)[:0])
}

// written gives the buffer back.
func (x *exchange) written() {
	x.client.building.Put(x.buf)
	x.buf = nil
}

// start sends x on an idle connection, or opens one.
func (c *Client) start(x *exchange) {
	for {
		n := c.takeIdle(x.host)
		if n == nil {
			c.dial(x)
			return
		}
		if n.carry(x) {
			return
		}
	}
}

// retry sends x once more, from the start.
func (c *Client) retry(x *exchange) {
	if x.buf == nil {
		x.build()
	}
	x.sent = 0
	c.start(x)
}

// end calls the handler's End, once. No lock may be held.
func (c *Client) end(x *exchange, err error, at time.Time) {
	if !x.ended.CompareAndSwap(false, true) {
		return
	}
	c.mu.Lock()
	c.dismiss(x)
	c.mu.Unlock()
	if at.Before(x.last) {
		at = x.last
	}
	x.Handler.End(err, at)
}

// fail ends what failed under the eyes of who sends it, who must not find himself sending the next one inside.
func (c *Client) fail(x *exchange, err error) { go c.end(x, err, time.Now()) }

// abort ends x from outside, wherever it is.
func (c *Client) abort(x *exchange, why error) {
	x.dead.Store(&why) // from here on it is given no connection
	if n := x.conn.Load(); n != nil {
		n.drop(x)
	}
	c.end(x, why, time.Now())
}
