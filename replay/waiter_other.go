//go:build !linux

package replay

// newWaiter falls back to the runtime's timers where there is no ppoll with nanoseconds.
func newWaiter() (waiter, error) { return newGoWaiter(), nil }
