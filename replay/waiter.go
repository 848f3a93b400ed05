package replay

import "time"

// waiter blocks the dispatcher until an instant or a wake, whichever comes first. It may return early. Only wake
// may be called from another goroutine.
type waiter interface {
	// wait blocks until the deadline; the zero time = until woken.
	wait(deadline time.Time)
	wake()
	close()
}

// goWaiter waits on the Go runtime's timers.
type goWaiter struct {
	woken chan struct{}
	timer *time.Timer
}

func newGoWaiter() *goWaiter {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &goWaiter{woken: make(chan struct{}, 1), timer: t}
}

func (w *goWaiter) wait(deadline time.Time) {
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

func (w *goWaiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *goWaiter) close() { w.timer.Stop() }
