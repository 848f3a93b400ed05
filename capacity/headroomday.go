package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// ProfileTables are the tables of one profile that headroom is made of, as they lie in its folder.
type ProfileTables struct {
	Name    string // for messages
	Meta    schemas.ProfileMeta
	Rate    []schemas.ProfileRate
	Lengths []schemas.ProfileLength
	Hits    []schemas.ProfileHitCurve
}

// Day is what headroom keeps of one UTC day: some kilobytes, whatever the profile holds. Make it with NewDays.
type Day struct {
	Date      time.Time // midnight UTC; of traffic without a wall time 1970-01-01
	BlockSize int
	classes   map[string]*classDay // Mix = all
	spans     []daySpan            // that profiles cover
	lengths   map[lengthKey][]lengthBin
	hits      []HitPoint
	hitsOf    float64 // hours that the hit curve comes from
	whole     bool    // lengths and hits are of this day alone
}

type daySpan struct {
	from, to time.Time
	name     string
}

type lengthKey struct{ class, dim string }

type lengthBin struct{ lo, hi, n float64 }

// classDay is the traffic of one class on a day. Peaks are in requests/s; -1 = the profile has no bins of that width.
type classDay struct {
	requests int64
	bins     map[int64]map[int64]int64 // by width and begin in s of the day; null once settled
	peak     map[int64]dayPeak         // by width
	hours    [24]map[int64]float64     // highest rate of the hour, by width
}

type dayPeak struct {
	rate, p99 float64
	at        time.Time
}

// peakWidths are the bins, in s, whose highest rates are told.
var peakWidths = [...]int64{10, 60}

// NewDays reduces profiles to days, oldest first. Profiles that share a day, such as those of its hours, are put together;
// where their windows overlap the day would count twice, which is fault.Usage. The lengths and the hit curve of a profile of
// several days are told for its last one.
func NewDays(profiles ...ProfileTables) ([]*Day, error) {
	byDate := map[time.Time]*Day{}
	for _, p := range profiles {
		if err := addProfile(byDate, p); err != nil {
			return nil, err
		}
	}
	out := make([]*Day, 0, len(byDate))
	for _, date := range slices.SortedFunc(maps.Keys(byDate), time.Time.Compare) {
		d := byDate[date]
		d.settle()
		out = append(out, d)
	}
	return out, nil
}

// MergeDays puts lists of days in order. A day that two of them have must come from parts that do not overlap.
func MergeDays(lists ...[]*Day) ([]*Day, error) {
	byDate := map[time.Time]*Day{}
	for _, d := range slices.Concat(lists...) {
		have := byDate[d.Date]
		if have == nil {
			byDate[d.Date] = d
			continue
		}
		for _, s := range d.spans {
			if err := have.cover(s); err != nil {
				return nil, err
			}
		}
		have.join(d)
	}
	return slices.SortedFunc(maps.Values(byDate), func(a, b *Day) int { return a.Date.Compare(b.Date) }), nil
}

const (
	day24         = 24 * time.Hour
	longestWindow = 400 * day24
	// windowGrain is what the begin of a profile's window is rounded down to: neighbours may meet inside it.
	windowGrain = 10 * time.Minute
)

func addProfile(byDate map[time.Time]*Day, p ProfileTables) error {
	start, end := p.Meta.WindowStart.UTC(), p.Meta.WindowEnd.UTC()
	if d := end.Sub(start); d < 0 || d > longestWindow {
		return fault.Mark(fmt.Errorf("reading %s: a window from %s to %s", p.Name, start.Format(time.RFC3339), end.Format(time.RFC3339)), fault.Data, "")
	}
	at := func(date time.Time) *Day {
		d := byDate[date]
		if d == nil {
			d = &Day{Date: date, classes: map[string]*classDay{}, lengths: map[lengthKey][]lengthBin{}}
			byDate[date] = d
		}
		return d
	}
	inside := later(start, end.Add(-1)) // a window that ends at midnight is no part of the next day
	for date := start.Truncate(day24); !date.After(inside); date = date.Add(day24) {
		s := daySpan{later(start, date), earlier(end, date.Add(day24)), p.Name}
		if err := at(date).cover(s); err != nil {
			return err
		}
	}
	for _, r := range p.Rate {
		width := r.BinUs / 1e6
		if r.BinUs != width*1e6 || !slices.Contains(peakWidths[:], width) && width != countedWidth {
			continue
		}
		begin := start.Add(time.Duration(r.BinStartUs) * time.Microsecond)
		at(begin.Truncate(day24)).count(classOf(r.ProfileKey), width, begin, r.Requests)
	}
	last := at(inside.Truncate(day24))
	last.BlockSize = int(p.Meta.BlockSize)
	last.whole = !start.Before(last.Date)
	for _, r := range p.Lengths {
		k := lengthKey{classOf(r.ProfileKey), r.Dim}
		last.lengths[k] = append(last.lengths[k], lengthBin{float64(r.LoTok), float64(r.HiTok), float64(r.N)})
	}
	last.addHits(p.Hits)
	return nil
}

// countedWidth are the bins that requests are counted in: every group has them.
const countedWidth = 600

