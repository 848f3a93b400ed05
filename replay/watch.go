package replay

import (
	"runtime"
	"time"
)

// Own CPU over maxCPUShare of the cores during cpuWindow means that the client was measured, not the target.
const (
	maxCPUShare = 0.90
	cpuWindow   = 5 // samples, one a second
)

// cpuWatch takes a sample a second and keeps the worst share of own cores over five seconds.
type cpuWatch struct {
	cores   int
	samples []cpuSample // the last cpuWindow + 1
	worst   float64
	full    bool // a whole window was seen
}

type cpuSample struct{ at, used time.Duration }

func newCPUWatch() *cpuWatch {
	return &cpuWatch{cores: runtime.GOMAXPROCS(0), samples: []cpuSample{{used: cpuTime()}}}
}

// sample takes the process's CPU time at the instant at. A run shorter than a window counts as a short one.
func (w *cpuWatch) sample(at, used time.Duration) {
	w.samples = append(w.samples, cpuSample{at, used})
	if len(w.samples) > cpuWindow+1 {
		w.samples = w.samples[1:]
	}
	first := w.samples[0]
	if at <= first.at {
		return
	}
	share := float64(used-first.used) / float64(at-first.at) / float64(w.cores)
	switch {
	case len(w.samples) <= cpuWindow:
		if !w.full {
			w.worst = share
		}
	case !w.full:
		w.full, w.worst = true, share
	default:
		w.worst = max(w.worst, share)
	}
}

// overloaded tells that a whole window was over the limit.
func (w *cpuWatch) overloaded() bool { return w.full && w.worst > maxCPUShare }
