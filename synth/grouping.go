package synth

import (
	"context"

	"github.com/zeebo/xxh3"

	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/trace"
)

// fingerprints numbers 64-bit fingerprints in order of first use: an open table of 12 bytes a slot. Two of ten
// million different things have the same fingerprint with a chance of 3 in a million.
type fingerprints struct {
	keys []uint64
	nums []int32 // number + 1; 0 = free
	n    int32
}

func (t *fingerprints) number(key uint64) (num int32, fresh bool) {
	if 4*int(t.n) >= 3*len(t.keys) {
		t.grow()
	}
	i := t.find(key)
	if t.nums[i] == 0 {
		t.n++
		t.keys[i], t.nums[i] = key, t.n
		return t.n - 1, true
	}
	return t.nums[i] - 1, false
}

func (t *fingerprints) find(key uint64) int {
	mask := len(t.keys) - 1
	for i := int(key>>1) & mask; ; i = (i + 1) & mask {
		if t.nums[i] == 0 || t.keys[i] == key {
			return i
		}
	}
}

func (t *fingerprints) grow() {
	keys, nums := t.keys, t.nums
	size := max(1024, 2*len(keys))
	t.keys, t.nums = make([]uint64, size), make([]int32, size)
	for i, n := range nums {
		if n > 0 {
			k := t.find(keys[i])
			t.keys[k], t.nums[k] = keys[i], n
		}
	}
}

// grouper finds the sessions of a stream as Trace.Sessions finds those of a trace in memory: by name, along
// parents, and by the first prompt block that is not a common prefix. It holds a few bytes a row and reads the
// stream again for each step along prefixes.
type grouper struct {
	*facts
	names fingerprints
	name  []int32 // number of each row's session name, -1 = none
	of    []int32 // provisional session of each row, -1 = not yet found
	n     int32
	left  int     // rows whose session is not yet found
	node  []int32 // of those: the prefix that the row shares with others
	depth []int32 // and its length in blocks
	first stepper // the first step of rows without a name, made on the way
}

func (g *grouper) add(r *schemas.TraceRow) {
	name := int32(-1)
	if r.Session != nil {
		name, _ = g.names.number(xxh3.HashString(*r.Session))
	}
	g.name = append(g.name, name)
	if name < 0 && len(r.HashIDs) > 0 {
		for len(g.node) < len(g.name)-1 {
			g.node = append(g.node, 0)
		}
		g.node = append(g.node, g.first.take(0, 0, r.HashIDs))
	}
}

func (g *grouper) open() int32 {
	g.n++
	return g.n - 1
}

// told groups the rows that the file ties together, and those that have no prompt.
func (g *grouper) told() {
	isParent := make([]bool, len(g.at))
	for i, p := range g.parent {
		if p >= 0 && g.name[i] < 0 {
			isParent[p] = true
		}
	}
	g.of, g.n = g.name, g.names.n
	g.names = fingerprints{}
	for i := range g.of {
		switch {
		case g.of[i] >= 0:
		case g.parent != nil && g.parent[i] >= 0:
			g.of[i] = g.of[g.parent[i]]
		case isParent[i] || g.blocks[i] == 0:
			g.of[i] = g.open()
		}
		if g.of[i] < 0 {
			g.left++
		}
	}
}

// sessions is the session of each row, numbered by first row.
func (g *grouper) sessions(ctx context.Context, src *trace.Stream) ([]int32, error) {
	g.told()
	early := g.parent == nil // else some of the rows that were taken on the way belong to others
	if g.left > 0 {
		g.depth = make([]int32, len(g.at))
		g.node = append(g.node, make([]int32, len(g.at)-len(g.node))...)
		if !early {
			clear(g.node)
		}
	}
	for g.left > 0 {
		st := &g.first
		if !early {
			st = &stepper{}
			if err := g.step(ctx, src, st); err != nil {
				return nil, err
			}
		}
		shares := g.settle(st)
		*st, early = stepper{}, false
		if g.left > 0 && len(shares) > 0 {
			if err := g.skip(ctx, src, shares); err != nil {
				return nil, err
			}
		}
	}
	final := make([]int32, g.n)
	n := int32(0)
	for i, provisional := range g.of {
		if final[provisional] == 0 {
			n++
			final[provisional] = n
		}
		g.of[i] = final[provisional] - 1
	}
	return g.of, nil
}

