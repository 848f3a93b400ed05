package sim

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tailgate/internal/sockets"
)

// source reads a socket with recvmsg, which tells when the kernel received the segment (SO_TIMESTAMPNS, socket(7)).
// Of a read that takes several segments it is the last one's.
type source struct {
	raw syscall.RawConn
	*receipt
}

// receipt is one read.
type receipt struct {
	p   []byte
	n   int
	at  int64
	err error
	oob [sockets.StampRoom]byte
	f   func(fd uintptr) bool
}

func newSource(c net.Conn) source {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return source{}
	}
	raw, err := sc.SyscallConn()
	if err != nil || enableStamps(sc) != nil {
		return source{}
	}
	r := &receipt{}
	r.f = r.receive
	return source{raw, r}
}

// enableStamps asks the kernel for stamps. Connections that a listener accepts inherit it, so that the first
// segment has one too.
func enableStamps(sc syscall.Conn) error {
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var fault error
	err = raw.Control(func(fd uintptr) { fault = sockets.EnableStamps(int(fd)) })
	return errors.Join(err, fault)
}

func (s source) can() bool { return s.raw != nil }

// read returns the Unix time in ns at which the kernel received what was read; 0 where it does not tell.
func (s source) read(p []byte) (n int, at int64, err error) {
	s.p = p
	err = s.raw.Read(s.f)
	s.p = nil
	switch {
	case err != nil:
		return 0, 0, err
	case s.err != nil:
		return 0, 0, os.NewSyscallError("recvmsg", s.err)
	case s.n == 0 && len(p) > 0:
		return 0, 0, io.EOF
	}
	return s.n, s.at, nil
}

// receive is called by the runtime; false means that it shall wait for data and call again.
func (r *receipt) receive(fd uintptr) bool {
	for {
		var oobn int
		r.n, oobn, _, _, r.err = unix.Recvmsg(int(fd), r.p, r.oob[:], 0)
		switch {
		case errors.Is(r.err, unix.EINTR):
			continue
		case errors.Is(r.err, unix.EAGAIN):
			return false
		}
		r.at = sockets.Stamp(r.oob[:oobn])
		return true
	}
}
