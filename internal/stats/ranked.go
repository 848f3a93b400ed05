package stats

import (
	"math"
	"slices"
)

// rankedBits is how many leading bits of a value, in order, are counted: sign, exponent and seven of the mantissa.
const rankedBits = 19

// Ranked returns the values at 1-based ranks of xs in ascending order, as sorting would give them, and leaves xs as it is.
// Each rank must lie in [1, len(xs)]; xs must not hold NaN. It counts values by their leading bits, a pass of its own, and
// then looks only at those that share them with a wanted one.
func Ranked(xs []float64, ranks ...int) []float64 {
	out := make([]float64, len(ranks))
	if len(xs) < 1<<rankedBits/8 {
		sorted := slices.Clone(xs)
		ks := make([]int, len(ranks))
		for i, r := range ranks {
			ks[i] = r - 1
		}
		Select(sorted, ks...)
		for i, k := range ks {
			out[i] = sorted[k]
		}
		return out
	}
	counts := make([]uint32, 1<<rankedBits)
	for _, x := range xs {
		counts[leading(x)]++
	}
	groups := wantedGroups(counts, ranks)
	slot := make([]uint8, 1<<rankedBits) // 1 + the group's number; 0 = not wanted
	for g := range groups {
		slot[groups[g].key] = uint8(g + 1)
		groups[g].values = make([]float64, 0, counts[groups[g].key])
	}
	for _, x := range xs {
		if g := slot[leading(x)]; g != 0 {
			groups[g-1].values = append(groups[g-1].values, x)
		}
	}
	for _, g := range groups {
		Select(g.values, g.ks...)
		for i, k := range g.ks {
			out[g.of[i]] = g.values[k]
		}
	}
	return out
}

// leading are the leading bits of x, so that they ascend with it.
func leading(x float64) uint32 {
	b := math.Float64bits(x)
	if b>>63 == 1 {
		return uint32(^b >> (64 - rankedBits))
	}
	return uint32((b | 1<<63) >> (64 - rankedBits))
}

// group is the values with the same leading bits, and the wanted ones among them.
type group struct {
	key    int
	ks     []int // places in order, from 0
	of     []int // the rank that each answers
	values []float64
}

func wantedGroups(counts []uint32, ranks []int) []group {
	order := make([]int, len(ranks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return ranks[a] - ranks[b] })
	var out []group
	before := 0
	for key, n := range counts {
		if len(order) == 0 {
			break
		}
		end := before + int(n)
		if ranks[order[0]] <= end {
			g := group{key: key}
			for len(order) > 0 && ranks[order[0]] <= end {
				g.ks, g.of = append(g.ks, ranks[order[0]]-1-before), append(g.of, order[0])
				order = order[1:]
			}
			out = append(out, g)
		}
		before = end
	}
	return out
}
