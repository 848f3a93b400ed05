package cli

import (
	"os"
	"runtime/debug"
)

// besideSegments is what an ingest takes beside its segments: batches, decoders, the garbage of a moment.
const besideSegments = 160 << 20

// limitMemory makes the garbage collector work harder rather than let a run grow beyond what --memory allows its
// segments and what it needs beside them. GOMEMLIMIT, where it is set, says something else.
func limitMemory(segments int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(segments + besideSegments)
	}
}
