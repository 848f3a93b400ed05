package ingest_test

import (
	"syscall"
	"time"
)

// cpuTime is the processor time of this process, which neighbours on the machine do not stretch.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
