package bpe

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of this thread: passes are timed by it, so that a busy machine does not
// count. The caller has locked its goroutine to the thread.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
