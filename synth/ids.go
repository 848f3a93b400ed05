package synth

import (
	"context"
	"fmt"
	"math"

	"tailgate/internal/fault"
	"tailgate/internal/spill"
)

// keep marks a block of a copy that keeps its id.
const keep = math.MaxUint32

// freshIDs gives the copies of a session their block ids. A full block that at least two sessions of the source
// hold keeps its id (a shared prompt). A private block gets a new id per copy, and so does a last block that is
// not full, shared or not: what comes after it would be another user's words. Where the source uses one id, a
// copy uses one id.
//
// Blocks are told by their place: the number of blocks before it in the whole trace. A new id is a base, plus the
// place where the session uses the block first, plus the number of blocks of the trace for each copy before.
type freshIDs struct {
	base, span int64
	place      []uint32 // of each block: where its session uses it first, or keep
}

// of appends the ids of a row in its copy q >= 1 to out; at is the place of the row's first block.
func (f *freshIDs) of(out, ids []int64, at int64, q int32) []int64 {
	first := f.base + f.span*int64(q-1)
	for b, id := range ids {
		if n := f.place[at+int64(b)]; n != keep {
			id = first + int64(n)
		}
		out = append(out, id)
	}
	return out
}

// maxBlocks bounds the blocks of a trace, which places number.
const maxBlocks = math.MaxUint32 - 1

// bucketBudget is how much memory the uses of blocks take before they go to files, in bytes.
const bucketBudget = 64 << 20

// numbering finds the blocks that sessions share: it takes every block of every row, in order, and then brings the
// uses of each id together.
type numbering struct {
	*facts
	uses  *spill.Buckets
	first []uint32 // place of each row's first block
	rows  uint32
	place []uint32         // the result
	tails map[int32]uint32 // where sessions use the block at hand first as one that is not full
}

// newNumbering keeps uses of blocks in memory (dir ""), or in files in dir.
func newNumbering(f *facts, dir string, blocks int64) *numbering {
	budget := bucketBudget
	if dir == "" {
		budget = math.MaxInt
	}
	return &numbering{facts: f, uses: spill.NewBuckets(dir, blocks, budget)}
}

func (n *numbering) add(ids []int64) error {
	for b, id := range ids {
		if err := n.uses.Add(spill.Entry{Key: uint64(id), Row: n.rows, Pos: uint32(b)}); err != nil {
			return err
		}
	}
	n.rows++
	return nil
}

func (n *numbering) close() { n.uses.Close() }

// finish places the new ids of so many copies.
func (n *numbering) finish(ctx context.Context, copies int32) (*freshIDs, error) {
	if n.total > maxBlocks {
		return nil, fault.Mark(fmt.Errorf("%d hash ids are more than %d", n.total, uint64(maxBlocks)), fault.Usage, "cut the trace with --window")
	}
	if err := n.uses.Seal(); err != nil {
		return nil, err
	}
	n.first, n.place, n.tails = make([]uint32, len(n.at)), make([]uint32, n.total), map[int32]uint32{}
	at := uint32(0)
	for i, b := range n.blocks {
		n.first[i] = at
		at += uint32(b)
	}
	fresh := &freshIDs{span: n.total, place: n.place}
	room := gaps{}
	crowded := n.top >= math.MaxInt64-n.total*int64(copies)
	if crowded {
		room = newGaps()
	}
	err := n.uses.Each(ctx, func(group []spill.Entry) error {
		n.resolve(group)
		if crowded {
			room.mark(int64(group[0].Key))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	fresh.base = n.top + 1
	if crowded {
		fresh.base, err = room.find(n.total * int64(copies))
	}
	return fresh, err
}

// resolve takes all uses of one id, in order.
func (n *numbering) resolve(uses []spill.Entry) {
	first := n.placeOf(uses[0])
	shared := false
	for _, u := range uses[1:] {
		shared = shared || n.of[u.Row] != n.of[uses[0].Row]
	}
	for _, u := range uses {
		switch {
		case !shared:
			n.place[n.placeOf(u)] = first
		case n.full(u):
			n.place[n.placeOf(u)] = keep
		default:
			at, seen := n.tails[n.of[u.Row]]
			if !seen {
				at = n.placeOf(u)
				n.tails[n.of[u.Row]] = at
			}
			n.place[n.placeOf(u)] = at
		}
	}
	clear(n.tails)
}

// placeOf is where in the trace a block is.
func (n *numbering) placeOf(u spill.Entry) uint32 { return n.first[u.Row] + u.Pos }

// full tells whether a block holds as many tokens as fit. Of a row, only the last block may hold fewer.
func (n *numbering) full(u spill.Entry) bool {
	return int64(u.Pos+1)*int64(n.blockSize) <= int64(n.in[u.Row])
}

// gaps marks which of 2^27 equal parts of the 63-bit range hold an id: a hundred million random ids leave half
// of them free, a billion one in two thousand, each 2^36 wide.
type gaps struct{ used []uint64 }

const gapBits = 36

func newGaps() gaps { return gaps{used: make([]uint64, 1<<(63-gapBits-6))} }

func (g *gaps) mark(id int64) {
	if id >= 0 {
		part := uint64(id) >> gapBits
		g.used[part/64] |= 1 << (part % 64)
	}
}

// find returns the begin of n free ids, in whole parts.
func (g *gaps) find(n int64) (base int64, err error) {
	need, run := (n-1)>>gapBits+1, int64(0)
	for part := range int64(len(g.used)) * 64 {
		if g.used[part/64]&(1<<(part%64)) != 0 {
			run = 0
			continue
		}
		if run++; run == need {
			return (part - run + 1) << gapBits, nil
		}
	}
	return 0, fault.Mark(fmt.Errorf("%d new hash ids have no room between those of the trace", n), fault.Data, "")
}
