package sim

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// direct writes to a socket without ever waiting for it.
type direct struct {
	raw syscall.RawConn // nil: no socket
	buf []byte
	n   int
	err error
	f   func(fd uintptr) bool
}

func newPeer(c net.Conn) *peer {
	p := &peer{conn: c}
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			p.raw, p.f = raw, p.write
		}
	}
	return p
}

func (d *direct) can() bool { return d.raw != nil }

// try writes what the socket takes at once, and returns how much that was.
func (d *direct) try(buf []byte) (int, error) {
	d.buf = buf
	if err := d.raw.Write(d.f); err != nil {
		return 0, err
	}
	return d.n, d.err
}

// write is called by the runtime once; true means that it shall not wait and call again.
func (d *direct) write(fd uintptr) bool {
	for {
		d.n, d.err = unix.Write(int(fd), d.buf)
		switch {
		case errors.Is(d.err, unix.EINTR):
			continue
		case errors.Is(d.err, unix.EAGAIN):
			d.n, d.err = 0, nil
		}
		return true
	}
}
