//go:build amd64 || arm64

package epoll

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"tailgate/internal/sockets"
)

// host is one address to which requests go.
type host struct {
	addr     string
	fixed    []netip.AddrPort // of an address that is no name
	idle     []*conn          // the one used last is last; some may be closed; guarded by the client's mu
	resolved bool             // as well
}

func newHost(addr string) *host {
	h := &host{addr: addr}
	if at, err := netip.ParseAddrPort(addr); err == nil {
		h.fixed = []netip.AddrPort{at}
	}
	return h
}

// takeIdle returns the connection that was used last; nil = there is none.
func (c *Client) takeIdle(h *host) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(h.idle) > 0 {
		last := len(h.idle) - 1
		n := h.idle[last]
		if !n.gone && n.idleAt+c.opts.IdleTimeout <= c.now() {
			return nil // so are the others: the loop closes them
		}
		h.idle[last] = nil
		h.idle = h.idle[:last]
		if !n.gone {
			return n
		}
	}
	return nil
}

// putIdle keeps n; false = there are enough.
func (c *Client) putIdle(n *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := n.host
	if c.opts.MaxIdlePerHost > 0 {
		h.idle = slices.DeleteFunc(h.idle, func(n *conn) bool { return n.gone })
		if len(h.idle) >= c.opts.MaxIdlePerHost {
			return false
		}
	}
	n.idleAt = c.now()
	h.idle = append(h.idle, n)
	c.wakeAt(n.idleAt + c.opts.IdleTimeout)
	return true
}

// dial begins to connect to the addresses of x's host, one after the other.
func (c *Client) dial(x *exchange) {
	if x.host.fixed != nil {
		x.tries = x.host.fixed
		c.dialNext(x, nil)
		return
	}
	c.mu.Lock()
	resolved := x.host.resolved
	c.mu.Unlock()
	if resolved {
		c.resolve(x)
	} else {
		go c.resolve(x) // the first one may take its time
	}
}

func (c *Client) resolve(x *exchange) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	name, port, err := net.SplitHostPort(x.Addr)
	var list []string
	if err == nil {
		list, err = c.opts.Resolve(ctx, name)
	}
	if err != nil {
		c.fail(x, err)
		return
	}
	for _, ip := range list {
		at, bad := netip.ParseAddrPort(net.JoinHostPort(ip, port))
		if err = errors.Join(err, bad); bad == nil {
			x.tries = append(x.tries, at)
		}
	}
	c.mu.Lock()
	x.host.resolved = true
	c.mu.Unlock()
	c.dialNext(x, err)
}

// dialNext tries the next address, err being what came of the one before, or ends x with the first error.
func (c *Client) dialNext(x *exchange, err error) {
	for {
		if x.first == nil {
			x.first = err
		}
		if x.dead.Load() != nil {
			return
		}
		if len(x.tries) == 0 {
			c.fail(x, x.first)
			return
		}
		to := x.tries[0]
		x.tries = x.tries[1:]
		if err = c.connect(x, to); err == nil {
			return
		}
	}
}

// dialTimedOut gives an address up.
func (c *Client) dialTimedOut(x *exchange) {
	if n := x.conn.Load(); n != nil {
		n.drop(x)
	}
	c.dialNext(x, errDial{})
}

// connect makes a socket for x and begins to connect it. On a fast network that is done at once.
func (c *Client) connect(x *exchange, to netip.AddrPort) error {
	fd, err := sockets.Connect(to)
	if err != nil {
		return err
	}
	n := &conn{client: c, host: x.host, fd: fd, x: x}
	n.mu.Lock() // the loop waits with what it hears
	x.conn.Store(n)
	c.dialing(x, true)
	if err := c.enroll(n); err != nil {
		n.leave()
		n.mu.Unlock()
		return err
	}
	n.connected()
	return nil
}

// enroll lets epoll watch n, which it calls by its descriptor and its number: descriptors are used again, and what
// epoll said of a connection that was closed meanwhile must hit nobody.
func (c *Client) enroll(n *conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	for len(c.conns) <= n.fd {
		c.conns = append(c.conns, nil)
	}
	c.born++
	n.number, c.conns[n.fd] = c.born, n
	return c.loop.poller.Add(n.fd, n.number)
}

// connAt is the connection of an event; nil = it was closed.
func (c *Client) connAt(e *sockets.Event) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.conns[e.Fd]; n != nil && n.number == e.Pad {
		return n
	}
	return nil
}

// shut closes what is open, when the loop has ended.
func (c *Client) shut() {
	c.mu.Lock()
	open := slices.DeleteFunc(slices.Clone(c.conns), func(n *conn) bool { return n == nil })
	c.mu.Unlock()
	for _, n := range open {
		n.mu.Lock()
		x := n.x
		n.x = nil
		n.close()
		n.mu.Unlock()
		if x != nil {
			c.end(x, ErrClosed, time.Now())
		}
	}
	c.loop.poller.Close() // no one uses it any more: who would ring looks whether the client is closed
}
