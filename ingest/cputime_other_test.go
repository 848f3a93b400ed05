//go:build !linux

package ingest_test

import "time"

var processStart = time.Now()

// cpuTime is wall time where processor time is not known.
func cpuTime() time.Duration { return time.Since(processStart) }
