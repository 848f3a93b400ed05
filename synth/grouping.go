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
}

func (g *grouper) add(r *schemas.TraceRow) {
	name := int32(-1)
	if r.Session != nil {
		name, _ = g.names.number(xxh3.HashString(*r.Session))
	}
	g.name = append(g.name, name)
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
	if g.left > 0 {
		g.node, g.depth = make([]int32, len(g.at)), make([]int32, len(g.at))
	}
	for g.left > 0 {
		shares, err := g.step(ctx, src)
		if err != nil {
			return nil, err
		}
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
	i := 0
	return src.Each(ctx, func(r *schemas.TraceRow) error {
		if g.of[i] < 0 {
			visit(i, r.HashIDs)
		}
		i++
		return nil
	})
}

// prefix is what rows share that agree on one block more than before.
type prefix struct{ rows, branches int32 }

// step groups the rows by the block after the prefix that they share. A group is a session, unless its block is a
// common prefix. shares are the groups that many requests hold.
func (g *grouper) step(ctx context.Context, src *trace.Stream) (shares map[int32]bool, err error) {
	var groups, next fingerprints
	var all []prefix
	err = g.eachLeft(ctx, src, func(i int, ids []int64) {
		d := int(g.depth[i])
		if len(ids) <= d {
			g.of[i] = g.open()
			g.left--
			return
		}
		n, fresh := groups.number(rng.Hash(uint64(g.node[i]), uint64(ids[d])))
		if fresh {
			all = append(all, prefix{})
		}
		all[n].rows++
		if len(ids) > d+1 {
			if _, fresh := next.number(rng.Hash(uint64(n), uint64(ids[d+1]))); fresh {
				all[n].branches++
			}
		}
		g.node[i] = n
	})
	if err != nil {
		return nil, err
	}
	shares = map[int32]bool{}
	sessionOf := make([]int32, len(all))
	for n, p := range all {
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
	return shares, nil
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
