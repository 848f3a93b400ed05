package capacity

import (
	"context"
	"time"

	"tailgate/internal/stats"
)

// Arrivals drift when their counts scatter more over long windows than over short ones: IDC(600 s)/IDC(60 s) above driftRatio
// (docs/statistics.md). Probes with arrivals of their own would then each see other traffic, and their curve would be too
// sharp by chance.
const (
	driftRatio = 2.0
	driftShort = time.Minute
	driftLong  = 10 * time.Minute
	// leastDriftWindows of driftLong are needed to tell.
	leastDriftWindows = 10
	// A draw for it is of driftDrawn at no more than driftDrawnRate: sessions cluster alike at any rate.
	driftDrawn     = 4 * time.Hour
	driftDrawnRate = 5.0
	// driftProbe is the least length of a window that every probe replays.
	driftProbe = 28 * time.Minute
)

// Draw is what was found of the arrivals of a synthetic cell.
type Draw struct {
	Cell    Cell     `json:"cell"`
	Cluster string   `json:"cluster"`
	Ratio   *float64 `json:"idc_ratio"` // null = too few to tell
	// Rate of the draw that every probe replays a window of, and Rates of that window by its length; 0 = fresh draws.
	Rate  float64            `json:"rate,omitempty"`
	Rates map[string]float64 `json:"window_rates,omitempty"`
}

// window is the part of a trace, or of a draw, that every probe replays.
type window struct {
	drift *float64
	room  time.Duration                      // from its begin to the end of the trace
	rate  func(length time.Duration) float64 // of the cell's class
}

// window says which window the probes of a search replay. For synthetic arrivals it finds out, once for a test, whether they
// drift, and then makes o and base those of a search on one window.
func (t *Test) window(ctx context.Context, o *SearchOptions, base *Load) (window, error) {
	cell := base.Cell
	if cell.Pattern == PatternReal {
		return window{t.traffic.Drift(cell.Class), t.traffic.Length - base.From, func(length time.Duration) float64 {
			return t.traffic.Rate(cell.Class, base.From, base.From+min(length, t.traffic.Length-base.From))
		}}, nil
	}
	d := t.journal.draw(cell, base.Cluster)
	if d == nil {
		made, err := t.drawArrivals(ctx, *o, *base)
		if err != nil {
			return window{}, err
		}
		if err := t.journal.addDraw(*made); err != nil {
			return window{}, err
		}
		d = made
	}
	if d.Rate == 0 {
		return window{drift: d.Ratio}, nil
	}
	*o = sameWindow(*o)
	base.Drawn, base.From = d.Rate, o.filled().Warmup
	return window{d.Ratio, max(o.filled().Probe, o.filled().Confirm), func(length time.Duration) float64 { return d.Rates[length.String()] }}, nil
}

// sameWindow makes options those of a search in which every probe replays one window.
func sameWindow(o SearchOptions) SearchOptions {
	o.SameWindow = true
	if o.Probe > 0 {
		o.Probe = max(o.Probe, driftProbe)
	}
	if o.Confirm > 0 {
		o.Confirm = max(o.Confirm, o.filled().Probe)
	}
	return o
}

// drawArrivals draws the arrivals of a cell, and where they drift the window that is replayed.
func (t *Test) drawArrivals(ctx context.Context, o SearchOptions, base Load) (*Draw, error) {
	l := base
	l.Name, l.Seed, l.Warmup, l.Length = "drift-"+base.Cell.Class+"-"+base.Cell.Pattern, t.plan.Seed, 0, driftDrawn
	l.Rate = min(.75*o.Ladder, driftDrawnRate)
	if base.Others > 0 { // the mix stays
		l.Others = base.Others * l.Rate / (.75 * o.Ladder)
	}
	drawn, err := t.runner.Draw(ctx, l)
	if err != nil {
		return nil, err
	}
	d := &Draw{Cell: base.Cell, Cluster: base.Cluster, Ratio: drawn.Drift(base.Cell.Class)}
	if d.Ratio == nil || *d.Ratio <= driftRatio {
		return d, nil
	}
	o = sameWindow(o).filled()
	l.Rate, l.Others, l.Warmup, l.Length = .75*o.Ladder, base.Others, o.Warmup, max(o.Probe, o.Confirm)
	if drawn, err = t.runner.Draw(ctx, l); err != nil {
		return nil, err
	}
	d.Rate, d.Rates = l.Rate, map[string]float64{}
	for _, length := range []time.Duration{o.Probe, o.Confirm} {
		d.Rates[length.String()] = drawn.Rate(base.Cell.Class, o.Warmup, o.Warmup+length)
	}
	return d, nil
}

// Drift is IDC(600 s)/IDC(60 s) of a class's arrivals (Mix = all), over whole windows; null for fewer than 10 of 600 s.
func (t *Traffic) Drift(class string) *float64 {
	windows := int(t.Length / driftLong)
	if windows < leastDriftWindows {
		return nil
	}
	end := time.Duration(windows) * driftLong
	long, short := t.dispersion(class, driftLong, end), t.dispersion(class, driftShort, end)
	if !(short > 0) {
		return nil
	}
	ratio := long / short
	return &ratio
}

// dispersion is variance over mean of the counts in windows of a width in [0, end).
func (t *Traffic) dispersion(class string, width, end time.Duration) float64 {
	counts := make([]float64, end/width)
	for i, at := range t.at {
		if at < end && t.of(i, class) {
			counts[at/width]++
		}
	}
	mean, sum := stats.Mean(counts), 0.0
	for _, n := range counts {
		sum += (n - mean) * (n - mean)
	}
	return sum / float64(len(counts)-1) / mean
}
