package ingest

import (
	"sync/atomic"
	"time"
)

// meter counts what all workers of a run do, for the progress.
type meter struct {
	records, bytes, rows, dead, behind, segments, conflicts atomic.Int64
	memory                                                  budget
	clocks                                                  skewMeter
	started                                                 time.Time
}

// report calls f every second until done closes, and once more.
func (m *meter) report(f func(Progress), known bool, done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f(m.progress(known))
		case <-done:
			f(m.progress(known))
			return
		}
	}
}

func (m *meter) progress(known bool) Progress {
	p := Progress{Records: m.records.Load(), Bytes: m.bytes.Load(), Rows: m.rows.Load(), Dead: m.dead.Load(), Behind: -1,
		Segments: m.segments.Load(), Conflicts: m.conflicts.Load(), Buffered: m.memory.used.Load(), Elapsed: time.Since(m.started), Clocks: m.clocks.report()}
	if known {
		p.Behind = max(0, m.behind.Load())
	}
	return p
}
