package sim

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket writes to a connection without ever waiting for it.
type socket struct {
	raw syscall.RawConn // nil: no socket
	*attempt
}

// attempt is one write.
type attempt struct {
	buf []byte
	n   int
	err error
	f   func(fd uintptr) bool
}

func newSocket(c net.Conn) socket {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return socket{}
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return socket{}
	}
	a := &attempt{}
	a.f = a.write
	return socket{raw, a}
}

// can tells whether try works.
func (s socket) can() bool { return s.raw != nil }

// try writes what the socket takes at once, and returns how much that was. It is not for concurrent use.
func (s socket) try(buf []byte) (int, error) {
	s.buf = buf
	err := s.raw.Write(s.f)
	s.buf = nil
	if err != nil {
		return 0, err
	}
	return s.n, s.err
}

// write is called by the runtime; true means that it shall not wait and call again.
func (a *attempt) write(fd uintptr) bool {
	for {
		a.n, a.err = unix.Write(int(fd), a.buf)
		switch {
		case errors.Is(a.err, unix.EINTR):
			continue
		case errors.Is(a.err, unix.EAGAIN):
			a.n, a.err = 0, nil
		}
		return true
	}
}
