package profile

import (
	"iter"
	"math"
	"slices"
	"sort"

	"tailgate/schemas"
)

// Policies of the hit curve.
const (
	PolicyLRU      = "lru"
	PolicyInfinite = "infinite"
)

// capacities of the hit curve in blocks: the powers of two from 2^10 to 2^22 and round numbers.
func capacities() []int64 {
	out := []int64{1_000, 3_000, 10_000, 30_000, 50_000, 100_000}
	for p := 10; p <= 22; p++ {
		out = append(out, 1<<p)
	}
	slices.Sort(out)
	return out
}

// hitCurve gives one row for the infinite cache and one per capacity; none when no request of g tells its
// blocks.
func (in *input) hitCurve(g group, key schemas.ProfileKey) []schemas.ProfileHitCurve {
	at := capacities()
	h := PrefixHits(in.each(g), in.t.Meta.BlockSize, at)
	if h.Blocks == 0 {
		return nil
	}
	row := func(policy string, c *int64, r HitRatio) schemas.ProfileHitCurve {
		out := schemas.ProfileHitCurve{ProfileKey: key, Policy: policy, CapacityBlocks: c, BlockHit: &r.Block, RequestMeanHit: &r.RequestMean}
		if h.Tokens > 0 {
			out.TokenHit = &r.Token
		}
		return out
	}
	out := []schemas.ProfileHitCurve{row(PolicyInfinite, nil, h.Infinite)}
	for i := range at {
		out = append(out, row(PolicyLRU, &at[i], h.LRU[i]))
	}
	return out
}

// HitRatio is the share of the prompt that a prefix cache would have had.
type HitRatio struct {
	Block       float64 // blocks hit / blocks
	Token       float64 // tokens in the blocks hit / tokens
	RequestMean float64 // mean over requests of their own share of blocks hit
}

// CacheHits is what prefix caches would have hit.
type CacheHits struct {
	Requests int64 // requests with at least one block
	Blocks   int64
	Tokens   int64 // 0 when the block size is not known
	Distinct int64 // different blocks
	Infinite HitRatio
	LRU      []HitRatio // one per capacity asked for
}

// PrefixHits replays the blocks of rows, in order, against LRU caches of all capacities (blocks, ascending) at
// once. A block is a hit only when every block before it in the same request is one: an engine reuses a leading
// prefix and nothing else. A last block that is not full counts as one block with the tokens that it holds.
// Rows without blocks are skipped. Damaged rows take their place in the caches and are not counted.
func PrefixHits(rows iter.Seq[*schemas.TraceRow], blockSize int, capacities []int64) CacheHits {
	hits := CacheHits{}
	infinite := len(capacities)
	sums := make([]HitRatio, infinite+1) // by the smallest capacity that hits
	hits.Distinct = NeededCapacity(rows, func(r *schemas.TraceRow, block int, need int64) {
		if r.Damaged {
			return
		}
		n := len(r.HashIDs)
		if block == 0 {
			hits.Requests++
			hits.Blocks += int64(n)
		}
		tokens := blockTokens(r, block, blockSize)
		hits.Tokens += tokens
		if need == Cold {
			return
		}
		k := sort.Search(infinite, func(k int) bool { return capacities[k] >= need })
		sums[k].Block++
		sums[k].Token += float64(tokens)
		sums[k].RequestMean += 1 / float64(n)
	})
	hits.LRU = make([]HitRatio, infinite)
	var acc HitRatio
	for k := range sums {
		acc.Block += sums[k].Block
		acc.Token += sums[k].Token
		acc.RequestMean += sums[k].RequestMean
		if k < infinite {
			hits.LRU[k] = hits.ratio(acc)
		}
	}
	hits.Infinite = hits.ratio(acc)
	return hits
}

// Cold is the capacity that a block needs which no cache can hold: it, or a block before it in the same
// request, was never used before.
const Cold = math.MaxInt64

// NeededCapacity tells for every block of every row, in order, the smallest LRU cache (in blocks) that would
// hit it as part of the request's leading prefix, and returns the number of different blocks. One pass by stack
// distances (Mattson, Gecsei, Slutz, Traiger 1970): time O(n log d), memory O(d) for n blocks, d of them
// different.
func NeededCapacity(rows iter.Seq[*schemas.TraceRow], visit func(r *schemas.TraceRow, block int, need int64)) (distinct int64) {
	stack := newLRUStack()
	for r := range rows {
		need := int64(0)
		for i, id := range r.HashIDs {
			need = max(need, stack.touch(id))
			visit(r, i, need)
		}
	}
	return int64(stack.live)
}

func (h *CacheHits) ratio(sum HitRatio) HitRatio {
	return HitRatio{
		Block:       sum.Block / float64(max(h.Blocks, 1)),
		Token:       sum.Token / float64(max(h.Tokens, 1)),
		RequestMean: min(sum.RequestMean/float64(max(h.Requests, 1)), 1),
	}
}

// blockTokens is the number of tokens in the i-th block of r, 0 when the block size is not known.
func blockTokens(r *schemas.TraceRow, i, blockSize int) int64 {
	return max(0, min(int64(blockSize), int64(r.InputTokens)-int64(i)*int64(blockSize)))
}

// lruStack tells, at each access, how many different blocks were used since the last one. Every block seen has
// one slot, in order of its last use; a Fenwick tree counts the slots taken. When the slots run out, they are
// renumbered without the holes.
type lruStack struct {
	slotOf map[int64]int32 // block → slot, from 1
	owner  []int64         // slot → block
	taken  []bool
	tree   []int32 // Fenwick tree over taken
	next   int32
	live   int32
}

func newLRUStack() *lruStack {
	s := &lruStack{slotOf: map[int64]int32{}, next: 1}
	s.resize(1 << 12)
	return s
}

func (s *lruStack) resize(slots int) {
	s.owner, s.taken, s.tree = make([]int64, slots+1), make([]bool, slots+1), make([]int32, slots+1)
}

// touch uses a block and returns its stack distance: the smallest LRU capacity that still held it.
func (s *lruStack) touch(id int64) int64 {
	if int(s.next) == len(s.owner) {
		s.compact()
	}
	distance := int64(Cold)
	if slot, seen := s.slotOf[id]; seen {
		distance = int64(s.live-s.count(slot)) + 1
		s.taken[slot] = false
		s.add(slot, -1)
	} else {
		s.live++
	}
	s.slotOf[id] = s.next
	s.owner[s.next], s.taken[s.next] = id, true
	s.add(s.next, 1)
	s.next++
	return distance
}

func (s *lruStack) compact() {
	owner, taken := s.owner, s.taken
	s.resize(max(len(owner)-1, 2*int(s.live)))
	s.next = 1
	for slot := range owner {
		if taken[slot] {
			s.owner[s.next], s.taken[s.next] = owner[slot], true
			s.slotOf[owner[slot]] = s.next
			s.next++
		}
	}
	for i := int32(1); i < int32(len(s.tree)); i++ {
		if s.taken[i] {
			s.tree[i]++
		}
		if up := i + i&-i; up < int32(len(s.tree)) {
			s.tree[up] += s.tree[i]
		}
	}
}

func (s *lruStack) add(slot, by int32) {
	for i := slot; i < int32(len(s.tree)); i += i & -i {
		s.tree[i] += by
	}
}

// count is the number of taken slots up to and with slot.
func (s *lruStack) count(slot int32) int32 {
	var n int32
	for i := slot; i > 0; i -= i & -i {
		n += s.tree[i]
	}
	return n
}
