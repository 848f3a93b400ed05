package chart

import "strconv"

// Key names what is drawn in one colour; Class is that of a page's style: k0, k1 … by series.
type Key struct{ Class, Name string }

// SeriesKey is the key of the i-th series.
func SeriesKey(i int, name string) Key { return Key{"k" + strconv.Itoa(i), name} }
