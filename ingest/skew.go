package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// ClockLag is how much later the log took the requests that one clock stamped than they ended by that clock. What
// clocks of one fleet have in common is how long a record takes to the log; what one has beyond that is its skew.
// It is an estimate, and nothing is corrected by it.
type ClockLag struct {
	Clock    string `json:"clock"`   // token, as clock_id of the rows; "" = the log names none
	Records  int64  `json:"records"` // that tell
	MedianUs int64  `json:"median_us"`
	MADUs    int64  `json:"mad_us"`  // median absolute deviation from it
	SkewUs   int64  `json:"skew_us"` // median less that of all clocks; negative = the clock is ahead
}

const (
	skewSample = 512 // latest records of a clock that count
	skewClocks = 256 // clocks that are followed
	// skewWorth is a skew worth a warning, where it is beyond what the clock's lags scatter.
	skewWorth = 100 * time.Millisecond
)

// skewMeter follows the clocks of a run.
type skewMeter struct {
	mu     sync.Mutex
	clocks map[string]*lags
}

// lags are the latest lags of one clock, in µs.
type lags struct {
	n      int64
	latest []int64
}

// add takes a record that ended at ended by its clock and that the log took at logged. Logs that do not stamp give
// zero times, or such from before this software.
func (m *skewMeter) add(clock string, ended, logged time.Time) {
	if logged.Before(earliest) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.clocks[clock]
	if l == nil {
		if len(m.clocks) >= skewClocks {
			return
		}
		if m.clocks == nil {
			m.clocks = map[string]*lags{}
		}
		l = &lags{}
		m.clocks[clock] = l
	}
	lag := logged.Sub(ended).Microseconds()
	if len(l.latest) < skewSample {
		l.latest = append(l.latest, lag)
	} else {
		l.latest[l.n%skewSample] = lag
	}
	l.n++
}

// report returns what is known of the clocks, the most skewed first.
func (m *skewMeter) report() []ClockLag {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]ClockLag, 0, len(m.clocks))
	medians := make([]int64, 0, len(m.clocks))
	for clock, l := range m.clocks {
		center := median(slices.Clone(l.latest))
		off := make([]int64, len(l.latest))
		for i, v := range l.latest {
			off[i] = max(v-center, center-v)
		}
		list = append(list, ClockLag{Clock: clock, Records: l.n, MedianUs: center, MADUs: median(off)})
		medians = append(medians, center)
	}
	if len(list) == 0 {
		return list
	}
	fleet := median(medians)
	for i := range list {
		list[i].SkewUs = list[i].MedianUs - fleet
	}
	slices.SortFunc(list, func(a, b ClockLag) int {
		return cmp.Or(cmp.Compare(max(b.SkewUs, -b.SkewUs), max(a.SkewUs, -a.SkewUs)), strings.Compare(a.Clock, b.Clock))
	})
	return list
}

// median reorders the values, of which there is one at least. Of an even number it is the lower one.
func median(values []int64) int64 {
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// skewed tells whether the skew is worth a word.
func (c *ClockLag) skewed() bool {
	skew := max(c.SkewUs, -c.SkewUs)
	return skew > skewWorth.Microseconds() && skew > 3*c.MADUs
}

// skewNotes says which clocks seem to be off.
func skewNotes(clocks []ClockLag) (notes []string) {
	for i := range clocks {
		c := &clocks[i]
		if !c.skewed() {
			continue
		}
		way := "behind"
		skew := time.Duration(c.SkewUs) * time.Microsecond
		if skew < 0 {
			way, skew = "ahead of", -skew
		}
		notes = append(notes, fmt.Sprintf("clock %s seems %v %s the others (median of %d records, scatter %v); no time was corrected",
			clockName(c.Clock), skew.Round(time.Millisecond), way, min(c.Records, skewSample), (time.Duration(c.MADUs)*time.Microsecond).Round(time.Millisecond)))
	}
	return notes
}

func clockName(token string) string {
	if token == "" {
		return "without a name"
	}
	return token
}
