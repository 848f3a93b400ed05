//go:build amd64 || arm64

package epoll

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"tailgate/internal/http1"
	"tailgate/internal/sockets"
)

// loop is what reads. One goroutine at a time runs it: the client's own, or who waits in a Driver.
type loop struct {
	client  *Client
	poller  *sockets.Poller
	in      sockets.Receiver
	heads   *http1.Heads
	again   []*conn // had more to read than one turn takes
	ending  []ending
	woken   time.Duration // when something was read last
	often   bool          // that was soon after the time before
	yielded time.Duration
}

// ending is an exchange that the loop has found the end of.
type ending struct {
	x   *exchange
	err error
	at  time.Time
}

// Data gathers for so long, more or less, where wake-ups follow each other within busy. What comes to many streams one by
// one would wake the loop for each of them, and waking costs more than reading; as stamps are the kernel's, a moment's rest
// changes none of them.
const (
	gather = 500 * time.Microsecond
	busy   = 2 * time.Millisecond
)

// yieldEvery is how often the loop lets the Go scheduler see that it is alive, which has it wait in peace in system calls.
const yieldEvery = 5 * time.Millisecond

// run is the client's own goroutine.
func (c *Client) run() {
	defer close(c.stopped)
	defer c.shut()
	for {
		c.mu.Lock()
		d, closed := c.driver, c.closed
		c.mu.Unlock()
		switch {
		case d != nil:
			close(d.ready)
			<-d.over
		case closed:
			return
		default:
			c.loop.step(never)
		}
	}
}

// step waits until something comes, at most until the deadline, and works it off.
func (l *loop) step(deadline time.Duration) {
	c := l.client
	now := c.now()
	if now-l.yielded > yieldEvery {
		runtime.Gosched()
		l.yielded = now
	}
	if rest := l.woken + gather - now; l.often && rest > 0 {
		if now < deadline {
			l.poller.Rest(rest)
		}
		if c.now() >= deadline {
			return
		}
	}
	c.mu.Lock()
	until := min(deadline, c.alarm)
	if len(l.again) > 0 || c.closed {
		until = 0
	}
	c.asleep = until
	c.mu.Unlock()
	events := l.poller.Wait(max(0, until-c.now()))
	c.mu.Lock()
	c.asleep = 0
	c.mu.Unlock()
	l.turn(events)
}

// turn works off the events of one wake-up.
func (l *loop) turn(events []sockets.Event) {
	c := l.client
	l.in.Wake()
	again := l.again
	l.again = nil
	for _, n := range again {
		n.ready(unix.EPOLLIN)
	}
	for i := range events {
		if n := c.connAt(&events[i]); n != nil {
			n.ready(events[i].Events)
		}
	}
	if len(again)+len(events) > 0 {
		at := l.in.Now.Sub(c.epoch)
		l.often = at-l.woken < busy && !l.in.Blind
		l.woken = at
	}
	for _, e := range l.ending {
		c.end(e.x, e.err, e.at)
	}
	clear(l.ending)
	l.ending = l.ending[:0]
	c.expire()
}

// Driver runs a client's loop while it waits: who sends on time and reads what comes is then one thread, which wakes no other.
// It has the methods of a waiter. Make it with Client.Drive.
type Driver struct {
	client      *Client
	ready, over chan struct{}
	woken       atomic.Bool
}

// Drive lets the caller run the loop, until he calls Close. The client must not be closed before.
func (c *Client) Drive() (*Driver, error) {
	d := &Driver{client: c, ready: make(chan struct{}), over: make(chan struct{})}
	c.mu.Lock()
	if c.driver != nil || c.closed {
		defer c.mu.Unlock()
		if c.closed {
			return nil, ErrClosed
		}
		return nil, ErrDriven
	}
	c.driver = d
	c.loop.poller.Ring()
	c.mu.Unlock()
	<-d.ready
	return d, nil
}

// Wait reads answers until the deadline, the zero time meaning forever, or until it is woken.
func (d *Driver) Wait(deadline time.Time) {
	l, until := &d.client.loop, never
	left := time.Duration(0)
	if !deadline.IsZero() {
		until, left = deadline.Sub(d.client.epoch), max(1, time.Until(deadline))
	}
	l.poller.SetClock(left)
	for !d.woken.Swap(false) {
		l.step(until)
		if d.client.now() >= until {
			return
		}
	}
}

// Wake ends the wait under way, or the next one. Any goroutine may call it.
func (d *Driver) Wake() {
	d.woken.Store(true)
	d.client.mu.Lock()
	defer d.client.mu.Unlock()
	if d.client.driver == d {
		d.client.loop.poller.Ring()
	}
}

// Close gives the loop back.
func (d *Driver) Close() {
	d.client.mu.Lock()
	d.client.driver = nil
	d.client.mu.Unlock()
	d.client.loop.poller.SetClock(0)
	close(d.over)
}
