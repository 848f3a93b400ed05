package profile

import (
	"cmp"
	"slices"
)

// lengthCounts counts lengths in tokens: small ones in a table, the others in a map.
type lengthCounts struct {
	small []int64
	large map[int32]int64
	most  int32 // the longest of the small ones
}

const smallLength = 1 << 16

// valueCount is a length and how often it was seen.
type valueCount struct {
	tokens int32
	n      int64
}

func (c *lengthCounts) reset() {
	if c.small == nil {
		c.small = make([]int64, smallLength)
	}
	clear(c.small[:c.most+1])
	c.most, c.large = 0, nil
}

func (c *lengthCounts) add(v int32) {
	if uint32(v) < smallLength {
		c.small[v]++
		c.most = max(c.most, v)
		return
	}
	if c.large == nil {
		c.large = map[int32]int64{}
	}
	c.large[v]++
}

// values lists the lengths in ascending order.
func (c *lengthCounts) values() []valueCount {
	out := valuesOf(c.large)
	small := make([]valueCount, 0, len(out)+64)
	for v, n := range c.small[:c.most+1] {
		if n > 0 {
			small = append(small, valueCount{int32(v), n})
		}
	}
	return append(small, out...)
}

// valuesOf lists the lengths of a map in ascending order.
func valuesOf(counts map[int32]int64) []valueCount {
	out := make([]valueCount, 0, len(counts))
	for v, n := range counts {
		out = append(out, valueCount{v, n})
	}
	slices.SortFunc(out, func(a, b valueCount) int { return cmp.Compare(a.tokens, b.tokens) })
	return out
}

// atoms are the lengths that are spikes, the most frequent first: the 32 most frequent ones that are seen more than
// once; all of them, when there are no more than 32.
func atoms(values []valueCount) []valueCount {
	var out []valueCount
	for _, v := range values {
		if v.n > 1 || len(values) <= maxAtoms {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b valueCount) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.tokens, b.tokens)) })
	return out[:min(len(out), maxAtoms)]
}

// lookup gives a figure for each of a set of lengths.
type lookup struct {
	small []float64
	large map[int32]float64
}

func newLookup(values []valueCount, figure func(k int) float64) *lookup {
	l := &lookup{}
	if n := len(values); n > 0 {
		l.small = make([]float64, min(max(values[n-1].tokens, 0), smallLength-1)+1)
	}
	for k, v := range values {
		if uint32(v.tokens) < smallLength {
			l.small[v.tokens] = figure(k)
			continue
		}
		if l.large == nil {
			l.large = map[int32]float64{}
		}
		l.large[v.tokens] = figure(k)
	}
	return l
}

func (l *lookup) of(v int32) float64 {
	if uint32(v) < smallLength {
		return l.small[v]
	}
	return l.large[v]
}
