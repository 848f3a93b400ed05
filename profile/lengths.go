package profile

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"tailgate/schemas"
	"tailgate/trace"
)

// Dimensions of the length tables.
const (
	DimInput  = "input"
	DimOutput = "output"
)

// maxAtoms is the number of exact values that are kept beside the bins, so that caps and other spikes stay
// spikes.
const maxAtoms = 32

// lengths gives the histograms of the requests of g that did not fail: the 32 most frequent values exactly (all
// values, when there are no more), the rest in bins of at most 1/16 relative width. Rows are in order of the
// dimension and the lower border, an atom before the bin around it.
func (in *input) lengths(g group, key schemas.ProfileKey) []schemas.ProfileLength {
	input, output := map[int32]int64{}, map[int32]int64{}
	for r := range in.each(g) {
		if trace.Failed(r) {
			continue
		}
		input[r.InputTokens]++
		if r.OutputTokens != nil {
			output[*r.OutputTokens]++
		}
	}
	return append(lengthHist(input, DimInput, key), lengthHist(output, DimOutput, key)...)
}

func lengthHist(counts map[int32]int64, dim string, key schemas.ProfileKey) []schemas.ProfileLength {
	type value struct {
		tokens int32
		n      int64
	}
	values := make([]value, 0, len(counts))
	for v, n := range counts {
		values = append(values, value{v, n})
	}
	slices.SortFunc(values, func(a, b value) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.tokens, b.tokens))
	})
	var out []schemas.ProfileLength
	bins := map[int32]int64{}
	for i, v := range values {
		if i < maxAtoms && (v.n > 1 || len(values) <= maxAtoms) {
			out = append(out, schemas.ProfileLength{ProfileKey: key, Dim: dim, LoTok: v.tokens, HiTok: above(v.tokens), N: v.n, IsAtom: true})
			continue
		}
		lo, _ := lengthBin(v.tokens)
		bins[lo] += v.n
	}
	for lo, n := range bins {
		_, hi := lengthBin(lo)
		out = append(out, schemas.ProfileLength{ProfileKey: key, Dim: dim, LoTok: lo, HiTok: hi, N: n})
	}
	slices.SortFunc(out, func(a, b schemas.ProfileLength) int {
		return cmp.Or(cmp.Compare(a.LoTok, b.LoTok), cmp.Compare(a.HiTok, b.HiTok))
	})
	return out
}

// lengthBin returns the bin [lo, hi) of v: 16 bins per octave, exact below 32.
func lengthBin(v int32) (lo, hi int32) {
	if v < 32 {
		return v, above(v)
	}
	shift := bits.Len32(uint32(v)) - 5
	lo = v >> shift << shift
	if lo > math.MaxInt32-1<<shift {
		return lo, math.MaxInt32
	}
	return lo, lo + 1<<shift
}

func above(v int32) int32 { return min(v, math.MaxInt32-1) + 1 }
