package profile

import (
	"slices"
	"time"

	"tailgate/schemas"
	"tailgate/trace"
)

// Bins of the rate curve, in µs. The widest aligns window_start, so that all of them fall on UTC borders.
var binsUs = []int64{1_000_000, 10_000_000, 60_000_000, 600_000_000}

const maxBin = 600 * time.Second

// rate gives the rate curve of g at each width. A bin without arrivals has no row. Tokens and their means are
// over requests that did not fail; mean_out is over those of known output length.
func (in *input) rate(g group, key schemas.ProfileKey) []schemas.ProfileRate {
	var started []int64
	for _, rows := range g.sessions {
		started = append(started, in.t.Rows[rows[0]].ScheduledUs)
	}
	slices.Sort(started)
	var out []schemas.ProfileRate
	for _, width := range binsUs {
		out = append(out, in.curve(g, key, width, started)...)
	}
	return out
}

func (in *input) curve(g group, key schemas.ProfileKey, width int64, started []int64) []schemas.ProfileRate {
	var out []schemas.ProfileRate
	var ok, known int64 // of the open bin
	closeBin := func() {
		if len(out) == 0 {
			return
		}
		b := &out[len(out)-1]
		if ok > 0 {
			b.MeanIn = val(float64(b.TokensIn) / float64(ok))
		}
		if known > 0 {
			b.MeanOut = val(float64(b.TokensOut) / float64(known))
		}
		ok, known = 0, 0
	}
	for r := range in.each(g) {
		at := r.ScheduledUs - in.originUs
		start := at - at%width
		if len(out) == 0 || out[len(out)-1].BinStartUs != start {
			closeBin()
			out = append(out, schemas.ProfileRate{ProfileKey: key, BinUs: width, BinStartUs: start})
		}
		b := &out[len(out)-1]
		b.Requests++
		if trace.Failed(r) {
			b.Errors++
			continue
		}
		ok++
		b.TokensIn += int64(r.InputTokens)
		if r.OutputTokens != nil {
			known++
			b.TokensOut += int64(*r.OutputTokens)
		}
	}
	closeBin()
	for i, k := 0, 0; i < len(out); i++ {
		for end := out[i].BinStartUs + width; k < len(started) && started[k]-in.originUs < end; k++ {
			out[i].SessionsStarted++
		}
	}
	return out
}
