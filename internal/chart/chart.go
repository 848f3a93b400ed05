// Package chart draws figures as SVG text, with no script. Colours and strokes come from the style of the page that
// holds them: classes grid, tick, axis, line, limit, fail, bar, cell, dot, whisker, range, band, name, and s0 to s7 by series.
//
// In: values in the units of the axes. Out: one <svg> element, or nothing when there is nothing to draw.
package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Chart is one figure.
type Chart struct {
	Title, What string // what it shows, for readers who cannot see it
	XLabel      string
	YLabel      string
	LogX, LogY  bool        // what is not above zero is not drawn
	SymX        bool        // x is logarithmic to both sides of zero
	Percentiles bool        // y is a share from 0 to 1 on a scale that gives every nine the same room
	XRange      *[2]float64 // x goes from and to these; null = as the data
	Lines       []Line
	Dots        []Line // places without a line, in the colour after the lines'
	Bars        []Bar
	Cells       []Cell
	Whiskers    []Whisker // intervals
	Ranges      []Range   // shaded behind the lines
	Bands       []Band    // spans of x that are shaded behind everything
	Limits      []Limit
	Marks       []float64 // x of failures, ticks along the top
	Shares      bool      // y goes from 0 to 1
}

// Limit is a value that is drawn across the figure, where it is not far beyond the data.
type Limit struct {
	Value float64
	Text  string
	OnX   bool // it is a value of x
}

// Line is one series; NaN breaks it.
type Line struct {
	Name   string
	X, Y   []float64
	Colour int  // from 1; 0 = that of its place among the lines
	Marked bool // its points are marked too
}

// series is the number in the class of the i-th line's colour.
func (l Line) series(i int) int {
	if l.Colour > 0 {
		return (l.Colour - 1) % Colours
	}
	return i % Colours
}

// Add appends a point.
func (l *Line) Add(x, y float64) {
	l.X, l.Y = append(l.X, x), append(l.Y, y)
}

// Size of the drawing and of its margins.
const (
	chartW, chartH                 = 540.0, 250.0
	padLeft, padRight, padTop, low = 58.0, 14.0, 24.0, 40.0
)

// SVG draws the chart; "" when there is nothing to draw.
func (c *Chart) SVG() template.HTML {
	x, y, any := c.bounds()
	if !any {
		return ""
	}
	if c.Shares {
		y.lo, y.hi = 0, 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, chartW, chartH, escape(c.Title+": "+c.What))
	c.bands(&b, x)
	for _, t := range y.ticks() {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fH%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			padLeft, y.at(t), chartW-padRight, padLeft-7, y.at(t)+4, y.text(t))
	}
	for _, t := range x.ticks() {
		at, anchor := x.at(t), "middle"
		if at-4.5*float64(len(x.text(t))) < padLeft-6 { // it would cover the lowest number at the left, on a phone
			at, anchor = padLeft-5, "start"
		}
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fV%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`,
			x.at(t), chartH-low, padTop, at, chartH-low+16, anchor, x.text(t))
	}
	fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, chartW-padRight, chartH-6, escape(c.XLabel))
	fmt.Fprintf(&b, `<text class="axis" x="4" y="10">%s</text>`, escape(c.YLabel))
	c.areas(&b, x, y)
	c.ranges(&b, x, y)
	for i := len(c.Lines) - 1; i >= 0; i-- { // the first line lies on top
		fmt.Fprintf(&b, `<path class="line s%d" d="%s"/>`, c.Lines[i].series(i), path(c.Lines[i], x, y))
	}
	c.points(&b, x, y)
	c.limits(&b, x, y)
	for _, m := range c.Marks {
		fmt.Fprintf(&b, `<path class="fail" d="M%.1f %.1fv7"/>`, x.at(m), padTop-7)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// path is the line as SVG path data; a lone point becomes a short dash, so that it is seen.
func path(l Line, x, y axis) string {
	var b strings.Builder
	open, lone := false, false
	for i := range l.X {
		if math.IsNaN(l.Y[i]) || x.log && l.X[i] <= 0 || y.log && l.Y[i] <= 0 {
			if lone {
				b.WriteString("h2")
			}
			open, lone = false, false
			continue
		}
		command := "L"
		if !open {
			command = "M"
		}
		lone, open = !open, true
		fmt.Fprintf(&b, "%s%.1f %.1f", command, x.at(l.X[i]), y.at(l.Y[i]))
	}
	if lone {
		b.WriteString("h2")
	}
	return b.String()
}
