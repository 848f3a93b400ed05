//go:build linux || darwin

package atomicfile

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free is the number of bytes that the file system of dir still takes from this user; -1 when it cannot tell.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("asking for the free space of %s: %w", dir, err)
	}
	if st.Blocks == 0 { // some network and memory file systems do not count
		return -1, nil
	}
	return int64(st.Bavail * uint64(st.Bsize)), nil
}
