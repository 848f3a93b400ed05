// Package chart draws figures as SVG text, with no script. Colours and strokes come from the style of the page that
// holds them: classes grid, tick, axis, line, limit, fail, and s0, s1 … by place in the list of lines.
//
// In: values in the units of the axes. Out: one <svg> element, or nothing when there is nothing to draw.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Chart is one figure.
type Chart struct {
	Title, What string // what it shows, for readers who cannot see it
	XLabel      string
	YLabel      string
	LogX        bool
	Lines       []Line
	Limit       *float64 // drawn across, in units of y
	LimitText   string
	Marks       []float64 // x of failures, ticks along the top
	Shares      bool      // y goes from 0 to 1
}

// Line is one series; NaN breaks it.
type Line struct {
	Name string
	X, Y []float64
}

// Add appends a point.
func (l *Line) Add(x, y float64) {
	l.X, l.Y = append(l.X, x), append(l.Y, y)
}

// Size of the drawing and of its margins.
const (
	chartW, chartH                 = 540.0, 250.0
	padLeft, padRight, padTop, low = 58.0, 14.0, 16.0, 40.0
)

// axis maps values to places.
type axis struct {
	lo, hi   float64
	from, to float64
	log      bool
}

func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		v, lo, hi = math.Log10(v), math.Log10(lo), math.Log10(hi)
	}
	return a.from + (v-lo)/(hi-lo)*(a.to-a.from)
}

// ticks are round values inside the axis: powers of ten with 2 and 5 on a log axis, else 1, 2 or 5 times one.
func (a axis) ticks() []float64 {
	var out []float64
	if a.log {
		decades := math.Log10(a.hi / a.lo)
		for e := math.Floor(math.Log10(a.lo)); e <= math.Ceil(math.Log10(a.hi)); e++ {
			for _, m := range []float64{1, 2, 5} {
				v := m * math.Pow(10, e)
				if v >= a.lo*(1-1e-9) && v <= a.hi*(1+1e-9) && (m == 1 || decades < 2.5) {
					out = append(out, v)
				}
			}
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10((a.hi-a.lo)/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (a.hi-a.lo)/(m*step) <= 6 {
			step *= m
			break
		}
	}
	for k := math.Ceil(a.lo/step - 1e-9); k*step <= a.hi*(1+1e-9); k++ {
		out = append(out, k*step)
	}
	return out
}

// bounds spans the values of all lines; a flat span is widened.
func (c *Chart) bounds() (x, y axis, any bool) {
	x = axis{lo: math.Inf(1), hi: math.Inf(-1), from: padLeft, to: chartW - padRight, log: c.LogX}
	y = axis{lo: 0, hi: math.Inf(-1), from: chartH - low, to: padTop}
	for _, l := range c.Lines {
		for i := range l.X {
			if c.LogX && l.X[i] <= 0 {
				continue
			}
			x.lo, x.hi = min(x.lo, l.X[i]), max(x.hi, l.X[i])
			if math.IsNaN(l.Y[i]) {
				continue
			}
			any = true
			y.lo, y.hi = min(y.lo, l.Y[i]), max(y.hi, l.Y[i])
		}
	}
	if c.Limit != nil && any && *c.Limit < 3*y.hi {
		y.hi = max(y.hi, *c.Limit)
	}
	if c.LogX {
		x.lo, x.hi = x.lo/1.4, x.hi*1.4
	}
	if x.hi <= x.lo {
		x.lo, x.hi = x.lo*.9, x.hi*1.1
		if x.lo == 0 {
			x.hi = 1
		}
	}
	if y.hi <= y.lo {
		y.hi = y.lo + 1
	} else {
		y.hi += .06 * (y.hi - y.lo)
	}
	return x, y, any
}

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
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, chartW, chartH, html.EscapeString(c.Title+": "+c.What))
	for _, t := range y.ticks() {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fH%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			padLeft, y.at(t), chartW-padRight, padLeft-7, y.at(t)+4, tickText(t))
	}
	for _, t := range x.ticks() {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fV%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
			x.at(t), chartH-low, padTop, x.at(t), chartH-low+16, tickText(t))
	}
	fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, chartW-padRight, chartH-6, html.EscapeString(c.XLabel))
	fmt.Fprintf(&b, `<text class="axis" x="4" y="11">%s</text>`, html.EscapeString(c.YLabel))
	if c.Limit != nil && *c.Limit <= y.hi {
		at := y.at(*c.Limit)
		fmt.Fprintf(&b, `<path class="limit" d="M%.1f %.1fH%.1f"/><text class="limit" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			padLeft, at, chartW-padRight, chartW-padRight, at-4, html.EscapeString(c.LimitText))
	}
	for i := len(c.Lines) - 1; i >= 0; i-- { // the first line lies on top
		fmt.Fprintf(&b, `<path class="line s%d" d="%s"/>`, i, path(c.Lines[i], x, y))
	}
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
		if math.IsNaN(l.Y[i]) || x.log && l.X[i] <= 0 {
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

func tickText(v float64) string {
	if math.Abs(v) < 1e-12 {
		return "0"
	}
	if v >= 1e4 {
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
