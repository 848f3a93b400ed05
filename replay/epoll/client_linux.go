//go:build amd64 || arm64

package epoll

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tailgate/internal/http1"
)

// Supported tells whether New works on this system.
const Supported = true

// Client exchanges requests and answers. Make it with New; it is safe for concurrent use.
type Client struct {
	opts    Options
	ep      int      // epoll descriptor
	file    *os.File // the same, for the runtime to wait on
	bell    int      // eventfd that wakes the loop
	alarm   *time.Timer
	stopped chan struct{}
	epoch   time.Time

	in     receiver // of the loop, as are the next ones
	events [512]unix.EpollEvent
	came   int // of events
	heads  *http1.Heads
	again  []*conn // had more to read than one turn takes
	ending []ending

	mu       sync.Mutex // guards what follows; taken alone or inside a conn's
	hosts    map[string]*host
	conns    []*conn // by descriptor; nil = none
	born     int32   // connections so far
	watched  map[<-chan struct{}]*watch
	timers   timers
	until    time.Duration // the alarm is set for then
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
	timer int // place among timers; -1 = none
	due   time.Duration
	why   error // of the end at due; nil = the next address is tried
}

// ending is an exchange that the loop has found the end of.
type ending struct {
	x   *exchange
	err error
	at  time.Time
}

// New starts a client and its loop. End it with Close.
func New(o Options) (*Client, error) {
	if o.Resolve == nil || o.IdleTimeout <= 0 || o.Linger <= 0 || o.MaxIdlePerHost < 0 {
		return nil, errors.New("epoll: Resolve, IdleTimeout and Linger are required, MaxIdlePerHost must be >= 0")
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll descriptor: %w", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err == nil {
		err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, bell, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1})
	}
	if err == nil {
		err = unix.SetNonblock(ep, true) // else the runtime would not wait on it
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making an event descriptor: %w", err), unix.Close(ep))
	}
	c := &Client{
		opts: o, ep: ep, bell: bell, stopped: make(chan struct{}), epoch: time.Now(), heads: http1.NewHeads(),
		hosts: map[string]*host{}, watched: map[<-chan struct{}]*watch{},
		building: sync.Pool{New: func() any { return new([]byte) }},
		file:     os.NewFile(uintptr(ep), "epoll"), until: never,
	}
	c.alarm = time.AfterFunc(never, c.wakeUp)
	go c.loop()
	return c, nil
}

// Close closes all connections; what is in flight ends with ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.ring()
	}
	c.mu.Unlock()
	<-c.stopped
	return nil
}

// Do starts an exchange and returns as soon as the socket has what it takes of the request, without waiting for
// anybody. The handler may be called before Do returns.
func (c *Client) Do(ctx context.Context, r Request) {
	x := &exchange{Request: r, client: c, timer: -1}
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

// wakeUp is what the alarm does.
func (c *Client) wakeUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = never
	if !c.closed {
		c.ring()
	}
}

// ring wakes the loop.
func (c *Client) ring() {
	// EAGAIN means that it rings already.
	_, _ = write(c.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

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

// loop reads. It is a goroutine that waits on the epoll descriptor by way of the runtime's own poller: on a thread of its own,
// in epoll_wait, it would keep the runtime's monitor awake, every 20 µs, for two fifths of all processor time.
func (c *Client) loop() {
	defer close(c.stopped)
	defer c.shut()
	ready, err := c.file.SyscallConn()
	if err != nil {
		return // cannot be: the file is open
	}
	var rest pauser
	for c.isOpen() {
		if err := ready.Read(c.poll); err != nil {
			return // as above
		}
		c.turn()
		rest.pause(c.came, c.in.now, c.in.blind)
	}
}

func (c *Client) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed
}

// poll takes the events that there are; false = none, and nothing else is to be done.
func (c *Client) poll(fd uintptr) bool {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&c.events[0])), uintptr(len(c.events)), 0, 0, 0)
	c.came = int(n)
	if errno != 0 {
		c.came = 0 // EINTR: nothing else can happen to a good descriptor
	}
	return c.came > 0 || errno != 0 || len(c.again) > 0
}

// turn works off the events of one wake-up.
func (c *Client) turn() {
	c.in.wake()
	again := c.again
	c.again = nil
	for _, x := range again {
		x.ready(unix.EPOLLIN)
	}
	for i := range c.events[:c.came] {
		if e := &c.events[i]; e.Fd < 0 {
			var count [8]byte
			_, _ = unix.Read(c.bell, count[:])
		} else if x := c.connAt(e); x != nil {
			x.ready(e.Events)
		}
	}
	for i := range c.ending {
		e := &c.ending[i]
		c.end(e.x, e.err, e.at)
		*e = ending{}
	}
	c.ending = c.ending[:0]
	c.expire()
}

// pauser lets data gather. What comes to many streams one by one wakes the loop for each of them, and waking costs more than
// reading; as stamps are the kernel's, a moment's rest changes none of them. It rests only where wake-ups follow each
// other closely, and not where stamps are our own.
type pauser struct{ last time.Time }

// gather is how long data may gather, more or less, and busy the time between wake-ups below which it does.
const (
	gather = 500 * time.Microsecond
	busy   = 2 * time.Millisecond
)

func (p *pauser) pause(events int, woken time.Time, blind bool) {
	often := woken.Sub(p.last) < busy
	p.last = woken
	if events > 0 && often && !blind {
		time.Sleep(gather)
	}
}
