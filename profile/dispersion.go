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
	for _, s := range scalesUs {
		row := schemas.ProfileDispersion{ProfileKey: key, ScaleUs: s}
		if s >= resolution {
			c := Counts(stamps, s)
			row.Windows = c.Windows
			if c.Windows > 0 {
				row.Mean = val(c.Mean)
			}
			if c.Windows >= MinWindows {
				row.Var, row.IDC = val(c.Var), val(c.IDC())
				row.IDCLo, row.IDCHi = idcInterval(stamps, s)
				if peakScale(s) {
					row.PeakToMean = val(float64(c.Peak) / c.Mean)
				}
			}
		}
		out = append(out, row)
	}
	return out
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
		n := int64(j - i)
		c.Peak = max(c.Peak, n)
		sum += float64(n)
		squares += float64(n) * float64(n)
		i = j
	}
	windows := float64(c.Windows)
	c.Mean = sum / windows
	if c.Windows > 1 {
		c.Var = (squares - windows*c.Mean*c.Mean) / (windows - 1)
	}
	return c
}
