package waiter

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// thread waits in ppoll on a thread of its own, with a timer slack of 1 ns. The runtime's timers round up
// to whole milliseconds on an idle process, which would be half a millisecond of lateness each time.
type thread struct {
	mu sync.Mutex // guards fd against a wake after close
	fd int        // eventfd; -1 = closed
}

// New returns a waiter by the kernel's timers. It locks the calling goroutine to its thread, for good: the
// goroutine must end without unlocking, so that the thread with its changed slack ends too.
func New() (Waiter, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an event descriptor: %w", err)
	}
	runtime.LockOSThread()
	// Without the slack the timer is coarser by 50 µs, no more; sandboxes may refuse it.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return &thread{fd: fd}, nil
}

func (w *thread) Wait(deadline time.Time) {
	// What was made runnable by this thread must not wait until the runtime notices that the thread sleeps.
	runtime.Gosched()
	var timeout *unix.Timespec
	if !deadline.IsZero() {
		ts := unix.NsecToTimespec(max(0, time.Until(deadline)).Nanoseconds())
		timeout = &ts
	}
	fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
	// An early return by a signal is allowed.
	if n, err := unix.Ppoll(fds, timeout, nil); err == nil && n > 0 {
		var count [8]byte
		_, _ = unix.Read(w.fd, count[:])
	}
}

func (w *thread) Wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return
	}
	one := [8]byte{1}
	for {
		// EAGAIN means that a wake is pending already.
		if _, err := unix.Write(w.fd, one[:]); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (w *thread) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	unix.Close(w.fd)
	w.fd = -1
}
