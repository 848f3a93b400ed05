//go:build unix

package replay

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the user and system time that this process has used so far.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxMemory is the largest resident size of this process so far, in bytes.
func maxMemory() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss) //nolint:unconvert // 32 bits on some systems
	}
	return int64(u.Maxrss) * 1024 //nolint:unconvert // as above
}

// openDescriptors counts the open file descriptors of this process; 0 where the system does not list them.
func openDescriptors() int {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0
	}
	defer dir.Close()
	n := -1 // the folder itself
	for {
		names, err := dir.Readdirnames(1024)
		if n += len(names); err != nil {
			return n
		}
	}
}
