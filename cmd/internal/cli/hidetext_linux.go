package cli

import "golang.org/x/sys/unix"

// hideText keeps prompt text out of core dumps and away from other processes of the same user, as far as the
// system lets it.
func hideText() {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
