//go:build amd64 || arm64

package epoll

import (
	"container/heap"
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
	if ctx.Err() != nil {
		return ErrCancelled
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
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
	c.unset(x)
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
	x.due, x.why = at, why
	if x.timer < 0 {
		heap.Push(&c.timers, x)
	} else {
		heap.Fix(&c.timers, x.timer)
	}
	c.wakeAt(at)
}

// unset takes x from the timers; mu is held.
func (c *Client) unset(x *exchange) {
	if x.timer >= 0 {
		heap.Remove(&c.timers, x.timer)
	}
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
		c.unset(x)
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
		c.loop.ring()
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
	var late []*exchange
	for len(c.timers) > 0 && c.timers[0].due <= now {
		late = append(late, heap.Pop(&c.timers).(*exchange))
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
	if len(c.timers) > 0 {
		c.wakeAt(c.timers[0].due)
	}
	c.mu.Unlock()
	for _, n := range old {
		n.expire()
	}
	for _, x := range late {
		switch why := x.why; {
		case why != nil:
			c.abort(x, why)
		default:
			c.dialTimedOut(x)
		}
	}
}

// errDial is a connection attempt that took too long; it is a timeout to whoever asks for net.Error.
type errDial struct{}

func (errDial) Error() string   { return "connecting: no answer" }
func (errDial) Timeout() bool   { return true }
func (errDial) Temporary() bool { return true }

// timers is a heap by due.
type timers []*exchange

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].due < t[j].due }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i]; t[i].timer, t[j].timer = i, j }
func (t *timers) Push(v any)        { x := v.(*exchange); x.timer = len(*t); *t = append(*t, x) }
func (t *timers) Pop() any {
	x := (*t)[len(*t)-1]
	(*t)[len(*t)-1] = nil
	*t = (*t)[:len(*t)-1]
	x.timer = -1
	return x
}
