package synth

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
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

// numbering finds the blocks that sessions share: it takes every block of every row, in order, and then brings the
// uses of each id together.
type numbering struct {
	*facts
	uses  uses
	first []uint32 // place of each row's first block
	rows  int32
	place []uint32 // the result
}

// newNumbering keeps uses of blocks in memory (dir ""), or in a file in dir.
func newNumbering(f *facts, dir string) *numbering {
	return &numbering{facts: f, uses: uses{dir: dir}}
}

func (n *numbering) add(ids []int64) error {
	n.rows++
	return n.uses.add(n.rows-1, ids)
}

func (n *numbering) close() { n.uses.close() }

// finish places the new ids of so many copies.
func (n *numbering) finish(ctx context.Context, copies int32, threads int) (*freshIDs, error) {
	if n.total > maxBlocks {
		return nil, fault.Mark(fmt.Errorf("%d hash ids are more than %d", n.total, uint64(maxBlocks)), fault.Usage, "cut the trace with --window")
	}
	n.first, n.place = make([]uint32, len(n.at)), make([]uint32, n.total)
	at := uint32(0)
	for i, b := range n.blocks {
		n.first[i] = at
		at += uint32(b)
	}
	wanted := n.total * int64(copies)
	var room *gaps
	if n.top >= math.MaxInt64-wanted {
		room = newGaps()
	}
	g, ctx := errgroup.WithContext(ctx)
	for w := range threads {
		g.Go(func() error {
			r := resolver{numbering: n, room: room, tails: map[tail]uint32{}}
			for part := w; part < usesParts; part += threads {
				if err := cmp.Or(ctx.Err(), r.resolve(part)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	fresh := &freshIDs{base: n.top + 1, span: n.total, place: n.place}
	var err error
	if room != nil {
		fresh.base, err = room.find(wanted)
	}
	return fresh, err
}

// resolver tells which blocks are shared, for one part of the ids at a time.
type resolver struct {
	*numbering
	room  *gaps
	uses  []use
	slots []holder // open addressing, by id
	at    []uint32 // slot of each use
	tails map[tail]uint32
}

// holder is who uses a block: one session, or more.
type holder struct {
	id      int64
	first   uint32 // place of its first use
	session int32
	state   int8
}

const (
	heldByOne = iota + 1
	heldByMore
)

// tail is a shared block that is not full, in one session.
type tail struct {
	id      int64
	session int32
}

func (r *resolver) resolve(part int) error {
	var err error
	if r.uses, err = r.numbering.uses.load(r.uses[:0], part); err != nil {
		return err
	}
	size := 16
	for size < 2*len(r.uses) {
		size *= 2
	}
	if size > cap(r.slots) {
		r.slots = make([]holder, size)
	}
	r.slots, r.at = r.slots[:size], r.at[:0]
	clear(r.slots)
	for i := range r.uses {
		u := &r.uses[i]
		k := r.slot(u.id)
		r.at = append(r.at, k)
		h := &r.slots[k]
		switch session := r.of[u.row]; {
		case h.state == 0:
			*h = holder{id: u.id, first: r.placeOf(u), session: session, state: heldByOne}
			r.room.mark(u.id)
		case h.session != session:
			h.state = heldByMore
		}
	}
	for i := range r.uses {
		u := &r.uses[i]
		at := r.placeOf(u)
		switch h := &r.slots[r.at[i]]; {
		case h.state == heldByOne:
			r.place[at] = h.first
		case r.full(u):
			r.place[at] = keep
		default:
			key := tail{u.id, r.of[u.row]}
			if _, seen := r.tails[key]; !seen {
				r.tails[key] = at
			}
			r.place[at] = r.tails[key]
		}
	}
	return nil
}

func (r *resolver) slot(id int64) uint32 {
	mask := uint64(len(r.slots) - 1)
	for i := usesHash(id) & mask; ; i = (i + 1) & mask {
		if h := &r.slots[i]; h.state == 0 || h.id == id {
			return uint32(i)
		}
	}
}

// placeOf is where in the trace a block is.
func (n *numbering) placeOf(u *use) uint32 { return n.first[u.row] + u.pos }

// full tells whether a block holds as many tokens as fit. Of a row, only the last block may hold fewer.
func (n *numbering) full(u *use) bool {
	return int64(u.pos+1)*int64(n.blockSize) <= int64(n.in[u.row])
}

// gaps marks which of 2^27 equal parts of the 63-bit range hold an id: a hundred million random ids leave half
// of them free, a billion one in two thousand, each 2^36 wide.
type gaps struct {
	mu   sync.Mutex
	used []uint64
}

const gapBits = 36

func newGaps() *gaps { return &gaps{used: make([]uint64, 1<<(63-gapBits-6))} }

// mark takes an id; a nil receiver takes none.
func (g *gaps) mark(id int64) {
	if g != nil && id >= 0 {
		g.mu.Lock()
		defer g.mu.Unlock()
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
