//go:build amd64 || arm64

package epoll

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tailgate/internal/http1"
	"tailgate/internal/sockets"
)

// conn is one connection. The loop reads it; a request is put on it by whoever sends one.
type conn struct {
	client *Client
	host   *host
	number int32
	idleAt time.Duration // guarded by the client's mu, as is the next one
	gone   bool          // closed

	mu     sync.Mutex
	fd     int       // -1 = closed
	x      *exchange // nil = idle
	in     http1.Response
	up     bool // connected
	reused bool // carried an answer before
	hung   bool // the peer will send no more
}

// readsPerTurn bounds what one connection may take before others have their turn.
const readsPerTurn = 16

// carry puts x on an idle connection; false = the connection is of no use, and x has not been touched.
func (n *conn) carry(x *exchange) bool {
	n.mu.Lock()
	if n.fd < 0 || !sockets.Untouched(n.fd) {
		n.close()
		n.mu.Unlock()
		return false
	}
	n.in, n.reused = http1.Response{}, true
	return n.attach(x)
}

// attach makes x the one that n carries and begins to write; mu is held and is given up. false = n was kept and turns out
// to be of no use: nothing was written.
func (n *conn) attach(x *exchange) bool {
	n.x = x
	x.conn.Store(n)
	if x.dead.Load() != nil { // who aborts it ends it
		n.leave()
		n.mu.Unlock()
		return true
	}
	err := n.write()
	if err == nil || sockets.Readable(n.fd) { // an answer may be there although the rest of the request is not wanted
		n.mu.Unlock()
		return true
	}
	n.leave()
	n.mu.Unlock()
	if x.sent == 0 && n.reused {
		return false
	}
	n.client.fail(x, err)
	return true
}

// leave closes n, which carries nothing any more.
func (n *conn) leave() {
	n.x = nil
	n.close()
}

// write sends what is left of the request, as far as the socket takes it; mu is held.
func (n *conn) write() error {
	x := n.x
	for x.buf != nil {
		sent, err := sockets.Write(n.fd, (*x.buf)[x.sent:])
		x.sent += sent
		switch {
		case x.sent == len(*x.buf):
			x.written()
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// ready works off what epoll said of n. It runs on the loop.
func (n *conn) ready(events uint32) {
	n.mu.Lock()
	if n.fd < 0 {
		n.mu.Unlock()
		return
	}
	if !n.up {
		n.connected() // gives up mu
		return
	}
	const hangUp = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	n.hung = n.hung || events&hangUp != 0
	x := n.x
	if x == nil {
		if !sockets.Untouched(n.fd) {
			n.close()
		}
		n.mu.Unlock()
		return
	}
	over, at, err := false, time.Time{}, error(nil)
	if events&(unix.EPOLLIN|hangUp) != 0 {
		over, at, err = n.read(x)
	}
	if !over && events&unix.EPOLLOUT != 0 && x.buf != nil {
		if err = n.write(); err != nil {
			over, at = true, time.Now()
		}
	}
	if !over {
		n.mu.Unlock()
		return
	}
	n.release(x, err)
	again := err != nil && n.reused && n.in.Untouched() &&
		(x.buf != nil && x.sent == 0 || x.Idempotent && !errors.Is(err, ErrTimeout))
	n.mu.Unlock()
	if again && x.dead.Load() == nil {
		n.client.retry(x)
		return
	}
	n.client.loop.ending = append(n.client.loop.ending, ending{x, err, at})
}

// release parts x and n; n is kept where it may carry another request. mu is held.
func (n *conn) release(x *exchange, err error) {
	n.x = nil
	if err != nil || x.buf != nil || n.hung || !n.in.Reusable() || !n.client.putIdle(n) {
		n.close()
	}
}

// read takes what has come; over = the exchange has ended.
func (n *conn) read(x *exchange) (over bool, at time.Time, err error) {
	c := n.client
	for range readsPerTurn {
		got, full, at, err := c.loop.in.Receive(n.fd)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false, at, nil
		case err != nil:
			return true, time.Now(), err
		case len(got) == 0:
			n.hung = true
			return true, time.Now(), n.in.EOF(c.loop.heads)
		}
		if at.Before(x.last) {
			at = x.last
		}
		x.last = at
		if over, err = n.take(x, got, at); over || !full && !n.hung {
			return over, at, err
		}
	}
	c.loop.again = append(c.loop.again, n)
	return false, at, nil
}

// take hands the bytes of one read to the handler.
func (n *conn) take(x *exchange, p []byte, at time.Time) (over bool, err error) {
	next := More
	if n.in.InHead() {
		head, rest, err := n.in.TakeHead(n.client.loop.heads, p) //nolint:bodyclose // a head is all that it is
		if head == nil {
			return err != nil, err
		}
		p = rest
		if next = x.Handler.Head(head, at); next == Stop || n.in.Done() {
			return true, nil
		}
	}
	for len(p) > 0 { // also what is not wanted any more: the answer's end may be there
		var data []byte
		if data, p, err = n.in.Next(p); err != nil && next != Stop {
			return true, err
		} else if err != nil {
			return true, nil
		}
		if len(data) > 0 && next != Stop {
			was := next
			if next = x.Handler.Body(data, at); next == Linger && was != Linger {
				n.client.linger(x, at)
			}
		}
		if n.in.Done() {
			return true, nil
		}
	}
	return next == Stop, nil
}

// drop takes x off n, if it is still there.
func (n *conn) drop(x *exchange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.x == x {
		n.leave()
	}
}

// expire closes n, which was idle for too long.
func (n *conn) expire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.x == nil {
		n.close()
	}
}

// close closes the descriptor; epoll forgets it with that. mu is held.
func (n *conn) close() {
	if n.fd < 0 {
		return
	}
	c := n.client
	c.mu.Lock()
	if n.number > 0 {
		c.conns[n.fd] = nil
	}
	n.gone = true
	c.mu.Unlock()
	// Nothing is to be done about a failure, and the descriptor is gone after one.
	_ = unix.Close(n.fd)
	n.fd = -1
}

// connected finds out what became of the attempt to connect, and begins to write, or tries the next address. mu is
// held and is given up.
func (n *conn) connected() {
	x, err := n.x, sockets.Connected(n.fd)
	switch {
	case errors.Is(err, unix.EINPROGRESS):
		n.mu.Unlock()
	case err == nil:
		n.up = true
		n.client.dialing(x, false)
		n.client.opts.Connected(x.Addr)
		n.attach(x)
	default:
		n.leave()
		n.mu.Unlock()
		n.client.dialNext(x, os.NewSyscallError("connect", err))
	}
}
