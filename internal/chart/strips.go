package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Strips is a figure of rows on one logarithmic axis: a few places a row, with intervals and limits.
type Strips struct {
	Title, What string
	XLabel      string
	Rows        []Strip
}

// Strip is one row; its name stands above it.
type Strip struct {
	Name   string
	Places []Place
	Limits []Limit
}

// Place is a value of a series, with its interval. NaN has no place, and infinity stands at the right edge; an
// interval with one bound that is NaN is open there, with two it is not drawn.
type Place struct {
	Series    int // its colour
	X, Lo, Hi float64
	Text      string // shown when it is pointed at
}

// Sizes of a row, and the room for what is infinite.
const (
	stripHeight = 38.0
	stripName   = 13.0
	stripEdge   = 34.0
	stripApart  = 5.0 // between the intervals of a row
	nameLetters = 72  // a longer name is cut, and whole when it is pointed at
)

// SVG draws the rows; "" when no row has a place.
func (s *Strips) SVG() template.HTML {
	x, any := s.bounds()
	if !any {
		return ""
	}
	height := float64(len(s.Rows))*stripHeight + low + 4
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, chartW, height, escape(s.Title+": "+s.What))
	for _, t := range x.ticks() {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fV4"/><text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
			x.at(t), height-low, x.at(t), height-low+16, x.text(t))
	}
	fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, chartW-padRight, height-6, escape(s.XLabel))
	for i, row := range s.Rows {
		row.draw(&b, x, 4+float64(i)*stripHeight)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func (s *Strips) bounds() (axis, bool) {
	xs, any := newSpan(true), false
	for _, row := range s.Rows {
		for _, p := range row.Places {
			any = any || !math.IsNaN(p.X)
			for _, v := range []float64{p.X, p.Lo, p.Hi} {
				if !math.IsInf(v, 0) {
					xs.add(v)
				}
			}
		}
	}
	for _, row := range s.Rows {
		for _, l := range row.Limits {
			if any && l.near(xs, true) {
				xs.add(l.Value)
			}
		}
	}
	if math.IsInf(xs.lo, 1) { // every place is infinite
		xs.add(1, 10)
	}
	return axis{lo: xs.lo / 1.4, hi: xs.hi * 1.4, from: 8, to: chartW - stripEdge, log: true}, any
}

func (row *Strip) draw(b *strings.Builder, x axis, top float64) {
	name := []rune(row.Name)
	cut := row.Name
	if len(name) > nameLetters {
		cut = string(name[:nameLetters-1]) + "…"
	}
	middle := top + stripName + (stripHeight-stripName)/2
	fmt.Fprintf(b, `<text class="name" x="4" y="%.1f">%s<title>%s</title></text><path class="grid" d="M%.1f %.1fH%.1f"/>`,
		top+stripName-2, escape(cut), escape(row.Name), x.from, middle, chartW-padRight)
	for _, l := range row.Limits {
		if l.Value >= x.lo && l.Value <= x.hi {
			fmt.Fprintf(b, `<path class="limit" d="M%.1f %.1fv16"><title>%s</title></path>`, x.at(l.Value), middle-8, escape(l.Text))
		}
	}
	edge := func(v, open float64) float64 { // zero, and the ends of an interval, may lie beyond the axis
		if math.IsNaN(v) {
			return open
		}
		return min(max(x.at(max(v, x.lo)), x.from), chartW-padRight)
	}
	for i := len(row.Places) - 1; i >= 0; i-- {
		p := row.Places[i]
		if math.IsNaN(p.X) {
			continue
		}
		if !math.IsInf(p.Lo, 1) && !(math.IsNaN(p.Lo) && math.IsNaN(p.Hi)) {
			fmt.Fprintf(b, `<path class="whisker s%d" d="M%.1f %.1fH%.1f"/>`, p.Series, edge(p.Lo, x.from),
				middle+stripApart*(float64(i)-float64(len(row.Places)-1)/2), edge(p.Hi, chartW-padRight))
		}
		if math.IsInf(p.X, 1) {
			at := chartW - padRight - 7*float64(len(row.Places)-i)
			fmt.Fprintf(b, `<path class="dot s%d" d="M%.1f %.1fl6 4l-6 4z"><title>%s</title></path>`, p.Series, at, middle-4, escape(p.Text))
			continue
		}
		fmt.Fprintf(b, `<circle class="dot s%d" cx="%.1f" cy="%.1f" r="4.2"><title>%s</title></circle>`, p.Series, edge(p.X, 0), middle, escape(p.Text))
	}
}
