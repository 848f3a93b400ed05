package profile

import (
	"math"
	"slices"
)

// maxFollowed is the number of different prefixes of blocks up to which all blocks of a trace are followed, at 24 to 36
// bytes each. Above, only the blocks are followed whose hash is below a limit, so all uses of a block are or none
// (SHARDS, see hitLimits). The limit is halved each time the sample has grown too large, as the fixed-size variant of
// SHARDS lowers its own: where it ends depends on the different blocks alone, and not on their order, the number of
// threads or the hours in which a day was read.
const maxFollowed = 1 << 21

// sampleHash chooses samples: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
func sampleHash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// halvings is a share of 1/2^halvings.
type halvings uint

// takes tells whether a hash is in the sample.
func (k halvings) takes(h uint64) bool { return h <= math.MaxUint64>>k }

// rate is the share of the blocks that is followed.
func (k halvings) rate() float64 { return math.Ldexp(1, -int(k)) }

// prompts tells the share of the sessions whose prompts are kept whole: their blocks cost more than those of the sample.
func (k halvings) prompts() halvings { return k + 2 }

// wholePrompts are prompts with all their blocks, beside a tree of sampled ones: those of requests without a session, which
// their prompts must tell, and those of a sample of the sessions.
type wholePrompts struct {
	tree *tree
	leaf []uint32 // by row
	has  bitset   // rows that are in it
}

// of takes some rows.
func (w *wholePrompts) of(rows []int32) *wholePrompts {
	has := newBitset(len(rows))
	for i, from := range rows {
		if w.has.has(int(from)) {
			has.set(i)
		}
	}
	return &wholePrompts{tree: w.tree, leaf: pick(w.leaf, rows), has: has}
}

// thin halves the share of the blocks that are followed until there are few enough.
func (c *columns) thin() {
	for len(c.tree.nodes) > c.maxFollowed() {
		c.halve()
	}
}

func (c *columns) maxFollowed() int {
	if c.most > 0 {
		return c.most
	}
	return maxFollowed
}

func (c *columns) halve() {
	if c.skip == 0 {
		c.shared = slices.Clone(c.depth)
		c.whole = &wholePrompts{tree: c.tree, leaf: slices.Clone(c.leaf), has: newBitset(c.len())}
		for i := range c.leaf {
			c.whole.has.set(i)
		}
	}
	c.skip++
	nodes := c.tree.nodes
	small, became := c.tree.rebuilt(true, func(n uint32) bool { return c.skip.takes(sampleHash(uint64(nodes[n].id))) })
	c.tree = small
	depths := small.depths()
	for i, leaf := range c.leaf {
		c.leaf[i] = became[leaf]
		c.depth[i] = depths[c.leaf[i]]
	}
	c.thinWhole()
}

// keepsWhole tells whether the prompt of a row is kept whole, beside a sample, by the hash of its session; 0 = none.
func (k halvings) keepsWhole(session uint64) bool {
	return session == 0 || k.prompts().takes(sampleHash(session))
}

// thinWhole drops the prompts that are no longer kept whole.
func (c *columns) thinWhole() {
	w := c.whole
	marks := newBitset(len(w.tree.nodes))
	has, sessions := newBitset(len(w.leaf)), c.named.list()
	for i := range w.leaf {
		if s := c.sessionOf(i); !w.has.has(i) || s != none && !c.skip.keepsWhole(sessions[s]) {
			w.leaf[i] = 0
			continue
		}
		has.set(i)
		for n := w.leaf[i]; n != 0 && !marks.has(int(n)); n = w.tree.nodes[n].parent {
			marks.set(int(n))
		}
	}
	small, became := w.tree.rebuilt(false, func(n uint32) bool { return marks.has(int(n)) })
	for i, leaf := range w.leaf {
		w.leaf[i] = became[leaf]
	}
	w.tree, w.has = small, has
}

// sessionOf is the number of the session that the trace names for row i, or none.
func (c *columns) sessionOf(i int) int32 {
	if c.session == nil {
		return none
	}
	return c.session[i]
}

// prompts are the tree of whole prompts and the node of each row in it.
func (c *columns) prompts() (t *tree, leaf []uint32) {
	if c.whole != nil {
		return c.whole.tree, c.whole.leaf
	}
	return c.tree, c.leaf
}

