package profile

import (
	"math/bits"
	"slices"
)

const radixBits = 11

// sortInts sorts numbers >= 0: many of them by their digits, lowest first (LSD radix sort), in as many rounds as the
// largest one needs.
func sortInts(x []int64) {
	if len(x) < 1<<12 {
		slices.Sort(x)
		return
	}
	from, to := x, make([]int64, len(x))
	digits := (bits.Len64(uint64(slices.Max(x))) + radixBits - 1) / radixBits
	for d := range digits {
		shift := d * radixBits
		var next [1<<radixBits + 1]int
		for _, v := range from {
			next[v>>shift&(1<<radixBits-1)+1]++
		}
		for i := range next[:1<<radixBits] {
			next[i+1] += next[i]
		}
		for _, v := range from {
			k := v >> shift & (1<<radixBits - 1)
			to[next[k]] = v
			next[k]++
		}
		from, to = to, from
	}
	if digits%2 == 1 {
		copy(x, from)
	}
}
