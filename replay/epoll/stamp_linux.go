//go:build amd64 || arm64

package epoll

import (
	"encoding/binary"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiver reads sockets with recvmsg, which tells when the kernel received what it returns (SO_TIMESTAMPNS, socket(7)): of
// several segments the last one. Its system calls do not block and are not announced to the scheduler.
type receiver struct {
	buf   [64 << 10]byte
	oob   [64]byte
	iov   unix.Iovec
	msg   unix.Msghdr
	now   time.Time // of the last wake-up: what stamps are counted from
	blind bool      // the kernel gives no stamps
}

// wake takes the time at which stamps begin to be counted.
func (r *receiver) wake() { r.now = time.Now() }

// receive reads once; n = 0 is the end of the connection.
func (r *receiver) receive(fd int) (n int, at time.Time, err error) {
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
			return 0, time.Time{}, errno
		}
		return int(got), r.stamp(), nil
	}
}

// stamp is the instant of the last read, on our monotonic clock: the kernel's stamp is by the wall clock, which both were
// read from within moments. One that cannot be right, as the wall clock was set, is replaced by now.
func (r *receiver) stamp() time.Time {
	const header = unix.SizeofCmsghdr
	c := (*unix.Cmsghdr)(unsafe.Pointer(&r.oob[0]))
	if int(r.msg.Controllen) < header+16 || c.Level != unix.SOL_SOCKET || c.Type != unix.SCM_TIMESTAMPNS {
		r.blind = true
		return time.Now()
	}
	r.blind = false
	sec, nsec := binary.NativeEndian.Uint64(r.oob[header:]), binary.NativeEndian.Uint64(r.oob[header+8:])
	since := time.Duration(int64(sec)*1e9 + int64(nsec) - r.now.UnixNano())
	const most = 10 * time.Second
	if since > most || since < -most {
		return time.Now()
	}
	return r.now.Add(since)
}

// write sends what the socket takes.
func write(fd int, p []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return 0, errno
		}
		return int(n), nil
	}
}

// peek looks at what has come on a connection without taking it.
func peek(fd int) (n int, errno unix.Errno) {
	var b [1]byte
	got, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return int(got), errno
}

// untouched tells that nothing has come, neither bytes nor the connection's end.
func untouched(fd int) bool { _, errno := peek(fd); return errno == unix.EAGAIN }

// readable tells that bytes have come.
func readable(fd int) bool { n, errno := peek(fd); return errno == 0 && n > 0 }
