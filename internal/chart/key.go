package chart

import (
	"slices"
	"strconv"
)

// Colours is how many a page's style has for series: s0 to s7 where they are drawn, k0 to k7 in keys. The series beyond begin
// again.
const Colours = 8

// Key names what is drawn in one colour; Class is that of a page's style.
type Key struct{ Class, Name string }

// SeriesKey is the key of the i-th series, from 0.
func SeriesKey(i int, name string) Key { return Key{"k" + strconv.Itoa(i%Colours), name} }

// Keys are those of the lines and dots that have a name, in their order.
func (c *Chart) Keys() []Key {
	var out []Key
	for i, l := range slices.Concat(c.Lines, c.Dots) {
		if l.Name != "" {
			out = append(out, SeriesKey(l.series(i), l.Name))
		}
	}
	return out
}
