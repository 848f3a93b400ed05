package profile

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"tailgate/schemas"
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
func (in *input) lengths(g group, key schemas.ProfileKey, scratch *scratch) []schemas.ProfileLength {
	input, output := &scratch.lengths[0], &scratch.lengths[1]
	input.reset()
	output.reset()
	for i := range in.each(g) {
		if !in.answered(i) {
			continue
		}
		input.add(in.in[i])
		if in.out[i] != none {
			output.add(in.out[i])
		}
	}
	return append(lengthHist(input.values(), DimInput, key), lengthHist(output.values(), DimOutput, key)...)
}

func lengthHist(values []valueCount, dim string, key schemas.ProfileKey) []schemas.ProfileLength {
	var out []schemas.ProfileLength
	spikes := map[int32]bool{}
	for _, v := range atoms(values) {
		spikes[v.tokens] = true
		out = append(out, schemas.ProfileLength{ProfileKey: key, Dim: dim, LoTok: v.tokens, HiTok: above(v.tokens), N: v.n, IsAtom: true})
	}
	for _, v := range values {
		if spikes[v.tokens] {
			continue
		}
		lo, hi := lengthBin(v.tokens)
		if last := len(out) - 1; last < 0 || out[last].IsAtom || out[last].LoTok != lo {
			out = append(out, schemas.ProfileLength{ProfileKey: key, Dim: dim, LoTok: lo, HiTok: hi})
		}
		out[len(out)-1].N += v.n
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
