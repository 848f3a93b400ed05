//go:build amd64 || arm64

package epoll

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tailgate/internal/http1"
)

// loop is what reads. One goroutine at a time runs it: the client's own, or who waits in a Driver.
type loop struct {
	client *Client
	ep     int // epoll descriptor of all connections and of the next two
	bell   int // eventfd that wakes the loop
	clock  int // timerfd for a driver's deadline: exact to the microsecond, which time-outs of threads are not
	fds    [2]unix.PollFd

	in      receiver
	events  [128]unix.EpollEvent
	came    int // of events
	heads   *http1.Heads
	again   []*conn // had more to read than one turn takes
	ending  []ending
	woken   time.Duration // when events came last
	often   bool          // they came soon after those before
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

// What epoll calls the descriptors that are no connections.
const (
	ofBell  = -1
	ofClock = -2
)

// yieldEvery is how often the loop lets the Go scheduler see that it is alive, which has it wait in peace in system calls.
const yieldEvery = 5 * time.Millisecond

func (l *loop) open(c *Client) (err error) {
	l.client, l.heads, l.ep, l.bell, l.clock = c, http1.NewHeads(), -1, -1, -1
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("making an epoll descriptor: %w", err)
	}
	if l.bell, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return fmt.Errorf("making an event descriptor: %w", err)
	}
	if l.clock, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return fmt.Errorf("making a timer descriptor: %w", err)
	}
	l.fds = [2]unix.PollFd{{Fd: int32(l.bell), Events: unix.POLLIN}, {Fd: int32(l.clock), Events: unix.POLLIN}}
	for place, fd := range []int{l.bell, l.clock} {
		if err = unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: ofBell - int32(place)}); err != nil {
			return fmt.Errorf("watching a descriptor: %w", err)
		}
	}
	return nil
}

func (l *loop) close() {
	for _, fd := range []int{l.ep, l.bell, l.clock} {
		if fd >= 0 {
			_ = unix.Close(fd) // nothing is to be done about a failure
		}
	}
}

// ring wakes the loop.
func (l *loop) ring() {
	// EAGAIN means that it rings already.
	_, _ = write(l.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

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
		if now >= deadline {
			return
		}
		if !l.rest(rest) || c.now() >= deadline {
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
	l.poll(until)
	c.mu.Lock()
	c.asleep = 0
	c.mu.Unlock()
	l.turn()
}

// rest lets data gather; false = the bell or the clock has ended it.
func (l *loop) rest(d time.Duration) bool {
	ts := unix.NsecToTimespec(int64(d))
	n, _, errno := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&l.fds[0])), uintptr(len(l.fds)), uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if errno == 0 && n > 0 && l.fds[0].Revents != 0 {
		return true
	}
	return errno != 0 || n == 0
}

// poll waits for events until the instant.
func (l *loop) poll(until time.Duration) {
	ms := -1
	if until != never {
		// A driver's deadline is the clock's business: this is for what is not urgent.
		ms = int(max(0, (until-l.client.now()+time.Millisecond-1)/time.Millisecond))
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.ep), uintptr(unsafe.Pointer(&l.events[0])), uintptr(len(l.events)), uintptr(ms), 0, 0)
	l.came = int(n)
	if errno != 0 {
		l.came = 0 // EINTR: nothing else can happen to a good descriptor
	}
}

// turn works off the events of one wake-up.
func (l *loop) turn() {
	c := l.client
	l.in.wake()
	again := l.again
	l.again = nil
	for _, x := range again {
		x.ready(unix.EPOLLIN)
	}
	data := len(again) > 0
	for i := range l.events[:l.came] {
		e := &l.events[i]
		switch e.Fd {
		case ofBell:
			var count [8]byte
			_, _ = unix.Read(l.bell, count[:])
		case ofClock: // who waits for it looks at the time
		default:
			data = true
			if x := c.connAt(e); x != nil {
				x.ready(e.Events)
			}
		}
	}
	if data {
		at := l.in.now.Sub(c.epoch)
		l.often = at-l.woken < busy && !l.in.blind
		l.woken = at
	}
	for i := range l.ending {
		e := &l.ending[i]
		c.end(e.x, e.err, e.at)
		*e = ending{}
	}
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

// ErrDriven is that a client has a driver already.
var ErrDriven = errors.New("epoll: the client is driven by another")

// Drive lets the caller run the loop, until he calls Close. The client must not be closed before.
func (c *Client) Drive() (*Driver, error) {
	d := &Driver{client: c, ready: make(chan struct{}), over: make(chan struct{})}
	c.mu.Lock()
	if c.driver != nil || c.closed {
		c.mu.Unlock()
		return nil, ErrDriven
	}
	c.driver = d
	c.loop.ring()
	c.mu.Unlock()
	<-d.ready
	return d, nil
}

// Wait reads answers until the deadline, the zero time meaning forever, or until it is woken.
func (d *Driver) Wait(deadline time.Time) {
	l, until := &d.client.loop, never
	var at unix.ItimerSpec
	if !deadline.IsZero() {
		until = deadline.Sub(d.client.epoch)
		at.Value = unix.NsecToTimespec(max(1, time.Until(deadline).Nanoseconds()))
	}
	_ = unix.TimerfdSettime(l.clock, 0, &at, nil) // cannot fail: descriptor and time are good
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
		d.client.loop.ring()
	}
}

// Close gives the loop back.
func (d *Driver) Close() {
	d.client.mu.Lock()
	d.client.driver = nil
	d.client.mu.Unlock()
	_ = unix.TimerfdSettime(d.client.loop.clock, 0, &unix.ItimerSpec{}, nil)
	close(d.over)
}
