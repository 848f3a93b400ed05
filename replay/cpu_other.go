//go:build !unix

package replay

import "time"

// cpuTime is not known here: the share stays 0.
func cpuTime() time.Duration { return 0 }
