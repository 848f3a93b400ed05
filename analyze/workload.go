package analyze

import (
	"maps"
	"math"
	"slices"
)

// workload compares asked and realised output lengths.
func (d *Data) workload(rows []int32) Workload {
	var asked, got lengthCounts
	c := chunk{}
	w := Workload{OutputTokensRatio: unknown, OutputTokensKS: unknown}
	for len(rows) > 0 {
		some := rows[:min(chunkRows, len(rows))]
		rows = rows[len(some):]
		gather(&d.outputLength, some, c.first[:len(some)])
		gather(&d.outputTokens, some, c.tokens[:len(some)])
		gather(&d.status.column, some, c.events[:len(some)])
		for k := range some {
			a, g := c.first[k], c.tokens[k]
			if c.events[k] != statusOK || a == noCount || g == noCount {
				continue
			}
			w.N++
			asked.add(a)
			got.add(g)
		}
	}
	if asked.sum > 0 {
		w.OutputTokensRatio = Figure(float64(got.sum) / float64(asked.sum))
		w.OutputTokensKS = Figure(distance(&asked, &got, w.N))
	}
	return w
}

// lengthCounts counts lengths by value.
type lengthCounts struct {
	small []int32 // of lengths below maxSmallLength
	large map[int32]int32
	sum   int64
}

const maxSmallLength = 1 << 16

func (c *lengthCounts) add(n int32) {
	c.sum += int64(n)
	if n < 0 || n >= maxSmallLength {
		if c.large == nil {
			c.large = map[int32]int32{}
		}
		c.large[n]++
		return
	}
	if int(n) >= len(c.small) {
		c.small = append(c.small, make([]int32, int(n)+1-len(c.small)+len(c.small)/2)...)
	}
	c.small[n]++
}

// distance is the Kolmogorov–Smirnov distance of two samples of n lengths.
func distance(a, b *lengthCounts, n int) float64 {
	most, i, j := 0.0, 0, 0
	step := func(inA, inB int32) {
		i, j = i+int(inA), j+int(inB)
		most = max(most, math.Abs(float64(i)/float64(n)-float64(j)/float64(n)))
	}
	large := maps.Clone(a.large)
	for x := range b.large {
		if large == nil {
			large = map[int32]int32{}
		}
		large[x] += 0
	}
	order := slices.Sorted(maps.Keys(large))
	for len(order) > 0 && order[0] < 0 {
		step(a.large[order[0]], b.large[order[0]])
		order = order[1:]
	}
	for x := range max(len(a.small), len(b.small)) {
		step(a.of(x), b.of(x))
	}
	for _, x := range order {
		step(a.large[x], b.large[x])
	}
	return most
}

// of counts a small length.
func (c *lengthCounts) of(n int) int32 {
	if n >= len(c.small) {
		return 0
	}
	return c.small[n]
}
