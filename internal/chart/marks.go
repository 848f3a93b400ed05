package chart

import (
	"fmt"
	"math"
	"strings"
)

// Bar goes from Base to Y between X0 and X1; stacked ones stand on each other.
type Bar struct {
	X0, X1, Y float64
	Base      float64 // 0 = the base of y
	Series    int     // its colour
}

// Cell is one rectangle of a heat map.
type Cell struct {
	X0, X1, Y0, Y1 float64
	Share          float64 // of the darkest, from 0 to 1
	Series         int     // its colour
}

// Whisker is an interval of y at x.
type Whisker struct{ X, Lo, Hi float64 }

// Range shades what lies between Lo and Hi; NaN in Lo breaks it.
type Range struct {
	X, Lo, Hi []float64
	Series    int // its colour
}

// Band is a span of x.
type Band struct{ X0, X1 float64 }

// least is the smallest width that is still seen.
const least = 2.0

// span places an interval; one too narrow to be seen is widened around its middle.
func (a axis) span(lo, hi float64) (from, width float64) {
	p, q := a.at(lo), a.at(hi)
	from, width = min(p, q), max(q-p, p-q)
	if width < least {
		from, width = from-(least-width)/2, least
	}
	return from, width
}

func (c *Chart) bands(b *strings.Builder, x axis) {
	for _, band := range c.Bands {
		lo, hi := max(band.X0, x.lo), min(band.X1, x.hi)
		if lo < hi {
			from, width := x.span(lo, hi)
			fmt.Fprintf(b, `<rect class="band" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, from, padTop, width, chartH-low-padTop)
		}
	}
}

func (c *Chart) areas(b *strings.Builder, x, y axis) {
	for _, bar := range c.Bars {
		if y.log && bar.Y <= 0 {
			continue
		}
		from, width := x.span(bar.X0, bar.X1)
		top, base := y.at(bar.Y), y.from
		if bar.Base > 0 {
			base = y.at(bar.Base)
		}
		fmt.Fprintf(b, `<rect class="bar s%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, bar.Series%Colours, from, top, width, base-top)
	}
	for _, e := range c.Cells {
		from, width := x.span(e.X0, e.X1)
		top, height := y.span(e.Y0, e.Y1)
		fmt.Fprintf(b, `<rect class="cell s%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill-opacity="%.2f"/>`, e.Series%Colours, from, top, width, height, e.Share)
	}
}

func (c *Chart) ranges(b *strings.Builder, x, y axis) {
	for _, r := range c.Ranges {
		fmt.Fprintf(b, `<path class="range s%d" d="`, r.Series%Colours)
		for from := 0; from < len(r.X); {
			to := from
			for to < len(r.X) && !math.IsNaN(r.Lo[to]) {
				to++
			}
			command := "M"
			for i := from; i < to; i++ {
				fmt.Fprintf(b, "%s%.1f %.1f", command, x.at(r.X[i]), y.at(r.Hi[i]))
				command = "L"
			}
			for i := to - 1; i >= from; i-- {
				fmt.Fprintf(b, "L%.1f %.1f", x.at(r.X[i]), y.at(r.Lo[i]))
			}
			if to > from {
				b.WriteString("z")
			}
			from = to + 1
		}
		b.WriteString(`"/>`)
	}
}

func (c *Chart) points(b *strings.Builder, x, y axis) {
	for _, w := range c.Whiskers {
		if !y.log || w.Lo > 0 {
			fmt.Fprintf(b, `<path class="whisker" d="M%.1f %.1fV%.1f"/>`, x.at(w.X), y.at(w.Lo), y.at(w.Hi))
		}
	}
	for i, l := range c.Lines {
		if l.Marked {
			dots(b, l, l.series(i), x, y)
		}
	}
	for i, l := range c.Dots {
		dots(b, l, l.series(len(c.Lines)+i), x, y)
	}
}

func dots(b *strings.Builder, l Line, series int, x, y axis) {
	for k := range l.X {
		if !math.IsNaN(l.Y[k]) && (!x.log || l.X[k] > 0) && (!y.log || l.Y[k] > 0) {
			fmt.Fprintf(b, `<circle class="dot s%d" cx="%.1f" cy="%.1f" r="3.2"/>`, series, x.at(l.X[k]), y.at(l.Y[k]))
		}
	}
}