// eachLeft visits the rows whose session is not yet found.
func (g *grouper) eachLeft(ctx context.Context, src *trace.Stream, visit func(i int, ids []int64)) error {
	left := func(ctx context.Context, give visitFunc) error {
		i := int64(0)
		return src.Each(ctx, func(r *schemas.TraceRow) error {
			i++
			if g.of[i-1] >= 0 {
				return nil
			}
			return give(r, i-1, 0)
		})
	}
	return inStages(ctx, left, func(r *schemas.TraceRow, i int64, _ int32) error {
		visit(int(i), r.HashIDs)
		return nil
	})
}

// prefix is what rows share that agree on one block more than before.
type prefix struct{ rows, branches int32 }

// stepper groups rows by the block after the prefix that they share.
type stepper struct {
	groups, next fingerprints
	all          []prefix
}

// take returns the group of a row that has more than depth blocks.
func (st *stepper) take(node int32, depth int, ids []int64) int32 {
	n, fresh := st.groups.number(rng.Hash(uint64(node), uint64(ids[depth])))
	if fresh {
		st.all = append(st.all, prefix{})
	}
	st.all[n].rows++
	if len(ids) > depth+1 {
		if _, fresh := st.next.number(rng.Hash(uint64(n), uint64(ids[depth+1]))); fresh {
			st.all[n].branches++
		}
	}
	return n
}

// step takes every row whose session is not yet found one block further.
func (g *grouper) step(ctx context.Context, src *trace.Stream, st *stepper) error {
	return g.eachLeft(ctx, src, func(i int, ids []int64) {
		if d := int(g.depth[i]); len(ids) > d {
			g.node[i] = st.take(g.node[i], d, ids)
			return
		}
		g.of[i] = g.open()
		g.left--
	})
}

// settle ends a step. A group is a session, unless its block is a common prefix. shares are the groups that many
// requests hold.
func (g *grouper) settle(st *stepper) (shares map[int32]bool) {
	shares = map[int32]bool{}
	sessionOf := make([]int32, len(st.all))
	for n, p := range st.all {
		byShare, common := trace.CommonPrefix(int(p.rows), int(p.branches), len(g.at))
		switch {
		case !common:
			sessionOf[n] = g.open()
			continue
		case byShare:
			shares[int32(n)] = true
		}
		sessionOf[n] = -1
	}
	for i := range g.of {
		if g.of[i] >= 0 {
			continue
		}
		if s := sessionOf[g.node[i]]; s >= 0 {
			g.of[i] = s
			g.left--
			continue
		}
		g.depth[i]++
	}
	return shares
}

// trunk is the path of the first row of a group: how many rows leave it after how many blocks.
type trunk struct {
	ids   []int64
	leave []int32
	base  int32 // node of the group's own depth; the one a block further is base+1, and so on
	until int   // depth up to which many rows hold the prefix
}

// skip follows groups that many requests hold along a common path at once: a system prompt is long.
func (g *grouper) skip(ctx context.Context, src *trace.Stream, shares map[int32]bool) error {
	trunks, along := map[int32]*trunk{}, make([]int32, len(g.at))
	err := g.eachLeft(ctx, src, func(i int, ids []int64) {
		if !shares[g.node[i]] {
			return
		}
		t := trunks[g.node[i]]
		if t == nil {
			t = &trunk{ids: append([]int64(nil), ids...), leave: make([]int32, len(ids)+1)}
			trunks[g.node[i]] = t
		}
		d := int(g.depth[i])
		for d < min(len(ids), len(t.ids)) && ids[d] == t.ids[d] {
			d++
		}
		t.leave[d]++
		along[i] = int32(d)
	})
	if err != nil {
		return err
	}
	nodes := int32(0)
	for n := range g.of {
		nodes = max(nodes, g.node[n]+1)
	}
	for i := range g.of {
		if g.of[i] >= 0 || !shares[g.node[i]] {
			continue
		}
		t := trunks[g.node[i]]
		if t.until == 0 {
			t.follow(int(g.depth[i]), len(g.at))
			t.base = nodes
			nodes += int32(t.until-int(g.depth[i])) + 1
		}
		d := min(int(along[i]), t.until)
		g.node[i] = t.base + int32(d) - g.depth[i]
		g.depth[i] = int32(d)
	}
	return nil
}

// follow finds how far many rows hold the path, from depth on.
func (t *trunk) follow(depth, rows int) {
	holding := 0
	for _, n := range t.leave {
		holding += int(n)
	}
	t.until = depth
	for t.until < len(t.ids) {
		holding -= int(t.leave[t.until])
		if byShare, _ := trace.CommonPrefix(holding, 0, rows); !byShare {
			return
		}
		t.until++
	}
}
