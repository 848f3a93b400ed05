package cli

import "golang.org/x/sys/unix"

// hideText keeps prompt text out of core dumps and away from other processes of the same user.
func hideText() {
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
