package analyze

import (
	"fmt"
	"time"

	"tailgate/internal/fault"
)

// sliced gives the times in by their edges: slices from the one that holds the first measured row to the one that holds
// the last. Slices begin at multiples of their length since the schedule's zero.
func (v *view) sliced(by By) (By, error) {
	out := By{Parts: make([]Part, len(by.Parts))}
	for i, p := range by.Parts {
		if out.Parts[i] = p; p.Every == 0 || len(v.rows) == 0 {
			continue
		}
		at := v.d.key(timeKey).number
		first, last := at(v.rows[0]), at(v.rows[0])
		for _, p := range v.periods {
			first, last = min(first, at(v.rows[p.from])), max(last, at(v.rows[p.to-1]))
		}
		every := int64(p.Every / time.Second)
		first, last = first/every, last/every
		if n := last - first + 1; n > mostSlices {
			return By{}, fault.Mark(fmt.Errorf("cutting the run by %s: %d slices, at most %d", by, n, mostSlices), fault.Usage, "take longer slices")
		}
		for k := first; k <= last+1; k++ {
			out.Parts[i].Edges = append(out.Parts[i].Edges, k*every)
		}
	}
	return out, nil
}

// measured is the time in seconds that a bucket's throughput is over: the run's window, or for a slice of time the part
// of it in which requests were scheduled and measured; all periods together.
func (v *view) measured(by Tuple) float64 {
	for _, kv := range by {
		if kv.Key != timeKey || kv.Lo == nil || kv.Hi == nil {
			continue
		}
		us := int64(0)
		for _, p := range v.periods {
			zero := v.zeros[v.clocks[v.d.input.at(v.rows[p.from])]]
			us += max(0, min(p.end, zero+*kv.Hi*1e6)-max(p.start, zero+*kv.Lo*1e6))
		}
		return float64(us) / 1e6
	}
	return v.window()
}
