package profile

import "tailgate/schemas"

// Scales of the dispersion table, in µs.
var scalesUs = []int64{100_000, 500_000, 1_000_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000, 300_000_000, 600_000_000}

// MinWindows is the smallest number of whole windows that gives an index of dispersion. An hour has 12 windows
// of 300 s and 6 of 600 s: it tells the first and not the second.
const MinWindows = 10

// peakScale says at which scales the peak-to-mean ratio is kept.
func peakScale(us int64) bool { return us == 1_000_000 || us == 10_000_000 || us == 60_000_000 }

// dispersion gives one row per scale, null below the resolution and where there are too few windows.
func dispersion(stamps []int64, resolution int64, key schemas.ProfileKey) []schemas.ProfileDispersion {
	var out []schemas.ProfileDispersion
	runs := countRuns(stamps, scalesUs[0])
	span := stamps[len(stamps)-1]
	for _, s := range scalesUs {
		row := schemas.ProfileDispersion{ProfileKey: key, ScaleUs: s}
		if s >= resolution {
			c := runs.counts(span, s)
			row.Windows = c.Windows
			if c.Windows > 0 {
				row.Mean = val(c.Mean)
			}
			if c.Windows >= MinWindows {
				row.Var, row.IDC = val(c.Var), val(c.IDC())
				row.IDCLo, row.IDCHi = runs.interval(span, s, c.IDC())
				if peakScale(s) {
					row.PeakToMean = val(float64(c.Peak) / c.Mean)
				}
			}
		}
		out = append(out, row)
	}
	return out
}

// runs are the windows of one width that have arrivals, and how many each has.
type runs struct {
	width  int64
	window []int64
	n      []int64
}

func countRuns(stamps []int64, width int64) runs {
	r := runs{width: width}
	end := int64(0)
	for _, at := range stamps {
		if len(r.n) == 0 || at >= end {
			r.window, r.n = append(r.window, at/width), append(r.n, 0)
			end = (at/width + 1) * width
		}
		r.n[len(r.n)-1]++
	}
	return r
}

// each visits the windows of a multiple of the width that have arrivals, up to but not with window end.
func (r runs) each(width, end int64, visit func(window, n int64)) {
	factor := width / r.width
	for i := 0; i < len(r.n); {
		w := r.window[i] / factor
		if w >= end {
			return
		}
		n, next := int64(0), (w+1)*factor
		for ; i < len(r.n) && r.window[i] < next; i++ {
			n += r.n[i]
		}
		visit(w, n)
	}
}

// counts is Counts for a multiple of the width.
func (r runs) counts(span, width int64) WindowCounts {
	c := WindowCounts{Windows: span / width}
	var sum, squares float64
	r.each(width, c.Windows, func(_, n int64) { c.take(&sum, &squares, n) })
	c.finish(sum, squares)
	return c
}

// WindowCounts sums up the numbers of arrivals in whole windows of one width.
type WindowCounts struct {
	Windows int64
	Mean    float64
	Var     float64 // sample variance, 0 for fewer than two windows
	Peak    int64
}

// IDC is the index of dispersion for counts, Var/Mean: 1 for a Poisson process at every width. NaN without
// windows.
func (c WindowCounts) IDC() float64 { return c.Var / c.Mean }

// Counts counts sorted arrivals (µs) in whole windows of widthUs from the first arrival on; what comes after
// the last whole window is left out. It takes no memory, whatever the width.
func Counts(sorted []int64, widthUs int64) WindowCounts {
	var c WindowCounts
	if len(sorted) == 0 {
		return c
	}
	first := sorted[0]
	c.Windows = (sorted[len(sorted)-1] - first) / widthUs
	if c.Windows == 0 {
		return c
	}
	var sum, squares float64
	for i := 0; i < len(sorted); {
		w := (sorted[i] - first) / widthUs
		if w >= c.Windows {
			break
		}
		j := i
		for j < len(sorted) && (sorted[j]-first)/widthUs == w {
			j++
		}
		c.take(&sum, &squares, int64(j-i))
		i = j
	}
	c.finish(sum, squares)
	return c
}

func (c *WindowCounts) take(sum, squares *float64, n int64) {
	c.Peak = max(c.Peak, n)
	*sum += float64(n)
	*squares += float64(n) * float64(n)
}

func (c *WindowCounts) finish(sum, squares float64) {
	windows := float64(c.Windows)
	if windows > 0 {
		c.Mean = sum / windows
	}
	if windows > 1 {
		c.Var = (squares - windows*c.Mean*c.Mean) / (windows - 1)
	}
}
