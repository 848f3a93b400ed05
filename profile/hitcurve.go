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

// Capacities are those of the hit curve in blocks: the powers of two from 2^10 to 2^22 and round numbers.
func Capacities() []int64 {
	out := []int64{1_000, 3_000, 10_000, 30_000, 50_000, 100_000}
	for p := 10; p <= 22; p++ {
		out = append(out, 1<<p)
	}
	slices.Sort(out)
	return out
}

// hitCurve gives one row for the infinite cache and one per capacity; none when no request of g tells its
// blocks.
func (in *input) hitCurve(g group, key schemas.ProfileKey, different int, scratch *scratch) []schemas.ProfileHitCurve {
	at := Capacities()
	c := in.replayHits(g, at, different, scratch)
	h := c.hits()
	if h.Blocks == 0 {
		return nil
	}
	row := func(policy string, capacity *int64, k int, r HitRatio) schemas.ProfileHitCurve {
		out := schemas.ProfileHitCurve{ProfileKey: key, Policy: policy, CapacityBlocks: capacity, BlockHit: &r.Block, RequestMeanHit: &r.RequestMean,
			SampleRate: val(c.rate), BlockHitError: val(c.blockError(k))}
		if h.Tokens > 0 {
			out.TokenHit = &r.Token
		}
		return out
	}
	out := []schemas.ProfileHitCurve{row(PolicyInfinite, nil, len(at), h.Infinite)}
	for k := range at {
		out = append(out, row(PolicyLRU, &at[k], k, h.LRU[k]))
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
		tokens := blockTokens(int64(r.InputTokens), block, blockSize)
		hits.Tokens += tokens
		if need == Cold {
			return
		}
		k := sort.Search(infinite, func(k int) bool { return capacities[k] >= need })
		sums[k].Block++
		sums[k].Token += float64(tokens)
		sums[k].RequestMean += 1 / float64(n)
	})
	hits.take(sums)
	return hits
}

// take fills in the ratios from sums by the smallest capacity that hits.
func (h *CacheHits) take(sums []HitRatio) {
	h.LRU = make([]HitRatio, len(sums)-1)
	var acc HitRatio
	for k := range sums {
		acc.Block += sums[k].Block
		acc.Token += sums[k].Token
		acc.RequestMean += sums[k].RequestMean
		if k < len(h.LRU) {
			h.LRU[k] = h.ratio(acc)
		}
	}
	h.Infinite = h.ratio(acc)
}

// Cold is the capacity that a block needs which no cache can hold: it, or a block before it in the same
// request, was never used before.
const Cold = math.MaxInt64

// NeededCapacity tells for every block of every row, in order, the smallest LRU cache (in blocks) that would
// hit it as part of the request's leading prefix, and returns the number of different blocks. One pass by stack
// distances (Mattson, Gecsei, Slutz, Traiger 1970): time O(n log d), memory O(d) for n blocks, d of them
// different.
func NeededCapacity(rows iter.Seq[*schemas.TraceRow], visit func(r *schemas.TraceRow, block int, need int64)) (distinct int64) {
	stack, ids := newLRUStack(1<<weightBits, 0), newHashSet()
	for r := range rows {
		need := int64(0)
		for i, id := range r.HashIDs {
			need = max(need, stack.touch(ids.number(keyOf(id))))
			visit(r, i, need)
		}
	}
	return int64(ids.n)
}

// keyOf is a key of a hashSet for an id: a bijection that gives 0 for −1 alone, which is no id.
func keyOf(id int64) uint64 { return hashID(id) ^ hashID(-1) }

func (h *CacheHits) ratio(sum HitRatio) HitRatio {
	share := func(n, of float64) float64 { return max(0, min(n/max(of, 1), 1)) }
	return HitRatio{
		Block:       share(sum.Block, float64(h.Blocks)),
		Token:       share(sum.Token, float64(h.Tokens)),
		RequestMean: share(sum.RequestMean, float64(h.Requests)),
	}
}

// blockTokens is the number of tokens in the i-th block of a prompt, 0 when the block size is not known.
func blockTokens(input int64, i, blockSize int) int64 {
	return max(0, min(int64(blockSize), input-int64(i)*int64(blockSize)))
}
