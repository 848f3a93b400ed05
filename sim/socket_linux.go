package sim

import (
	"net"
	"os"
	"syscall"
	"unsafe"

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

// write is called by the runtime; true means that it shall not wait and call again. The socket does not block, so the
// scheduler is not told of the call, and its monitor sleeps longer.
func (a *attempt) write(fd uintptr) bool {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(a.buf))), uintptr(len(a.buf)))
		switch errno {
		case 0:
			a.n, a.err = int(n), nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			a.n, a.err = 0, nil
		default:
			a.n, a.err = 0, os.NewSyscallError("write", errno)
		}
		return true
	}
}
