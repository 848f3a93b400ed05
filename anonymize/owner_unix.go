//go:build unix

package anonymize

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow refuses a link as the last part of a path, and does not wait on a named pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// checkOwner refuses what another user owns: that user could change it.
func checkOwner(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() {
		return keyFault("chown it to the user that runs tailgate: chown $(id -u) "+path, "checking a key: %s belongs to another user", path)
	}
	return nil
}