// addPrompt takes all blocks of the next row; session is the hash of its session, 0 = none.
func (c *columns) addPrompt(ids []int64, session uint64) {
	c.addRoot(ids)
	if c.skip == 0 {
		leaf, depth := c.tree.add(ids, nil)
		c.leaf, c.depth = append(c.leaf, leaf), append(c.depth, int32(depth))
	} else {
		c.addWhole(ids, c.skip.keepsWhole(session))
		c.picked = c.picked.of(c.skip, ids)
		c.addSample(c.picked, len(ids))
	}
	c.thin()
}

func (c *columns) addRoot(ids []int64) {
	root := uint32(0)
	if len(ids) > 0 {
		root = c.roots.number(ids[0])
	}
	c.root = append(c.root, root)
}

// addWhole keeps the prompt of the next row whole, or not.
func (c *columns) addWhole(ids []int64, keep bool) {
	leaf := uint32(0)
	if keep {
		leaf, _ = c.whole.tree.add(ids, nil)
	}
	c.whole.add(leaf, keep)
}

func (w *wholePrompts) add(leaf uint32, keep bool) {
	i := len(w.leaf)
	if i/64 == len(w.has) {
		w.has = append(w.has, 0)
	}
	if w.leaf = append(w.leaf, leaf); keep {
		w.has.set(i)
	}
}

// addSample takes the sampled blocks of a row that has so many.
func (c *columns) addSample(p sampled, blocks int) {
	leaf, depth := c.tree.add(p.ids, p.places)
	c.leaf, c.depth, c.shared = append(c.leaf, leaf), append(c.depth, int32(depth)), append(c.shared, int32(blocks))
}

// sampled are the blocks of a prompt that are in a sample, with their places.
type sampled struct {
	ids    []int64
	places []uint32
}

// of chooses from a whole prompt, into the memory of s.
func (s sampled) of(k halvings, ids []int64) sampled {
	s.ids, s.places = s.ids[:0], s.places[:0]
	return s.and(k, ids)
}

// and chooses from one more prompt.
func (s sampled) and(k halvings, ids []int64) sampled {
	for place, id := range ids {
		if k.takes(sampleHash(uint64(id))) {
			s.ids, s.places = append(s.ids, id), append(s.places, uint32(place))
		}
	}
	return s
}

// again chooses from a larger sample, into the memory of s.
func (s sampled) again(k halvings, from sampled) sampled {
	s.ids, s.places = s.ids[:0], s.places[:0]
	for i, id := range from.ids {
		if k.takes(sampleHash(uint64(id))) {
			s.ids, s.places = append(s.ids, id), append(s.places, from.places[i])
		}
	}
	return s
}

// roots numbers first blocks, from 1.
type roots struct {
	set *hashSet
	ids []int64 // by number, less 1
}

func (r *roots) number(id int64) uint32 {
	n := r.set.number(keyOf(id))
	if int(n) == len(r.ids) {
		r.ids = append(r.ids, id)
	}
	return n + 1
}

// parts is the number of parts of a sample that tell its error, by leaving out each in turn; studentT is the quantile
// .975 of Student's t with one degree of freedom less.
const (
	parts    = 16
	studentT = 2.131449545559776
)

// samplePart is the part of a block by its hash.
func samplePart(h uint64) uint64 { return h % parts }

// leftOutError is half the width of the 95 % interval of a figure by its values without each part in turn (the
// delete-one jackknife).
func leftOutError(without [parts]float64) float64 {
	mean, sum := 0.0, 0.0
	for _, x := range without {
		mean += x / parts
	}
	for _, x := range without {
		sum += (x - mean) * (x - mean)
	}
	return studentT * math.Sqrt(sum*(parts-1)/parts)
}

// sumError is that of a sum over the blocks whose sampled ones, at so many halvings, sum up to these in each part: the
// parts tell how much such sums differ.
func (k halvings) sumError(sums [parts]float64) float64 {
	if k == 0 {
		return 0
	}
	total := 0.0
	for _, x := range sums {
		total += x
	}
	var without [parts]float64
	for p, x := range sums {
		without[p] = (total - x) * parts / (parts - 1)
	}
	return leftOutError(without) / k.rate() * math.Sqrt(1-k.rate())
}

// drawError is half the width of the 95 % interval of a sum over all blocks by the squares of the sampled ones, each of
// which was drawn by itself.
func (k halvings) drawError(squares float64) *float64 {
	return val(1.96 * math.Sqrt(squares*(1-k.rate())) / k.rate())
}
