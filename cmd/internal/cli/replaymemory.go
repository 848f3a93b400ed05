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

// saveMemory gives back what the start-up left behind, and collects garbage sooner until the function that it returns
// is called: a replay makes a few KB of it a request, so that this costs next to nothing.
func saveMemory(o *replay.Options) (restore func()) {
	before := debug.SetGCPercent(gcPercentSmall)
	debug.FreeOSMemory()
	show, many := o.OnProgress, false
	o.OnProgress = func(p replay.Progress) {
		if !many && p.InFlight > manyInFlight {
			many = true
			debug.SetGCPercent(gcPercent)
		}
		show(p)
	}
	return func() { debug.SetGCPercent(before) }
}
