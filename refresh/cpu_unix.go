//go:build unix

package refresh

import "golang.org/x/sys/unix"

// cpuSeconds is what this process has used of the processors.
func cpuSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
