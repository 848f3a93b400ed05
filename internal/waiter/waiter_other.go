//go:build !linux

package waiter

// New falls back to the runtime's timers where there is no ppoll with nanoseconds.
func New() (Waiter, error) { return NewRuntime(), nil }
