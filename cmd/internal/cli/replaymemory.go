package cli

import (
	"runtime/debug"

	"tailgate/replay"
)

// The collector runs when the heap has grown by this many percent of what is alive, and at the default again once
// many requests are in flight: each collection looks at three stacks of every one of them, while the schedule waits.
const (
	gcPercentSmall = 50
	gcPercent      = 100
	manyInFlight   = 1000
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

func (m *thrift) look(p replay.Progress) {
	if !m.many && p.InFlight > manyInFlight {
		m.many = true
		debug.SetGCPercent(gcPercent)
	}
}

func (m *thrift) end() { debug.SetGCPercent(m.before) }
