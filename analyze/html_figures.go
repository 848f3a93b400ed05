package analyze

import (
	"fmt"
	"html/template"
	"strconv"

	"tailgate/internal/chart"
)

// drawing is one figure of the page: what is drawn, or why there is nothing.
type drawing struct {
	Title string
	Keys  []chart.Key
	SVG   template.HTML
	Note  string // n, and how to read it
	Why   string // there is nothing to draw
}

// chapter is one part of the page with its figures.
type chapter struct {
	ID, Title, Intro string
	Drawings         []drawing
	Missing          []string // figures that nothing was recorded for, and what would record it
}

// drawn makes a figure of a chart; without data it says why.
func drawn(c *chart.Chart, note, why string, more ...chart.Key) drawing {
	d := drawing{Title: c.Title, SVG: c.SVG(), Keys: c.Keys(), Note: note}
	if d.SVG == "" {
		return drawing{Title: c.Title, Why: why}
	}
	if len(c.Marks) > 0 {
		d.Keys = append(d.Keys, chart.Key{Class: "kf", Name: "slices with failures"})
	}
	d.Keys = append(d.Keys, more...)
	if len(c.Bands) > 0 {
		d.Keys = append(d.Keys, chart.Key{Class: "kb", Name: "bursts"})
	}
	return d
}

// Colours of the percentiles, the same in every figure.
const (
	colourP99 = iota + 1
	colourP50
	colourP95
	colourMax
)

// spreadLines are the lines of such values.
func (t timeline) spreadLines(s slicedValues) []chart.Line {
	p99, p50, most := t.line("p99", s.top), t.line("p50", s.mid), t.line("max", s.most)
	p99.Colour, p50.Colour, most.Colour = colourP99, colourP50, colourMax
	return []chart.Line{p99, p50, most}
}

// chapters are the parts of the page that hold figures, in their order.
func (r *Report) chapters() []chapter {
	var out []chapter
	if len(r.Rates) > 0 {
		out = append(out, r.sweepChapter())
	}
	out = append(out, r.tailsChapter())
	if len(r.view.rows) == 0 {
		return out
	}
	s := r.runFigures(r.view.timeline())
	return append(out, s.overTime(), r.cdfChapter(), s.clientChapter(), r.lengthsChapter(), s.serversChapter())
}

// runFigures draws the figures over time on one axis.
type runFigures struct {
	*Report
	timeline
	cut      [][]int32 // rows by slice
	bands    []chart.Band
	declared bool
}

func (r *Report) runFigures(t timeline) *runFigures {
	f := &runFigures{Report: r, timeline: t, cut: t.rows()}
	f.bands, f.declared = t.bursts()
	return f
}

// empty is a figure over time without its lines.
func (f *runFigures) empty(title, unit, what string) *chart.Chart {
	c := f.chart(title, unit, what)
	c.Bands = f.bands
	return c
}

// burstsText says what the shading is.
func (f *runFigures) burstsText() string {
	switch {
	case len(f.bands) == 0:
		return fmt.Sprintf("No burst was declared, and none is seen in the arrivals (%d s or more with at least %g times the mean rate and %d deviations of a Poisson process above it).",
			max(burstWindowUs, f.width)/1_000_000, burstTimes, burstSigmas)
	case f.declared:
		return "Shaded: declared bursts."
	}
	return fmt.Sprintf("Shaded: bursts of arrivals, %d s or more with at least %g times the mean rate and %d deviations of a Poisson process above it.",
		max(burstWindowUs, f.width)/1_000_000, burstTimes, burstSigmas)
}

// counted writes a number of things with its digits in groups.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// grouped writes a whole number with a narrow space between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
