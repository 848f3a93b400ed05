package cli

import (
	"runtime"
	"runtime/debug"
)

// The collector runs when the heap has grown by this many percent of what is alive, and at the default again once there are
// many goroutines: each collection looks at all of their stacks, while the schedule waits. Over net/http a request has three.
const (
	gcPercentSmall = 50
	gcPercent      = 100
	manyGoroutines = 3000
)

// thrift collects garbage sooner while a replay runs: it makes a few KB of it a request, so that this costs next to
// nothing.
type thrift struct {
	before int // percent
	many   bool
}

// start gives back what the command left behind so far.
func (m *thrift) start() {
	m.before = debug.SetGCPercent(gcPercentSmall)
	debug.FreeOSMemory()
}

func (m *thrift) look() {
	if !m.many && runtime.NumGoroutine() > manyGoroutines {
		m.many = true
		debug.SetGCPercent(gcPercent)
	}
}

func (m *thrift) end() { debug.SetGCPercent(m.before) }
