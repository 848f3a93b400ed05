package profile

import (
	"time"

	"tailgate/schemas"
)

// Bins of the rate curve, in µs. The widest aligns window_start, so that all of them fall on UTC borders; each is a
// multiple of the one before.
var binsUs = []int64{1_000_000, 10_000_000, 60_000_000, 600_000_000}

const maxBin = 600 * time.Second

// rateBin is a bin with what its means are over: requests that did not fail, and those of known output length.
type rateBin struct {
	start                                          int64
	requests, errors, sessions, in, out, ok, known int64
}

// rate gives the rate curve of g at each width that it is told in. A bin without arrivals has no row. Tokens and their means are
// over requests that did not fail; mean_out is over those of known output length.
func (in *input) rate(g group, key schemas.ProfileKey) []schemas.ProfileRate {
	levels := [][]rateBin{in.seconds(g)}
	for _, width := range binsUs[1:] {
		levels = append(levels, wider(levels[len(levels)-1], width))
	}
	n := 0
	for k, bins := range levels {
		if !g.total && binsUs[k] < in.groupBinUs {
			levels[k] = nil
			continue
		}
		n += len(bins)
	}
	out, means := make([]schemas.ProfileRate, 0, n), make([][2]float64, n)
	for k, bins := range levels {
		for _, b := range bins {
			row := schemas.ProfileRate{ProfileKey: key, BinUs: binsUs[k], BinStartUs: b.start, Requests: b.requests, SessionsStarted: b.sessions,
				TokensIn: b.in, TokensOut: b.out, Errors: b.errors}
			mean := &means[len(out)]
			if b.ok > 0 {
				mean[0] = float64(b.in) / float64(b.ok)
				row.MeanIn = &mean[0]
			}
			if b.known > 0 {
				mean[1] = float64(b.out) / float64(b.known)
				row.MeanOut = &mean[1]
			}
			out = append(out, row)
		}
	}
	return out
}

// seconds counts in the narrowest bins.
func (in *input) seconds(g group) []rateBin {
	width := binsUs[0]
	var out []rateBin
	end := int64(0)
	for i := range in.each(g) {
		at := in.at[i] - in.originUs
		if len(out) == 0 || at >= end {
			out = append(out, rateBin{start: at - at%width})
			end = at - at%width + width
		}
		b := &out[len(out)-1]
		b.requests++
		if in.is(i, rowStarts) {
			b.sessions++
		}
		if !in.answered(i) {
			b.errors++
			continue
		}
		b.ok++
		b.in += int64(in.in[i])
		if in.out[i] != none {
			b.known++
			b.out += int64(in.out[i])
		}
	}
	return out
}

// wider sums up bins in bins of a multiple of their width.
func wider(bins []rateBin, width int64) []rateBin {
	var out []rateBin
	for _, b := range bins {
		start := b.start - b.start%width
		if len(out) == 0 || out[len(out)-1].start != start {
			out = append(out, rateBin{start: start})
		}
		sum := &out[len(out)-1]
		sum.requests, sum.errors, sum.sessions = sum.requests+b.requests, sum.errors+b.errors, sum.sessions+b.sessions
		sum.in, sum.out, sum.ok, sum.known = sum.in+b.in, sum.out+b.out, sum.ok+b.ok, sum.known+b.known
	}
	return out
}
