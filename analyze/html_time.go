package analyze

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/chart"
	"tailgate/internal/stats"
)

// maxSlices bounds the slices that the figures over time are cut in, and perSlice is how many requests they have on average
// at least.
const (
	maxSlices = 150
	perSlice  = 5
)

// timeline is the x axis of every figure over time: the periods one after the other, cut in slices of one round length.
type timeline struct {
	v      *view
	unit   float64 // µs
	label  string
	width  int64     // of a slice, µs
	from   []float64 // where each period begins, in units
	first  []int     // its first slice
	slices int
}

// timeline lays the measured time out, the answers that came after the last arrival included.
func (v *view) timeline() timeline {
	var span int64
	for _, p := range v.periods {
		span += p.close() - p.start
	}
	t := timeline{v: v, unit: 6e7, label: "minutes of the run", width: roundWidth(span / int64(min(maxSlices, max(1, len(v.rows)/perSlice))))}
	if span < 3*6e7 {
		t.unit, t.label = 1e6, "seconds of the run"
	}
	for _, p := range v.periods {
		t.first, t.from = append(t.first, t.slices), append(t.from, float64(t.slices)*float64(t.width)/t.unit)
		t.slices += int((p.close()-p.start)/t.width) + 1
	}
	return t
}

// place is where an instant of the k-th period lies.
func (t timeline) place(k int, at int64) float64 {
	return t.from[k] + float64(at-t.v.periods[k].start)/t.unit
}

// slice is the slice that an instant of the k-th period falls in.
func (t timeline) slice(k int, at int64) int {
	return t.first[k] + int((at-t.v.periods[k].start)/t.width)
}

// middle is where the middle of a slice lies.
func (t timeline) middle(slice int) float64 {
	return (float64(slice) + .5) * float64(t.width) / t.unit
}

// widthText is the length of a slice for people.
func (t timeline) widthText() string {
	switch {
	case t.width%3_600_000_000 == 0:
		return fmt.Sprintf("%d h", t.width/3_600_000_000)
	case t.width%60_000_000 == 0:
		return fmt.Sprintf("%d min", t.width/60_000_000)
	}
	return fmt.Sprintf("%d s", t.width/1_000_000)
}

// roundWidth is the next of 1, 2, 5, 10, 15, 30 s and their minutes and hours.
func roundWidth(us int64) int64 {
	for _, unit := range []int64{1_000_000, 60_000_000, 3_600_000_000} {
		for _, m := range []int64{1, 2, 5, 10, 15, 30} {
			if us <= m*unit {
				return m * unit
			}
		}
	}
	return us
}

// line joins one value a slice; periods are not joined with each other.
func (t timeline) line(name string, values []float64) chart.Line {
	l := chart.Line{Name: name}
	for i, y := range values {
		if i > 0 && slices.Contains(t.first, i) {
			l.Add(t.middle(i), math.NaN())
		}
		l.Add(t.middle(i), y)
	}
	return l
}

// chart is an empty figure over time, with the bursts shaded.
func (t timeline) chart(title, unit, what string) *chart.Chart {
	return &chart.Chart{Title: title, What: what, XLabel: t.label, YLabel: unit,
		XRange: &[2]float64{0, float64(t.slices) * float64(t.width) / t.unit}}
}

// rows are the rows scheduled in each slice.
func (t timeline) rows() [][]int32 {
	out := make([][]int32, t.slices)
	for k, p := range t.v.periods {
		for _, i := range t.v.rows[p.from:p.to] {
			s := t.slice(k, t.v.d.scheduled.at(i))
			out[s] = append(out[s], i)
		}
	}
	return out
}

// Bursts of arrivals that no one declared: windows of this length, with this many times the mean rate and this many
// deviations of a Poisson process above it.
const (
	burstWindowUs = 10_000_000
	burstTimes    = 1.5
	burstSigmas   = 5
)

// bursts are the declared bursts, else the windows in which far more arrived than on average, and which of both.
func (t timeline) bursts() (bands []chart.Band, declared bool) {
	for k, p := range t.v.periods {
		for _, b := range t.v.burstsOf(p) {
			if b.ToUs > p.start && b.FromUs < p.close() {
				bands = append(bands, chart.Band{X0: t.place(k, max(b.FromUs, p.start)), X1: t.place(k, min(b.ToUs, p.close()))})
			}
		}
	}
	if len(bands) > 0 {
		return bands, true
	}
	for k, p := range t.v.periods {
		width := max(burstWindowUs, t.width)
		count := make([]int, (p.last-p.start)/width+1)
		for _, i := range t.v.rows[p.from:p.to] {
			count[(t.v.d.scheduled.at(i)-p.start)/width]++
		}
		expected := float64(p.to-p.from) / float64(len(count))
		high := max(burstTimes*expected, expected+burstSigmas*math.Sqrt(expected))
		for w, n := range count {
			if float64(n) < high {
				continue
			}
			from, to := t.place(k, p.start+int64(w)*width), t.place(k, min(p.start+int64(w+1)*width, p.close()))
			if last := len(bands) - 1; last >= 0 && from-bands[last].X1 < 1e-9 {
				bands[last].X1 = to
			} else {
				bands = append(bands, chart.Band{X0: from, X1: to})
			}
		}
	}
	return bands, false
}

// slicedValues are the median, the p99 and the largest value of a slice in ms; NaN without a value.
type slicedValues struct {
	mid, top, most []float64
	n              int
}

// spreadOf describes metric m of the ok rows of each slice.
func (t timeline) spreadOf(m metric, cut [][]int32) slicedValues {
	var s slicedValues
	for _, rows := range cut {
		q := t.v.d.finiteOf(rows, m)
		at := [3]float64{math.NaN(), math.NaN(), math.NaN()}
		if n := q.count(); n > 0 {
			s.n += n
			copy(at[:], q.smallest(stats.Rank(n, .5), stats.Rank(n, .99), n))
		}
		s.mid, s.top, s.most = append(s.mid, at[0]/1000), append(s.top, at[1]/1000), append(s.most, at[2]/1000)
	}
	return s
}

// finiteOf are the values of metric m of ok rows, in µs.
func (d *Data) finiteOf(rows []int32, m metric) quantiles {
	if m.pooled() {
		return d.gapSample(rows, m).finite()
	}
	out := make(values, 0, len(rows))
	for _, i := range rows {
		if x := d.value(m, i); d.ok(i) && !math.IsNaN(x) {
			out = append(out, x)
		}
	}
	return out
}

// logRatio is the ratio of the largest to the least value from which an axis is logarithmic.
const logRatio = 40

// wide says that values differ too much for a linear axis.
func wide(lists ...[]float64) bool {
	least, most := math.Inf(1), 0.0
	for _, l := range lists {
		for _, v := range l {
			if v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	return most > logRatio*least
}
