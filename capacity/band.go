package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tailgate/internal/stats"
)

// Band is the traffic that an envelope was tested on, as figures with the range in which the answer is taken to hold. What
// lies outside was not tested.
type Band struct {
	Requests  int     `json:"requests"`
	Hours     float64 `json:"hours"`      // that the trace spans
	BlockSize int     `json:"block_size"` // tokens of a block of Hits; 0 = the trace has none
	// Shares are the classes' shares of the requests.
	Shares  map[string]Range `json:"mix_shares"`
	Lengths []LengthRange    `json:"lengths"`
	Hits    []HitRange       `json:"hit_curve"` // empty = not told
}

// Range is a figure and the range around it.
type Range struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// LengthRange is a quantile of the lengths of a class, in tokens.
type LengthRange struct {
	Class string  `json:"class"` // Mix = all
	Dim   string  `json:"dim"`   // input or output
	P     float64 `json:"quantile"`
	Range
}

// HitRange is the share of blocks that an LRU prefix cache hits.
type HitRange struct {
	CapacityBlocks int64 `json:"capacity_blocks"`
	Range
}

// How far a figure may move. They are the limits from which `profile diff` calls a hit curve moved, and choices for the
// others: a quarter in a length moves the work of a request by up to as much.
const (
	shareMargin  = .05 // of all requests …
	shareRatio   = .25 // … or of the class's share, what is more
	lengthRatio  = .25
	hitMargin    = .05
	leastOfClass = 100 // requests that quantiles of a class need
	leastOfP99   = 1000
	// coldShare bounds by how much the empty cache at the begin of a trace may lower its hit ratio: no more than capacity/uses.
	coldShare = .02
)

// bandQuantiles are those that are compared.
var bandQuantiles = [...]float64{.5, .9, .99}

// HitPoint is a capacity of an LRU cache and what it hits.
type HitPoint struct {
	CapacityBlocks int64
	BlockHit       float64
}

// Hits is the hit curve of a trace.
type Hits struct {
	BlockSize int   // tokens
	Uses      int64 // of blocks, in the trace
	LRU       []HitPoint
}

// Band is the band of the traffic. A capacity that the trace is too short for, so that the first misses of an empty cache
// would tell, is left out.
func (t *Traffic) Band(h Hits) *Band {
	b := &Band{Requests: t.Len(), Hours: t.Length.Hours(), BlockSize: h.BlockSize, Shares: map[string]Range{}, Lengths: []LengthRange{}, Hits: []HitRange{}}
	counts := map[string]int{}
	for _, c := range t.class {
		counts[t.names[c]]++
	}
	for class, n := range counts {
		v := float64(n) / float64(t.Len())
		b.Shares[class] = around(v, max(shareMargin, shareRatio*v), 1)
	}
	for _, class := range append([]string{Mix}, slices.Sorted(maps.Keys(counts))...) {
		for _, dim := range []string{"input", "output"} {
			b.Lengths = append(b.Lengths, lengthRanges(class, dim, t.lengths(class, dim))...)
		}
	}
	for _, p := range h.LRU {
		if float64(p.CapacityBlocks) <= coldShare*float64(h.Uses) {
			b.Hits = append(b.Hits, HitRange{p.CapacityBlocks, around(p.BlockHit, hitMargin, 1)})
		}
	}
	return b
}

func around(v, margin, most float64) Range { return Range{v, max(0, v-margin), min(most, v+margin)} }

// lengths are the known lengths of a class, ascending. Failed requests have none.
func (t *Traffic) lengths(class, dim string) []float64 {
	from := t.input
	if dim == "output" {
		from = t.output
	}
	var out []float64
	for i, n := range from {
		if n >= 0 && !t.failed[i] && t.of(i, class) {
			out = append(out, float64(n))
		}
	}
	slices.Sort(out)
	return out
}

func lengthRanges(class, dim string, sorted []float64) []LengthRange {
	var out []LengthRange
	for _, p := range bandQuantiles {
		if len(sorted) < leastOfClass || p > .98 && len(sorted) < leastOfP99 {
			continue
		}
		v, _ := stats.Quantile(sorted, p)
		out = append(out, LengthRange{class, dim, p, around(v, max(1, lengthRatio*v), math.MaxInt32)})
	}
	return out
}

// name is how a length figure is called, such as input_p50.
func (l LengthRange) name() string { return fmt.Sprintf("%s_p%.0f", l.Dim, 100*l.P) }

func (r Range) holds(v float64) bool { return v >= r.Low && v <= r.High }
