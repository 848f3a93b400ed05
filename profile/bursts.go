package profile

import (
	"cmp"
	"math"
	"slices"

	"tailgate/schemas"
	"tailgate/trace"
)

// Burst windows: the widths that are tried, the grid of their starts, and how many a day are kept.
var burstWidthsUs = []int64{10_000_000, 60_000_000, 300_000_000}

const (
	burstGridUs  = 10_000_000
	burstsADay   = 20
	longInput    = 8192
	dayUs        = 86_400_000_000
	minBurstRows = 10
)

// bursts lists the windows of the trace with the most requests above what the mean rate gives, the worst first: by the
// scan statistic (n−λw)/√(λw) over widths of 10, 60 and 300 s, without overlap, at most 20 a day. None when the
// trace is shorter than two windows.
func (in *input) bursts(key schemas.ProfileKey) []schemas.ProfileBurst {
	n := in.len()
	span := in.lengthUs() - in.firstUs()
	if n < minBurstRows || span < 2*burstWidthsUs[0] {
		return nil
	}
	first := in.firstUs() - in.firstUs()%burstGridUs
	bins := make([]int64, (in.at[n-1]-first)/burstGridUs+2)
	for _, at := range in.at {
		bins[(at-first)/burstGridUs+1]++
	}
	for i := 1; i < len(bins); i++ {
		bins[i] += bins[i-1] // requests before the bin
	}
	rate := float64(n) / float64(span)
	type window struct {
		start, length int64
		n             int64
		score         float64
	}
	var all []window
	for _, width := range burstWidthsUs {
		k := int(width / burstGridUs)
		if 2*width > span {
			break
		}
		for i := 0; i+k < len(bins); i++ {
			n, expected := bins[i+k]-bins[i], rate*float64(width)
			if score := (float64(n) - expected) / math.Sqrt(expected); score > 0 {
				all = append(all, window{first + int64(i)*burstGridUs, width, n, score})
			}
		}
	}
	slices.SortFunc(all, func(a, b window) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.start, b.start), cmp.Compare(a.length, b.length))
	})
	var out []schemas.ProfileBurst
	limit := burstsADay * int((span+dayUs-1)/dayUs)
	for _, w := range all {
		if len(out) == limit {
			break
		}
		if slices.ContainsFunc(out, func(b schemas.ProfileBurst) bool {
			return w.start < b.StartUs+b.LengthUs && b.StartUs < w.start+w.length
		}) {
			continue
		}
		b := in.burst(w.start, w.length)
		b.ProfileKey, b.Rank, b.Expected = key, int32(len(out)+1), val(rate*float64(w.length))
		out = append(out, b)
	}
	return out
}

// burst sums up the window.
func (in *input) burst(start, length int64) schemas.ProfileBurst {
	b := schemas.ProfileBurst{StartUs: start, LengthUs: length}
	tenants, classes := map[string]int64{}, map[string]int64{}
	long := 0
	from, _ := slices.BinarySearch(in.at, start)
	for i := from; i < in.len() && in.at[i] < start+length; i++ {
		b.Requests++
		b.TokensIn += int64(in.in[i])
		if in.out[i] != none {
			b.TokensOut += int64(in.out[i])
		}
		if in.in[i] >= longInput {
			long++
		}
		p := in.labels.groups[in.group[i]]
		tenants[in.labels.tenants.words[p.tenant]]++
		classes[in.labels.classes.words[p.class]]++
	}
	b.TopTenant, b.TopClass = most(tenants), most(classes)
	b.LongShare = val(float64(long) / float64(max(b.Requests, 1)))
	return b
}

// most is the label with the largest count; nil when no row has one.
func most(counts map[string]int64) *string {
	var best *string
	n := int64(0)
	for s, c := range counts {
		if s != "" && (c > n || c == n && s < *best) {
			best, n = &s, c
		}
	}
	return best
}

// Bursts lists the burst windows of t, see ProfileBurst; their key fields are empty.
func Bursts(t *trace.Trace) []schemas.ProfileBurst {
	c := newColumns(0)
	for i := range t.Rows {
		r := t.Rows[i]
		r.HashIDs = nil
		if c.add(&r) != nil {
			return nil // not in order: no trace
		}
	}
	return newInput(c, t.Meta).bursts(schemas.ProfileKey{})
}
