//go:build amd64 || arm64

package epoll

import (
	"context"
	"slices"
	"time"
)

// watch are the exchanges that end with a context.
type watch struct {
	stop func() bool
	key  <-chan struct{}
	list []*exchange
}

// admit makes an exchange known: to its host, to the timers and to its context.
func (c *Client) admit(ctx context.Context, x *exchange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil: // with mu held, so that a context that ends later finds x in its list
		return ErrCancelled
	case c.closed:
		return ErrClosed
	}
	x.host = c.hosts[x.Addr]
	if x.host == nil {
		x.host = newHost(x.Addr)
		c.hosts[x.Addr] = x.host
	}
	if x.limit > 0 {
		c.set(x, x.limit, ErrTimeout)
	}
	key := ctx.Done()
	w := c.watched[key]
	if w == nil {
		w = &watch{key: key}
		c.watched[key] = w
		if key != nil {
			w.stop = context.AfterFunc(ctx, func() { c.cancel(w) })
		}
	}
	x.watch, x.place = w, len(w.list)
	w.list = append(w.list, x)
	return nil
}

// cancel ends everything that a context held.
func (c *Client) cancel(w *watch) {
	c.mu.Lock()
	list := append([]*exchange(nil), w.list...)
	c.mu.Unlock()
	for _, x := range list {
		c.abort(x, ErrCancelled)
	}
}

// dismiss forgets an exchange that has ended; mu is held.
func (c *Client) dismiss(x *exchange) {
	c.timers.Drop(&x.due)
	w := x.watch
	if w == nil {
		return
	}
	last := len(w.list) - 1
	w.list[x.place] = w.list[last]
	w.list[x.place].place = x.place
	w.list[last] = nil
	w.list = w.list[:last]
	x.watch = nil
	if last == 0 {
		if w.stop != nil {
			w.stop()
		}
		delete(c.watched, w.key)
	}
}

// set makes x end at the instant at for the reason why, unless it has an earlier end; mu is held.
func (c *Client) set(x *exchange, at time.Duration, why error) {
	if x.limit > 0 && x.limit < at {
		at, why = x.limit, ErrTimeout
	}
	x.why = why
	c.timers.Set(&x.due, at)
	c.wakeAt(at)
}

// dialing bounds a connection attempt, or ends the bound.
func (c *Client) dialing(x *exchange, begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case x.ended.Load():
	case begins:
		c.set(x, c.now()+dialTimeout, nil)
	case x.limit > 0:
		c.set(x, x.limit, ErrTimeout)
	default:
		c.timers.Drop(&x.due)
	}
}

// linger gives a complete answer a moment for its end.
func (c *Client) linger(x *exchange, from time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !x.ended.Load() {
		c.set(x, from.Sub(c.epoch)+c.opts.Linger, ErrLinger)
	}
}

// wakeAt makes sure that expire runs at the instant at; mu is held.
func (c *Client) wakeAt(at time.Duration) {
	c.alarm = min(c.alarm, at)
	if at < c.asleep {
		c.loop.poller.Ring()
	}
}

// expire works off the timers and closes connections that were idle for too long, when it is time.
func (c *Client) expire() {
	now := c.now()
	c.mu.Lock()
	if now < c.alarm {
		c.mu.Unlock()
		return
	}
	c.alarm = never
	type expired struct {
		x   *exchange
		why error
	}
	var late []expired
	for x, ok := c.timers.Pop(now); ok; x, ok = c.timers.Pop(now) {
		late = append(late, expired{x, x.why})
	}
	var old []*conn
	for _, h := range c.hosts {
		n := 0
		for n < len(h.idle) && h.idle[n].idleAt+c.opts.IdleTimeout <= now {
			n++
		}
		old = append(old, h.idle[:n]...)
		if n > 0 {
			h.idle = slices.Delete(h.idle, 0, n)
		}
		if len(h.idle) > 0 {
			c.wakeAt(h.idle[0].idleAt + c.opts.IdleTimeout)
		}
	}
	if at, ok := c.timers.Next(); ok {
		c.wakeAt(at)
	}
	c.mu.Unlock()
	for _, n := range old {
		n.expire()
	}
	for _, l := range late {
		if l.why != nil {
			c.abort(l.x, l.why)
		} else {
			c.dialTimedOut(l.x)
		}
	}
}

// errDial is a connection attempt that took too long; it is a timeout to whoever asks for net.Error.
type errDial struct{}

func (errDial) Error() string   { return "connecting: no answer" }
func (errDial) Timeout() bool   { return true }
func (errDial) Temporary() bool { return true }
