package profile

import (
	"cmp"
	"math/bits"
	"slices"

	"tailgate/schemas"
)

// sessionStat sums up the sessions that start in g.
func (in *input) sessionStat(g group, key schemas.ProfileKey) schemas.ProfileSessionStat {
	row := schemas.ProfileSessionStat{ProfileKey: key}
	multi, told, shorter := 0, 0, 0
	h := history{in: in}
	for rows := range in.eachSession(g) {
		row.Sessions++
		row.Turns += int64(len(rows))
		if len(rows) > 1 {
			multi++
		}
		in.eachLaterTurn(rows, func(parent, child int32) {
			row.LaterTurns++
			if d, ok := in.newTokens(parent, child); ok {
				told++
				if d < 0 {
					shorter++
				}
			}
			h.take(parent, child)
		})
	}
	row.MultiTurn = share(multi, int(row.Sessions))
	row.NegativeGrowth = share(shorter, told)
	h.fill(&row)
	return row
}

func share(n, of int) *float64 {
	if of == 0 {
		return nil
	}
	return val(float64(n) / float64(of))
}

// eachLaterTurn calls visit for every turn that follows another of its session: its parent where the trace tells
// one, else the turn before.
func (in *input) eachLaterTurn(rows []int32, visit func(parent, child int32)) {
	for k, i := range rows {
		switch {
		case in.parent != nil && in.parent[i] != none:
			visit(in.parent[i], i)
		case k > 0:
			visit(rows[k-1], i)
		}
	}
}

// fullBlocks is the number of whole blocks in the prompt of row i.
func (in *input) fullBlocks(i int32) int {
	if in.meta.BlockSize == 0 || !in.is(i, rowPrompt) {
		return 0
	}
	return min(int(in.in[i])/in.meta.BlockSize, int(in.blocks(i)))
}

// turnBuckets names the place of a later turn in its session, from 1 on.
func turnBucket(place int) (name string, order int) {
	switch {
	case place <= 1:
		return "1", 0
	case place == 2:
		return "2", 1
	case place <= 4:
		return "3-4", 2
	case place <= 8:
		return "5-8", 3
	}
	return "9+", 4
}

// sessionGaps is the histogram of the times from turn to turn. Nothing is told below the clock's resolution.
func (in *input) sessionGaps(g group, key schemas.ProfileKey) []schemas.ProfileSessionGap {
	type bin struct {
		order int
		lo    int64
	}
	counts, names := map[bin]int64{}, map[int]string{}
	for rows := range in.eachSession(g) {
		for k := 1; k < len(rows); k++ {
			name, order := turnBucket(k)
			names[order] = name
			gap := in.at[rows[k]] - in.at[rows[k-1]]
			lo, _ := logBin(gap)
			if gap < in.resolution {
				lo = 0
			}
			counts[bin{order, lo}]++
		}
	}
	out := make([]schemas.ProfileSessionGap, 0, len(counts))
	for b, n := range counts {
		_, hi := logBin(b.lo)
		if b.lo == 0 {
			hi = max(hi, in.resolution)
		}
		out = append(out, schemas.ProfileSessionGap{ProfileKey: key, Turn: names[b.order], LoUs: b.lo, HiUs: hi, N: n})
	}
	slices.SortFunc(out, func(a, b schemas.ProfileSessionGap) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.LoUs, b.LoUs))
	})
	return out
}

// logBin is the bin of v >= 0: four to the octave, exact below 8.
func logBin(v int64) (lo, hi int64) { return logBorders(logPlace(v)) }

// logBins is the number of bins that logPlace tells apart.
const logBins = 4 * 62

// logPlace is the place of the bin of v >= 0 among all bins.
func logPlace(v int64) int {
	shift := max(bits.Len64(uint64(v))-3, 0)
	return 4*shift + int(v>>shift)
}

func logBorders(place int) (lo, hi int64) {
	if place < 8 {
		return int64(place), int64(place) + 1
	}
	shift := place/4 - 1
	lo = int64(place%4+4) << shift
	return lo, lo + 1<<shift
}

// newTokens is what a later turn adds to its parent's prompt and answer; negative where history was cut or a turn
// was tried again. ok is false where the answer's length is not known.
func (in *input) newTokens(parent, child int32) (tokens int64, ok bool) {
	if in.out[parent] == none {
		return 0, false
	}
	return int64(in.in[child]) - int64(in.in[parent]) - int64(in.out[parent]), true
}

// growth is the histogram of what later turns add; bins as logBin, mirrored below 0.
func (in *input) growth(g group, key schemas.ProfileKey) []schemas.ProfileGrowth {
	counts := map[[2]int32]int64{}
	for rows := range in.eachSession(g) {
		in.eachLaterTurn(rows, func(parent, child int32) {
			d, ok := in.newTokens(parent, child)
			if !ok {
				return
			}
			if d >= 0 {
				lo, hi := logBin(d)
				counts[[2]int32{int32(lo), int32(min(hi, 1<<31-1))}]++
				return
			}
			lo, hi := logBin(-d)
			counts[[2]int32{int32(max(1-hi, -1<<31)), int32(1 - lo)}]++
		})
	}
	out := make([]schemas.ProfileGrowth, 0, len(counts))
	for b, n := range counts {
		out = append(out, schemas.ProfileGrowth{ProfileKey: key, LoTok: b[0], HiTok: b[1], N: n})
	}
	slices.SortFunc(out, func(a, b schemas.ProfileGrowth) int { return cmp.Compare(a.LoTok, b.LoTok) })
	return out
}
