package sim

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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
	oob [128]byte
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
	err = raw.Control(func(fd uintptr) { fault = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) })
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
		r.at = kernelStamp(r.oob[:oobn])
		return true
	}
}

// kernelStamp finds the stamp among control messages; 0 = there is none.
func kernelStamp(oob []byte) int64 {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	for _, m := range list {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_TIMESTAMPNS {
			continue
		}
		if len(m.Data) >= 16 {
			return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		}
		return int64(int32(binary.NativeEndian.Uint32(m.Data)))*1e9 + int64(binary.NativeEndian.Uint32(m.Data[4:]))
	}
	return 0
}
