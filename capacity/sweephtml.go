package capacity

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"

	"tailgate/internal/atomicfile"
	"tailgate/internal/chart"
	"tailgate/internal/page"
)

//go:embed sweep.html
var sweepHTML string

var sweepPage = page.New(sweepHTML, map[string]any{"num": short, "dash": orDash})

// WriteHTML writes the curves as one page that needs neither a network nor a script.
func (s *Sweep) WriteHTML(path string) error {
	b, err := sweepPage.Render(map[string]any{"S": s, "Charts": s.figures()})
	if err != nil {
		return fmt.Errorf("writing the page of the sweep: %w", err)
	}
	return atomicfile.WriteFile(path, b)
}

// figures are p95 and p99 of ttft, tpot and e2e over the rate, a line for each pattern, length, class and cap; and the
// closed loop's rate over its slots.
func (s *Sweep) figures() []envelopeFigure {
	var out []envelopeFigure
	for _, m := range []string{"ttft", "tpot", "e2e"} {
		for _, p := range []string{"p95", "p99"} {
			f := s.figure(m, p)
			if len(f.SVG) > 0 {
				out = append(out, f)
			}
		}
	}
	l := &Ladder{}
	for _, p := range s.Points {
		if p.Load.Concurrency > 0 {
			l.Rungs = append(l.Rungs, Rung{Concurrency: p.Load.Concurrency, RequestsPerS: p.Facts.RequestsPerS})
		}
	}
	if len(l.Rungs) > 1 {
		out = append(out, l.figure())
	}
	return out
}

func (s *Sweep) figure(metric, percentile string) envelopeFigure {
	c := chart.Chart{Title: metric + " " + percentile, What: metric + " " + percentile + " over the request rate", XLabel: "requests/s", YLabel: "ms", LogY: true}
	f := envelopeFigure{Title: c.Title}
	var names []string
	lines := map[string]*chart.Line{}
	points := slices.Clone(s.Points)
	slices.SortStableFunc(points, func(a, b SweepPoint) int { return cmp.Compare(a.Load.Rate, b.Load.Rate) })
	for _, p := range points {
		if p.Load.Rate == 0 {
			continue
		}
		name := p.Load.Cell.Class + " " + p.Load.Cell.Pattern
		if p.Load.InputLengths != "" {
			name += " " + p.Load.InputLengths
		}
		if p.Load.MaxInflight > 0 {
			name += fmt.Sprintf(" cap %d", p.Load.MaxInflight)
		}
		if lines[name] == nil {
			lines[name] = &chart.Line{Name: name}
			names = append(names, name)
		}
		for _, l := range p.Facts.Latency {
			y := l.P95
			if percentile == "p99" {
				y = l.P99
			}
			if l.Metric == metric && known(y) {
				lines[name].Add(p.Load.Rate, float64(y))
			}
		}
	}
	for i, name := range names {
		c.Lines = append(c.Lines, *lines[name])
		f.Keys = append(f.Keys, chart.SeriesKey(i, name))
	}
	f.SVG = c.SVG()
	return f
}
