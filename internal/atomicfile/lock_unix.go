//go:build unix

package atomicfile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the lock file at path, which it makes, or fails at once when another process or another call has
// it. A crash gives it free. The file stays.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock %s: %w", path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is locked: %w", path, err)
	}
	return func() { f.Close() }, nil
}
