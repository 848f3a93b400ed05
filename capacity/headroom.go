package capacity

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// HeadroomOptions say how an envelope is held against days of traffic.
type HeadroomOptions struct {
	Envelope *Envelope
	Days     []*Day // oldest first; the last one is today
	// Decides is the width of the bins whose highest rate is compared: 10 s or 60 s; 0 = 60 s.
	Decides time.Duration
	// Replicas of the tested cluster; 0 = what the envelope says.
	Replicas int
}

// Validate reports every fault.
func (o HeadroomOptions) Validate() error {
	var errs []error
	if o.Envelope == nil || len(o.Envelope.Rows) == 0 {
		errs = append(errs, errors.New("headroom needs an envelope with rows"))
	}
	if len(o.Days) == 0 {
		errs = append(errs, errors.New("headroom needs a day with a profile"))
	}
	if d := o.Decides; d != 0 && !slices.Contains(peakWidths[:], int64(d/time.Second)) {
		errs = append(errs, fmt.Errorf("peaks are told in bins of 10s and 60s, not %v", d))
	}
	if o.Replicas < 0 {
		errs = append(errs, fmt.Errorf("replicas must be >= 0, not %d", o.Replicas))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Headroom is what NewHeadroom found; its JSON is that of schemas.Headroom.
type Headroom struct{ schemas.Headroom }

// hourDays is how many of the last days tell what an hour of the day needs.
const hourDays = 7

// NewHeadroom holds the last of the days, and the trend of all of them, against an envelope. It runs nothing.
func NewHeadroom(o HeadroomOptions) (*Headroom, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Decides == 0 {
		o.Decides = time.Minute
	}
	if o.Replicas == 0 {
		o.Replicas = o.Envelope.Replicas
	}
	h := headroomMaker{o: o, e: o.Envelope, today: o.Days[len(o.Days)-1], width: int64(o.Decides / time.Second)}
	out := &h.out
	out.Definition, out.Envelope, out.Growth, out.DecidesS = schemas.Definition, h.e.Name, h.e.Growth, int(h.width)
	out.Days, out.CoveredH = len(o.Days), h.today.Hours()
	out.Moved, out.Again, out.Hours, out.Notes = []schemas.HeadroomMoved{}, []string{}, []schemas.HeadroomHour{}, []string{}
	out.Daily = []schemas.HeadroomDaily{}
	if h.wall() {
		out.Day, out.FirstDay = h.today.Date.Format(time.DateOnly), o.Days[0].Date.Format(time.DateOnly)
	}
	if out.CoveredH < 23 {
		h.note("the profile of the last day covers %.1f h of it: peaks and shares are those of that time", out.CoveredH)
	}
	h.rows()
	h.moved()
	h.hours()
	return &Headroom{h.out}, nil
}

type headroomMaker struct {
	o     HeadroomOptions
	e     *Envelope
	today *Day
	width int64 // of the bins that decide, s
	out   schemas.Headroom
}

func (h *headroomMaker) note(format string, args ...any) {
	h.out.Notes = append(h.out.Notes, fmt.Sprintf(format, args...))
}

// wall tells that the traffic has a time of day: without one, stamps count from 1970.
func (h *headroomMaker) wall() bool { return h.today.Date.Year() > 1970 }

// rows makes a row for each of the envelope's.
func (h *headroomMaker) rows() {
	for i := range h.e.Rows {
		r := h.row(&h.e.Rows[i])
		if r.Decides {
			h.out.OverSafe = h.out.OverSafe || r.State == schemas.HeadroomOverSafe
			h.out.OverNMinus1 = h.out.OverNMinus1 || r.NMinus1 != nil && (r.State == schemas.HeadroomOverNMinus1 || r.State == schemas.HeadroomOverSafe)
		}
		h.out.Rows = append(h.out.Rows, r)
	}
	for class, c := range h.today.classes {
		known := slices.ContainsFunc(h.e.Rows, func(r EnvelopeRow) bool { return r.Class == class })
		if total := h.today.classes[Mix]; !known && total != nil && len(h.e.Rows) > 1 && float64(c.requests) > shareMargin*float64(total.requests) {
			h.note("class %s has %.0f %% of the requests and no row in the envelope: it is judged within the mix", orNone(class), 100*float64(c.requests)/float64(total.requests))
		}
	}
	slices.Sort(h.out.Notes)
}

func orNone(class string) string {
	if class == "" {
		return "(none)"
	}
	return class
}

func (h *headroomMaker) row(e *EnvelopeRow) schemas.HeadroomRow {
	r := schemas.HeadroomRow{Class: e.Class, Pattern: e.Pattern, Load: e.Load, State: schemas.HeadroomOK, Decides: h.decides(e), Peaks: []schemas.HeadroomPeak{}}
	if e.State == SearchConfirmed && e.SafeQPS > 0 {
		r.SafeQPS = &e.SafeQPS
	}
	if n := h.e.NMinus1; n != nil && n.Holds && n.Rate > 0 && e.Class == Mix {
		r.NMinus1 = &n.Rate
	}
	c := h.today.classes[e.Class]
	if c == nil || c.requests == 0 && len(c.peak) == 0 {
		r.State = schemas.HeadroomNoTraffic
		return r
	}
	if hours := h.today.Hours(); hours > 0 {
		mean := float64(c.requests) / hours / 3600
		r.MeanRate = &mean
	}
	for _, width := range peakWidths {
		if p, ok := c.peak[width]; ok {
			r.Peaks = append(r.Peaks, h.peak(p, int(width), r.SafeQPS, r.NMinus1))
		}
	}
	p, told := c.peak[h.width]
	switch {
	case r.SafeQPS == nil:
		r.State = schemas.HeadroomUntested
		return r
	case !told:
		r.State = schemas.HeadroomNoTraffic
		h.note("%s: the profile has no bins of %d s for classes", e.Class, h.width)
		return r
	case p.rate > *r.SafeQPS:
		r.State = schemas.HeadroomOverSafe
	case r.NMinus1 != nil && p.rate > *r.NMinus1:
		r.State = schemas.HeadroomOverNMinus1
	}
	limit := *r.SafeQPS
	if r.NMinus1 != nil {
		limit = *r.NMinus1
	}
	holds := p.rate*max(1, h.e.Growth) <= limit
	r.GrowthHolds = &holds
	if r.Decides {
		r.Trend = h.trend(e.Class, *r.SafeQPS)
	}
	return r
}

// decides tells whether a row is the one that its class is judged by: real traffic's, else the lowest confirmed rate.
func (h *headroomMaker) decides(e *EnvelopeRow) bool {
	best := -1
	for i, r := range h.e.Rows {
		if r.Class != e.Class {
			continue
		}
		if best < 0 || better(r, h.e.Rows[best]) {
			best = i
		}
	}
	return &h.e.Rows[best] == e
}

func better(a, b EnvelopeRow) bool {
	confirmed := func(r EnvelopeRow) bool { return r.State == SearchConfirmed && r.SafeQPS > 0 }
	switch {
	case confirmed(a) != confirmed(b):
		return confirmed(a)
	case (a.Pattern == PatternReal) != (b.Pattern == PatternReal):
		return a.Pattern == PatternReal
	}
	return a.SafeQPS < b.SafeQPS
}

func (h *headroomMaker) peak(p dayPeak, width int, safe, minus1 *float64) schemas.HeadroomPeak {
	out := schemas.HeadroomPeak{WidthS: width, Peak: p.rate, P99: p.p99}
	if h.wall() && !p.at.IsZero() {
		out.At = p.at.Format(time.RFC3339)
	}
	share := func(limit *float64) (used, left, rate *float64) {
		if limit == nil {
			return nil, nil, nil
		}
		u, l, r := p.rate / *limit, 1 - p.rate / *limit, *limit-p.rate
		return &u, &l, &r
	}
	out.Used, out.Headroom, out.HeadroomRate = share(safe)
	out.UsedNMinus1, out.HeadroomNMinus1, out.RateNMinus1 = share(minus1)
	return out
}

// usualCover is the share of the days' usual covered time below which a day is no part of a trend.
const usualCover = .8

// trend is that of a class's daily peaks. Days of which less is covered than of the others are left out: their peaks are
// those of other hours.
func (h *headroomMaker) trend(class string, safe float64) *schemas.HeadroomTrend {
	if !h.wall() {
		return &schemas.HeadroomTrend{State: schemas.TrendNeedsDays, NeedsDays: leastWeeks * week, Text: "the traffic has no wall time: a trend needs days"}
	}
	hours := make([]float64, len(h.o.Days))
	for i, d := range h.o.Days {
		hours[i] = d.Hours()
	}
	slices.Sort(hours)
	usual := hours[len(hours)/2]
	epoch := func(d *Day) int { return int(d.Date.Unix() / int64(day24/time.Second)) }
	var peaks []dailyPeak
	for _, d := range h.o.Days {
		c := d.classes[class]
		if c == nil || d.Hours() < usualCover*usual {
			continue
		}
		if p, ok := c.peak[h.width]; ok {
			peaks = append(peaks, dailyPeak{epoch(d), p.rate})
			h.out.Daily = append(h.out.Daily, schemas.HeadroomDaily{Day: d.Date.Format(time.DateOnly), Class: class, Peak: p.rate})
		}
	}
	return trendOf(peaks, epoch(h.today), safe)
}

// hours tells the replicas that each hour of the UTC day needs.
func (h *headroomMaker) hours() {
	n := h.o.Replicas
	switch {
	case !h.wall():
		h.note("replicas by hour: the traffic has no wall time")
		return
	case n == 0:
		h.note("replicas by hour: the envelope does not say how many replicas were tested")
		return
	}
	days := h.o.Days[max(0, len(h.o.Days)-hourDays):]
	for i := range h.e.Rows {
		e := &h.e.Rows[i]
		if !h.decides(e) || e.State != SearchConfirmed || e.SafeQPS <= 0 || e.Class != Mix && e.Load != LoadAlone {
			continue
		}
		each := h.perReplica(e, n)
		for hour := range 24 {
			most, seen := 0.0, 0
			for _, d := range days {
				if c := d.classes[e.Class]; c != nil && d.covers(hour) {
					most, seen = max(most, c.hours[hour][h.width]), seen+1
				}
			}
			if seen == 0 {
				continue
			}
			need := max(1, int(math.Ceil(most/each-1e-9)))
			h.out.Hours = append(h.out.Hours, schemas.HeadroomHour{Hour: hour, Class: e.Class, Peak: most, Replicas: need, ReplicasNMinus1: need + 1,
				PerReplica: each, Days: seen, Tested: need == n || need == n-1 && h.e.NMinus1 != nil && h.e.NMinus1.Holds})
		}
	}
}

// perReplica is the rate that one replica is taken to hold: its part of Safe QPS, or where the Safe QPS of the cluster with
// one replica less was searched as well, its part of that when it is less.
func (h *headroomMaker) perReplica(e *EnvelopeRow, n int) float64 {
	each := e.SafeQPS / float64(n)
	if m := h.e.NMinus1; m != nil && m.Search != nil && m.Holds && e.Class == Mix && n > 1 {
		each = min(each, m.Rate/float64(n-1))
	}
	return each
}

// covers tells that profiles cover some of an hour of the day.
func (d *Day) covers(hour int) bool {
	from := d.Date.Add(time.Duration(hour) * time.Hour)
	return slices.ContainsFunc(d.spans, func(s daySpan) bool { return s.from.Before(from.Add(time.Hour)) && !s.to.Before(from) })
}
