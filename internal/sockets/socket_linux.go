//go:build amd64 || arm64

package sockets

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keepAlive is when an idle peer is asked whether it lives, and how often, as in net.
const keepAlive = 15 * time.Second

// Connect makes a socket and begins to connect it; Connected tells what became of that. On a fast network it is done at once.
func Connect(to netip.AddrPort) (fd int, err error) {
	family, sa := address(to)
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	setOptions(fd)
	if err := unix.Connect(fd, sa); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return -1, errors.Join(os.NewSyscallError("connect", err), unix.Close(fd))
	}
	return fd, nil
}

// setOptions sets what net sets, and asks for stamps. A socket without one of them still works.
func setOptions(fd int) {
	for _, o := range [...]struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepAlive / time.Second)},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepAlive / time.Second)},
	} {
		_ = unix.SetsockoptInt(fd, o.level, o.name, o.value)
	}
	_ = EnableStamps(fd)
}

// address is an address as the kernel has it.
func address(at netip.AddrPort) (family int, sa unix.Sockaddr) {
	ip := at.Addr().Unmap()
	if ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: ip.As4()}
	}
	six := &unix.SockaddrInet6{Port: int(at.Port()), Addr: ip.As16()}
	if index, err := strconv.ParseUint(ip.Zone(), 10, 32); err == nil {
		six.ZoneId = uint32(index)
	} else if link, err := net.InterfaceByName(ip.Zone()); err == nil {
		six.ZoneId = uint32(link.Index)
	}
	return unix.AF_INET6, six
}

// Connected is what a socket says of its connection: null = it stands; EINPROGRESS = it is still being made.
func Connected(fd int) error {
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		return err
	}
	peer, err := unix.Getpeername(fd)
	if errors.Is(err, unix.ENOTCONN) {
		return unix.EINPROGRESS
	}
	if err != nil {
		return err
	}
	// A port that nobody listens at may be the one that the kernel gave to our own end.
	if own, err := unix.Getsockname(fd); err == nil && reflect.DeepEqual(own, peer) {
		return unix.ECONNREFUSED
	}
	return nil
}

// Write sends what the socket takes.
func Write(fd int, p []byte) (int, error) {
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

// Untouched tells that nothing has come, neither bytes nor the connection's end.
func Untouched(fd int) bool { _, errno := peek(fd); return errno == unix.EAGAIN }

// Readable tells that bytes have come.
func Readable(fd int) bool { n, errno := peek(fd); return errno == 0 && n > 0 }
