package analyze

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// view is the measured part of a Data: rows in order of the schedule, without warm-up.
type view struct {
	d        *Data
	rows     []int32
	warm     int // rows left out
	periods  []period
	clocks   []int   // by input, see Data.clocks
	zeros    []int64 // by clock
	override bool    // the cut that was asked for alone decides, not what the runs marked
}

// period is the part of a view that one clock covers: one run, in all its shards.
type period struct {
	from, to   int   // rows[from:to]
	start, end int64 // first scheduled row, and the end of the schedule, µs
	until      int64 // where what counts in tails ends: the end, or the start of the cool-down
	last       int64 // last scheduled row
	done       int64 // last completion, noTime without one
}

// newView sorts the rows by clock and schedule and leaves the warm-up out: what the runs marked, and cut from
// the zero of each input. With override, only the cut decides.
func newView(d *Data, cut time.Duration, override bool) *view {
	clocks, zeros := d.clocks()
	v := &view{d: d, clocks: clocks, zeros: zeros, override: override, rows: make([]int32, 0, d.n)}
	sorted, lastClock, lastUs := true, 0, int64(math.MinInt64)
	for i := range int32(d.n) {
		c, at := clocks[d.input.at(i)], d.scheduled.at(i)
		early := cut > 0 && at < zeros[c]+cut.Microseconds()
		if early || !override && d.warm.at(i) {
			v.warm++
			continue
		}
		v.rows = append(v.rows, i)
		sorted = sorted && (c > lastClock || c == lastClock && at >= lastUs)
		lastClock, lastUs = c, at
	}
	if !sorted {
		slices.SortFunc(v.rows, func(a, b int32) int {
			return cmp.Or(cmp.Compare(clocks[d.input.at(a)], clocks[d.input.at(b)]),
				cmp.Compare(d.scheduled.at(a), d.scheduled.at(b)), cmp.Compare(a, b))
		})
	}
	for from := 0; from < len(v.rows); {
		c := clocks[d.input.at(v.rows[from])]
		to := from
		for to < len(v.rows) && clocks[d.input.at(v.rows[to])] == c {
			to++
		}
		v.periods = append(v.periods, v.period(from, to))
		from = to
	}
	return v
}

// clocks numbers the clock of every input in order of first sight, and tells the zero of each: that of the
// schedule where a manifest tells it, else the first row.
func (d *Data) clocks() (byInput []int, zeros []int64) {
	index := map[string]int{}
	for _, in := range d.Inputs {
		c, ok := index[in.clock]
		if !ok {
			c = len(zeros)
			index[in.clock] = c
			zeros = append(zeros, noTime)
		}
		if in.Manifest != nil {
			zeros[c] = 0
		}
		byInput = append(byInput, c)
	}
	told := slices.Clone(zeros)
	for i := range int32(d.n) {
		c := byInput[d.input.at(i)]
		if at := d.scheduled.at(i); told[c] == noTime && (zeros[c] == noTime || at < zeros[c]) {
			zeros[c] = at
		}
	}
	return byInput, zeros
}

// period measures rows[from:to]. The schedule's end is what the manifest says; without one the mean gap is added
// behind the last arrival.
func (v *view) period(from, to int) period {
	d := v.d
	first, last := d.scheduled.at(v.rows[from]), d.scheduled.at(v.rows[to-1])
	p := period{from: from, to: to, start: first, end: last, last: last, done: noTime}
	if n := int64(to - from); n > 1 {
		p.end += (last - first) / (n - 1)
	}
	drain := int64(math.MaxInt64)
	for _, i := range v.rows[from:to] {
		p.done = max(p.done, d.done(i))
		if d.drain.at(i) {
			drain = min(drain, d.scheduled.at(i))
		}
	}
	for _, in := range d.Inputs {
		if in.Manifest != nil && in.Manifest.Run != nil && in.clock == d.Inputs[d.input.at(v.rows[from])].clock {
			p.end = max(p.end, in.Manifest.Run.DurationUs)
			if cool := in.Manifest.Run.CooldownUs; cool > 0 {
				drain = min(drain, in.Manifest.Run.DurationUs-cool)
			}
		}
	}
	p.until = max(first, min(p.end, drain))
	return p
}

// minutes is the length of the schedule that counts in tails, all periods together.
func (v *view) minutes() float64 {
	us := int64(0)
	for _, p := range v.periods {
		us += p.until - p.start
	}
	return float64(us) / 6e7
}

// window is the time in seconds from the first scheduled request to the last completion, all periods together;
// 0 when nothing completed.
func (v *view) window() float64 {
	us := int64(0)
	for _, p := range v.periods {
		if p.done != noTime {
			us += max(0, p.done-p.start)
		}
	}
	return float64(us) / 1e6
}