// classOf is the class that a row of a profile counts for: Mix for the total.
func classOf(k schemas.ProfileKey) string {
	switch {
	case k.Tenant == all && k.Class == all:
		return Mix
	case k.Class == Mix: // a class of that name is no mix
		return Mix + " (class)"
	}
	return k.Class
}

const all = "*"

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// cover notes a stretch of time that a profile covers.
func (d *Day) cover(s daySpan) error {
	for _, have := range d.spans {
		if earlier(s.to, have.to).Sub(later(s.from, have.from)) > windowGrain {
			return fault.Mark(fmt.Errorf("%s and %s both cover %s", have.name, s.name, later(s.from, have.from).Format(time.RFC3339)), fault.Usage,
				"give each day once: one profile of it, or those of its hours")
		}
	}
	d.spans = append(d.spans, s)
	return nil
}

// Hours are those of the day that profiles cover.
func (d *Day) Hours() float64 {
	sum := 0.0
	for _, s := range d.spans {
		sum += s.to.Sub(s.from).Hours()
	}
	return sum
}

func (d *Day) class(name string) *classDay {
	c := d.classes[name]
	if c == nil {
		c = &classDay{bins: map[int64]map[int64]int64{}, peak: map[int64]dayPeak{}}
		d.classes[name] = c
	}
	return c
}

// count adds a bin of one tenant.
func (d *Day) count(class string, width int64, begin time.Time, n int64) {
	c := d.class(class)
	if width == countedWidth {
		c.requests += n
		return
	}
	if c.bins[width] == nil {
		c.bins[width] = map[int64]int64{}
	}
	c.bins[width][int64(begin.Sub(d.Date).Seconds())] += n
}

// settle takes the peaks of the bins and drops them.
func (d *Day) settle() {
	hours := d.Hours()
	for _, c := range d.classes {
		for width, bins := range c.bins {
			p := dayPeak{}
			counts := make([]float64, 0, len(bins))
			for begin, n := range bins {
				rate := float64(n) / float64(width)
				counts = append(counts, rate)
				if at := d.Date.Add(time.Duration(begin) * time.Second); rate > p.rate || rate == p.rate && at.Before(p.at) {
					p.rate, p.at = rate, at
				}
				h := &c.hours[begin/3600]
				if *h == nil {
					*h = map[int64]float64{}
				}
				(*h)[width] = max((*h)[width], rate)
			}
			p.p99 = quantileOf(counts, int(hours*3600)/int(width), .99)
			c.peak[width] = p
		}
		c.bins = nil
	}
}

// quantileOf is a quantile of n values of which those that are not given are 0.
func quantileOf(values []float64, n int, p float64) float64 {
	slices.Sort(values)
	n = max(n, len(values))
	if i := stats.Rank(n, p) - 1 - (n - len(values)); i >= 0 && len(values) > 0 {
		return values[i]
	}
	return 0
}

// join adds another part of the same day.
func (d *Day) join(o *Day) {
	for name, c := range o.classes {
		have := d.class(name)
		have.requests += c.requests
		for width, p := range c.peak {
			h := have.peak[width]
			p99 := max(h.p99, p.p99) // of parts: the higher one
			if p.rate > h.rate || h.at.IsZero() {
				h = p
			}
			h.p99 = p99
			have.peak[width] = h
		}
		for i, h := range c.hours {
			for width, rate := range h {
				if have.hours[i] == nil {
					have.hours[i] = map[int64]float64{}
				}
				have.hours[i][width] = max(have.hours[i][width], rate)
			}
		}
	}
	for k, bins := range o.lengths {
		d.lengths[k] = append(d.lengths[k], bins...)
	}
	d.BlockSize = max(d.BlockSize, o.BlockSize)
	d.whole = d.whole && o.whole
	if o.hitsOf > d.hitsOf {
		d.hits, d.hitsOf = o.hits, o.hitsOf
	}
}

// addHits keeps the curve of the total; of several windows that of the longest.
func (d *Day) addHits(rows []schemas.ProfileHitCurve) {
	for _, r := range rows {
		if r.Tenant != all || r.Class != all || r.CapacityBlocks == nil || r.BlockHit == nil {
			continue
		}
		hours := r.WindowEnd.Sub(r.WindowStart).Hours()
		if hours > d.hitsOf {
			d.hits, d.hitsOf = nil, hours
		}
		if hours == d.hitsOf {
			d.hits = append(d.hits, HitPoint{*r.CapacityBlocks, *r.BlockHit})
		}
	}
}

// quantile is that of a class's lengths: exact where it is an exact value of the profile, else inside a bin by its share.
func (d *Day) quantile(class, dim string, p float64) (v, n float64) {
	bins := slices.Clone(d.lengths[lengthKey{class, dim}])
	slices.SortFunc(bins, func(a, b lengthBin) int { return cmp.Compare(a.lo+a.hi, b.lo+b.hi) })
	for _, b := range bins {
		n += b.n
	}
	left := p * n
	for _, b := range bins {
		if left <= b.n {
			return b.lo + (b.hi-1-b.lo)*left/max(b.n, 1), n
		}
		left -= b.n
	}
	return 0, n
}
