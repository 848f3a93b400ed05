package replay

import (
	"container/heap"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tailgate/internal/fault"
)

// Shard is one of Count processes that send a plan together. The zero value is the whole plan.
type Shard struct{ Index, Count int }

// ParseShard reads i/n, counted from 0.
func ParseShard(s string) (Shard, error) {
	i, n, ok := strings.Cut(s, "/")
	index, err1 := strconv.Atoi(i)
	count, err2 := strconv.Atoi(n)
	if !ok || errors.Join(err1, err2) != nil || index < 0 || index >= count {
		return Shard{}, fault.Mark(fmt.Errorf("shard %q is not i/n with i from 0 to n-1", s), fault.Usage, "")
	}
	return Shard{index, count}, nil
}

// String is i/n.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// Shard returns the rows of one shard. The shards of a plan are a partition of its rows: each row is in exactly one
// of them, with its own number and stamp, and a session is whole in one. Sessions go, in order of their first row,
// to the shard with the fewest tokens so far, so that every process that makes the same plan agrees without a word.
// Phases, length and the median output lengths are those of the whole plan.
func (p *Plan) Shard(s Shard) *Plan {
	if s.Count <= 1 {
		return p
	}
	out := *p
	out.Rows, out.Packed, out.Length, out.lengths = nil, &Packed{}, p.length(), p.medianLengths()
	for i, of := range p.shards(s.Count) {
		if of == int32(s.Index) {
			out.Packed.Add(p.Row(i))
		}
	}
	return &out
}

// shards gives each row its shard.
func (p *Plan) shards(n int) []int32 {
	whole := p.wholes()
	weight := make([]int64, p.Len()) // of the session, at its first row
	for i := range weight {
		weight[whole[i]] += 1 + int64(p.input(i)) + int64(max(p.output(i), 0))
	}
	loads := make(loadHeap, n)
	for i := range loads {
		loads[i].shard = int32(i)
	}
	out := make([]int32, p.Len())
	for i := range out {
		if whole[i] != int32(i) {
			out[i] = out[whole[i]]
			continue
		}
		out[i] = loads[0].shard
		loads[0].tokens += weight[i]
		heap.Fix(&loads, 0)
	}
	return out
}

// wholes gives each row the first row of what must stay together: its session, and the chain of its parents.
func (p *Plan) wholes() []int32 {
	parent := p.parents()
	first := map[string]int32{}
	root := make([]int32, p.Len()) // a forest: union-find with path halving
	find := func(i int32) int32 {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for i := range root {
		at := int32(i)
		root[i] = at
		join := func(j int32) {
			a, b := find(at), find(j)
			root[max(a, b)] = min(a, b)
		}
		if parent[i] >= 0 {
			join(parent[i])
		}
		if id := p.session(i); id != "" {
			if j, ok := first[id]; ok {
				join(j)
			} else {
				first[id] = at
			}
		}
	}
	for i := range root {
		root[i] = find(int32(i))
	}
	return root
}

// loadHeap is a min-heap of shards by tokens, ties by number.
type loadHeap []struct {
	tokens int64
	shard  int32
}

func (h loadHeap) Len() int { return len(h) }
func (h loadHeap) Less(i, j int) bool {
	return h[i].tokens < h[j].tokens || h[i].tokens == h[j].tokens && h[i].shard < h[j].shard
}
func (h loadHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *loadHeap) Push(any)     { panic("replay: shards are fixed") }
func (h *loadHeap) Pop() any     { panic("replay: shards are fixed") }
