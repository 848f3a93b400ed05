package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Rooms of the limits' texts: the height of a line, and an estimate of the width of a letter.
const (
	textLine   = 16.0
	letterRoom = 8.5 // on a telephone
)

// near says whether a limit is drawn: one far beyond the data would press them flat.
func (l Limit) near(s span, log bool) bool {
	if log {
		return l.Value > s.lo/30 && l.Value < s.hi*30
	}
	return l.Value < 3*s.hi
}

// limits draws the limits, each with its text in a line of its own.
func (c *Chart) limits(b *strings.Builder, x, y axis) {
	list := slices.Clone(c.Limits)
	slices.SortStableFunc(list, func(p, q Limit) int { return cmp.Compare(p.Value, q.Value) })
	last, row := math.Inf(1), 0.0
	for _, l := range list {
		switch text := escape(l.Text); {
		case l.OnX && l.Value >= x.lo && l.Value <= x.hi:
			at, anchor, shift := x.at(l.Value), "start", 4.0
			if room := chartW - padRight - at; room < 4+letterRoom*float64(len([]rune(l.Text))) && room < at-padLeft {
				anchor, shift = "end", -4
			}
			row++
			fmt.Fprintf(b, `<path class="limit" d="M%.1f %.1fV%.1f"/><text class="limit" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`,
				at, chartH-low, padTop, at+shift, chartH-low-6-textLine*(row-1), anchor, text)
		case !l.OnX && l.Value >= y.lo && l.Value <= y.hi:
			at := y.at(l.Value)
			last = max(min(at-4, last-textLine), padTop-2)
			fmt.Fprintf(b, `<path class="limit" d="M%.1f %.1fH%.1f"/><text class="limit" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
				padLeft, at, chartW-padRight, chartW-padRight, last, text)
		}
	}
}
