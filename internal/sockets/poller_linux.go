//go:build amd64 || arm64

package sockets

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller waits for what comes to connections. One goroutine at a time may wait; only Ring and Add may be called beside it.
// Make it with OpenPoller.
type Poller struct {
	ep     int // of all connections, the bell and the clock
	bell   int // eventfd
	clock  int // timerfd: a thread's own time-outs are late by 50 µs or, in Go's poller, by a millisecond
	fds    [2]unix.PollFd
	events [128]Event
}

// Event is what came to the connection Fd, which Add was given with the number Pad.
type Event = unix.EpollEvent

// What epoll calls the descriptors that are no connections.
const (
	ofBell  = -1
	ofClock = -2
)

// OpenPoller makes a poller. End it with Close.
func OpenPoller() (*Poller, error) {
	p := &Poller{ep: -1, bell: -1, clock: -1}
	if err := p.open(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Poller) open() (err error) {
	if p.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("making an epoll descriptor: %w", err)
	}
	if p.bell, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return fmt.Errorf("making an event descriptor: %w", err)
	}
	if p.clock, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return fmt.Errorf("making a timer descriptor: %w", err)
	}
	for name, fd := range map[int32]int{ofBell: p.bell, ofClock: p.clock} {
		if err = p.watch(fd, Event{Events: unix.EPOLLIN, Fd: name}); err != nil {
			return err
		}
	}
	p.fds = [2]unix.PollFd{{Fd: int32(p.bell), Events: unix.POLLIN}, {Fd: int32(p.clock), Events: unix.POLLIN}}
	return nil
}

// Close frees the descriptors.
func (p *Poller) Close() {
	for _, fd := range []int{p.ep, p.bell, p.clock} {
		if fd >= 0 {
			_ = unix.Close(fd) // nothing is to be done about a failure
		}
	}
}

// Add watches a connection, edge-triggered. number parts it from others that had its descriptor. Closing it is enough to end
// that.
func (p *Poller) Add(fd int, number int32) error {
	return p.watch(fd, Event{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd), Pad: number})
}

func (p *Poller) watch(fd int, e Event) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.ep, unix.EPOLL_CTL_ADD, fd, &e))
}

// Ring ends the wait under way, or the next one.
func (p *Poller) Ring() {
	// EAGAIN means that it rings already.
	_, _ = Write(p.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// SetClock ends the waits from d on, until it is set again; 0 = it ends none.
func (p *Poller) SetClock(d time.Duration) {
	// It cannot fail: descriptor and time are good.
	_ = unix.TimerfdSettime(p.clock, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}, nil)
}

// Wait blocks for d, or until something came, the bell rings or the clock ends it. d is rounded up to milliseconds, what is to
// be on time being the clock's, and down to twelve days. The events are valid until the next call.
func (p *Poller) Wait(d time.Duration) []Event {
	const most = 1 << 30 // ms
	ms := min(d/time.Millisecond+min(d%time.Millisecond, 1), most)
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.ep), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(ms), 0, 0)
	if errno != 0 { // EINTR: nothing else can happen to a good descriptor
		return nil
	}
	came := p.events[:0]
	for _, e := range p.events[:n] {
		switch e.Fd {
		case ofBell:
			var count [8]byte
			_, _ = unix.Read(p.bell, count[:])
		case ofClock: // it is quiet when it is set again
		default:
			came = append(came, e)
		}
	}
	return came
}

// Rest blocks for d whatever comes to connections; the bell and the clock end it, and a signal may.
func (p *Poller) Rest(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p.fds[0])), uintptr(len(p.fds)), uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}
