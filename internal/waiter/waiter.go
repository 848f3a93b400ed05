// Package waiter blocks one goroutine until an instant or a wake, whichever comes first: for loops whose lateness
// is seen by others (a dispatcher of requests, a simulated engine). It is no scheduler; it knows no order of
// instants.
//
// The runtime's timers round up to whole milliseconds on an idle process; [New] waits by the kernel's where it can.
package waiter

import "time"

// Waiter is a wait that can be ended from outside. Wait may return early. Only Wake may be called from another
// goroutine, and at any time, also after Close.
type Waiter interface {
	// Wait blocks until the deadline; the zero time = until woken.
	Wait(deadline time.Time)
	// Wake ends the wait under way, or the next one.
	Wake()
	// Close frees what the waiter holds.
	Close()
}

// Runtime waits on the Go runtime's timers, which testing/synctest knows. Make it with NewRuntime.
type Runtime struct {
	woken chan struct{}
	timer *time.Timer
}

var _ Waiter = (*Runtime)(nil)

// NewRuntime returns a waiter on the runtime's timers.
func NewRuntime() *Runtime {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Runtime{woken: make(chan struct{}, 1), timer: t}
}

// Wait implements Waiter.
func (w *Runtime) Wait(deadline time.Time) {
	if deadline.IsZero() {
		<-w.woken
		return
	}
	w.timer.Reset(time.Until(deadline))
	select {
	case <-w.woken:
	case <-w.timer.C:
	}
	w.timer.Stop()
}

// Wake implements Waiter.
func (w *Runtime) Wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Close implements Waiter.
func (w *Runtime) Close() { w.timer.Stop() }
