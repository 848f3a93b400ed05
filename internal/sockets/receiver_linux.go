//go:build amd64 || arm64

package sockets

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Receiver reads sockets, all into one buffer, with the kernel's stamps.
type Receiver struct {
	Now   time.Time // of the last wake-up: what stamps are counted from
	Blind bool      // the kernel gives no stamps

	buf [64 << 10]byte
	oob [StampRoom]byte
	iov unix.Iovec
	msg unix.Msghdr
}

// Wake takes the time at which stamps begin to be counted.
func (r *Receiver) Wake() { r.Now = time.Now() }

// Receive reads once; no bytes are the end of the connection. They are valid until the next call, and full tells that there
// was no room for more.
func (r *Receiver) Receive(fd int) (p []byte, full bool, at time.Time, err error) {
	for {
		r.iov.Base = &r.buf[0]
		r.iov.SetLen(len(r.buf))
		r.msg = unix.Msghdr{Iov: &r.iov, Control: &r.oob[0]}
		r.msg.SetIovlen(1)
		r.msg.SetControllen(len(r.oob))
		got, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.msg)), unix.MSG_DONTWAIT)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return nil, false, time.Time{}, errno
		}
		return r.buf[:got], int(got) == len(r.buf), r.stamp(), nil
	}
}

// stamp is the instant of the last read, on our monotonic clock: the kernel's stamp is by the wall clock, which both were
// read from within moments. One that cannot be right, as the wall clock was set, is replaced by now.
func (r *Receiver) stamp() time.Time {
	at := Stamp(r.oob[:r.msg.Controllen])
	if r.Blind = at == 0; r.Blind {
		return time.Now()
	}
	since := time.Duration(at - r.Now.UnixNano())
	const most = 10 * time.Second
	if since > most || since < -most {
		return time.Now()
	}
	return r.Now.Add(since)
}
