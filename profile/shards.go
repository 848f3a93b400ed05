package profile

import (
	"math"
	"sort"
)

// A hit curve of more different blocks than exactBlocks comes from a sample of about sampleBlocks of them: SHARDS
// (Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015). A block is in the
// sample when the hash of its id is below rate × 2^64, so all its uses are, and a stack distance among sampled blocks
// is the real one times the rate. What the sample has too many or too few of uses, against what is known of their
// number, is put at the shortest distance (the paper's SHARDS_adj). With chained ids all blocks before a hit are
// hits, so the blocks between that are not sampled change nothing; ids that are not chained give an upper bound.
//
// Blocks that no other request has are counted exactly at their places, since their numbers are known. A trace of which
// the tree holds a sample gives no curve of more blocks than those.
type hitLimits struct{ exactBlocks, sampleBlocks int }

func (l hitLimits) orDefault() hitLimits {
	if l == (hitLimits{}) {
		return hitLimits{exactBlocks: 1 << 20, sampleBlocks: 1 << 18}
	}
	return l
}

// rate is the share of the blocks that is sampled; 1 = all.
func (l hitLimits) rate(different int) float64 {
	if different <= l.exactBlocks {
		return 1
	}
	return float64(l.sampleBlocks) / float64(different)
}

// hitCounts sums up the hits of one replay.
type hitCounts struct {
	rate       float64
	borders    []int64 // capacities in order; with a sample, also those between which each one lies for certain
	places     []int   // of the capacities in borders
	total      CacheHits
	sums       []HitRatio // by the first border that hits
	byPart     [][parts]float64
	seen       HitRatio // all uses in the sample
	seenByPart [parts]float64
	wanted     HitRatio // what seen would be without sampling
}

func newHitCounts(capacities []int64, rate float64) *hitCounts {
	c := &hitCounts{rate: rate, borders: capacities}
	for k, size := range capacities {
		if c.places = append(c.places, k); rate < 1 {
			off := min(1.96/math.Sqrt(float64(size)*rate), 1) * float64(size)
			c.borders = append(append(c.borders[:len(c.borders):len(c.borders)], size-int64(off)), size+int64(off))
		}
	}
	if rate < 1 {
		sort.Slice(c.borders, func(i, j int) bool { return c.borders[i] < c.borders[j] })
		for k, size := range capacities {
			c.places[k] = sort.Search(len(c.borders), func(i int) bool { return c.borders[i] >= size })
		}
	}
	c.sums = make([]HitRatio, len(c.borders)+1)
	c.byPart = make([][parts]float64, len(c.borders)+1)
	return c
}

// replayHits replays the blocks of g, so many of which are different, against LRU caches of all capacities at once, see
// PrefixHits.
func (in *input) replayHits(g group, capacities []int64, different int, scratch *scratch) *hitCounts {
	rate := min(scratch.limits.rate(different), in.skip.rate())
	c := newHitCounts(capacities, rate)
	weight := 1 / rate
	stack := newLRUStack(int64(math.Round(weight*(1<<weightBits))), int(float64(different)*rate))
	below := uint64(math.MaxUint64)
	if rate < 1 {
		below = uint64(rate * math.MaxUint64)
	}
	num, size := &scratch.num, in.meta.BlockSize
	num.reset(len(in.tree.nodes))
	for i := range in.each(g) {
		n := in.blocks(i)
		if n == 0 {
			continue
		}
		counted := !in.is(i, rowDamaged)
		scratch.path = in.tree.path(scratch.path, in.leaf[i], in.depth[i])
		need := int64(0)
		for k, at := range scratch.path {
			block := in.tree.nodes[at].block
			if in.skip > 0 {
				k = int(in.tree.places[at])
			}
			h := uint64(0)
			if rate < 1 {
				if h = sampleHash(uint64(in.tree.nodes[block].id) ^ scratch.salt); h > below {
					continue
				}
			}
			number, _ := num.of(block)
			need = max(need, stack.touch(number))
			if counted {
				c.add(need, samplePart(h), HitRatio{weight, weight * float64(blockTokens(int64(in.in[i]), k, size)), weight / float64(n)})
			}
		}
		followed := in.followed(i)
		stack.pass(int64(n - followed))
		if counted {
			c.row(n, followed, int64(in.in[i]), int64(size))
		}
	}
	return c
}

// add takes one use.
func (c *hitCounts) add(need int64, part uint64, use HitRatio) {
	if c.rate < 1 {
		c.seen.Block, c.seen.Token, c.seen.RequestMean = c.seen.Block+use.Block, c.seen.Token+use.Token, c.seen.RequestMean+use.RequestMean
		c.seenByPart[part] += use.Block
	}
	if need == Cold {
		return
	}
	k := sort.Search(len(c.borders), func(k int) bool { return c.borders[k] >= need })
	s := &c.sums[k]
	s.Block, s.Token, s.RequestMean = s.Block+use.Block, s.Token+use.Token, s.RequestMean+use.RequestMean
	c.byPart[k][part] += use.Block
}

// row takes the exact numbers of a request of n blocks, so many of which another request may share.
func (c *hitCounts) row(n, followed int32, input, size int64) {
	c.total.Requests++
	c.total.Blocks += int64(n)
	c.total.Tokens += min(input, int64(n)*size)
	c.wanted.Block += float64(followed)
	c.wanted.Token += float64(min(input, int64(followed)*size))
	c.wanted.RequestMean += float64(followed) / float64(n)
}

// hits gives the ratios at the capacities.
func (c *hitCounts) hits() CacheHits {
	sums := make([]HitRatio, len(c.places)+1)
	if c.rate < 1 {
		sums[0] = HitRatio{c.wanted.Block - c.seen.Block, c.wanted.Token - c.seen.Token, c.wanted.RequestMean - c.seen.RequestMean}
	}
	k := 0
	for b, s := range c.sums {
		for k < len(c.places) && c.places[k] < b {
			k++
		}
		sums[k].Block, sums[k].Token, sums[k].RequestMean = sums[k].Block+s.Block, sums[k].Token+s.Token, sums[k].RequestMean+s.RequestMean
	}
	h := c.total
	h.take(sums)
	return h
}

// blockError is half the width of the 95 % interval of the block hit ratio at the k-th capacity, the infinite one
// last: what the choice of the sample does to the number of hits, by leaving out its parts in turn, and to the
// distances, as what lies between the capacities that are one for certain. It is 0 without a sample.
func (c *hitCounts) blockError(k int) float64 {
	if c.rate == 1 || c.total.Blocks == 0 {
		return 0
	}
	last, distance := len(c.borders), 0.0
	blocks := float64(c.total.Blocks)
	if k < len(c.places) {
		last = c.places[k]
		size := c.borders[last]
		off := min(1.96/math.Sqrt(float64(size)*c.rate), 1) * float64(size)
		for b := range c.borders {
			if c.borders[b] > size-int64(off) && c.borders[b] <= size+int64(off) {
				distance += c.sums[b].Block / blocks / 2
			}
		}
	}
	var without [parts]float64
	for p := range parts {
		hits := -c.seen.Block + c.seenByPart[p] // the correction: what is seen too little
		for b := 0; b <= last; b++ {
			hits += c.sums[b].Block - c.byPart[b][p]
		}
		without[p] = (c.wanted.Block + hits*parts/(parts-1)) / blocks
	}
	return math.Hypot(leftOutError(without), distance)
}
