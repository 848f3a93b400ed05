package replay

import (
	"fmt"
	"math"
	"runtime/metrics"
	"time"

	"tailgate/schemas"
)

// descriptorsEvery is how many samples lie between two counts of the descriptors, which cost more than the others.
const descriptorsEvery = 5

// gcPauses is a histogram of the time for which the runtime stops the program to collect garbage.
const gcPauses = "/sched/pauses/total/gc:seconds"

// selfWatch looks at this process once a second: what it finds says whether the client was measured instead of the
// target, and why a schedule was not kept.
type selfWatch struct {
	cpu         *cpuWatch
	pauses      []uint64 // counts at the start
	descriptors int      // the most seen
	samples     int
}

func newSelfWatch() *selfWatch {
	w := &selfWatch{cpu: newCPUWatch(), descriptors: openDescriptors()}
	if h := readPauses(); h != nil {
		w.pauses = append(w.pauses, h.Counts...)
	}
	return w
}

func (w *selfWatch) sample(at time.Duration) {
	w.cpu.sample(at, cpuTime())
	if w.samples++; w.samples%descriptorsEvery == 0 {
		w.descriptors = max(w.descriptors, openDescriptors())
	}
}

// report fills in what was seen, and says why the run is invalid; "" = nothing speaks against it.
func (w *selfWatch) report(f *schemas.RunFacts) string {
	f.CPUMaxShare = w.cpu.worst
	f.GCPauseMaxUs = w.longestPause().Microseconds()
	f.DescriptorsMax = int64(max(w.descriptors, openDescriptors()))
	f.MemoryMaxBytes = maxMemory()
	if !w.cpu.overloaded() {
		return ""
	}
	return fmt.Sprintf("own CPU was at %.0f %% of %d cores over 5 s: the client was measured, not the target",
		100*w.cpu.worst, w.cpu.cores)
}

// longestPause is the upper edge of the highest bucket that grew since the start.
func (w *selfWatch) longestPause() time.Duration {
	h := readPauses()
	if h == nil {
		return 0
	}
	for i := len(h.Counts) - 1; i >= 0; i-- {
		if i < len(w.pauses) && h.Counts[i] == w.pauses[i] {
			continue
		}
		edge := h.Buckets[i+1]
		if math.IsInf(edge, 1) {
			edge = h.Buckets[i]
		}
		return time.Duration(edge * float64(time.Second))
	}
	return 0
}

func readPauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: gcPauses}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil
	}
	return s[0].Value.Float64Histogram()
}
