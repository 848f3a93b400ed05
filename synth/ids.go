package synth

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/schemas"
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
	rows  int32
	place []uint32 // the result
}

// newNumbering keeps uses of blocks in memory (dir ""), or in a file in dir.
func newNumbering(f *facts, dir string) *numbering {
	return &numbering{facts: f, uses: uses{dir: dir}}
}

func (n *numbering) add(r *schemas.TraceRow) error {
	full := len(r.HashIDs) // only the last block of a row may hold fewer tokens than fit
	if n.blockSize > 0 {
		full = min(full, int(r.InputTokens)/n.blockSize)
	}
	n.rows++
	return n.uses.add(n.rows-1, r.HashIDs, full)
}

func (n *numbering) close() { n.uses.close() }

// finish places the new ids of so many copies.
func (n *numbering) finish(ctx context.Context, copies int32, threads int) (*freshIDs, error) {
	if n.total > maxBlocks {
		return nil, fault.Mark(fmt.Errorf("%d hash ids are more than %d", n.total, uint64(maxBlocks)), fault.Usage, "cut the trace with --window")
	}
	n.place = make([]uint32, n.total)
	for i := range n.place {
		n.place[i] = uint32(i)
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

// resolver tells which blocks are shared, for one part of the ids at a time. Sessions and places are looked up far
// apart in memory, so it does that only for ids that are used again.
type resolver struct {
	*numbering
	room  *gaps
	uses  []use
	slots []uint32 // open addressing, by id: 1 + the first use of the id; 0 = free
	first []uint32 // the first use of each use's id
	owner []int32  // of first uses: the session of the id where it is used again, or one of these
	tails map[tail]uint32
	buf   []byte
}

const (
	usedOnce   = -1
	usedByMore = -2 // sessions
)

// tail is a shared block that is not full, in one session.
type tail struct {
	id      int64
	session int32
}

func (r *resolver) resolve(part int) (err error) {
	if r.uses, err = r.numbering.uses.load(r.uses[:0], part, &r.buf); err != nil {
		return err
	}
	r.findFirst()
	for i := range r.uses {
		u, first := &r.uses[i], r.first[i]
		switch {
		case r.owner[first] != usedByMore:
			if int(first) != i { // else the place is right as it is
				r.place[u.at] = r.uses[first].at
			}
		case u.full:
			r.place[u.at] = keep
		default:
			key := tail{u.id, r.of[u.row]}
			if _, seen := r.tails[key]; !seen {
				r.tails[key] = u.at
			}
			r.place[u.at] = r.tails[key]
		}
	}
	return nil
}

// findFirst brings the uses of each id together.
func (r *resolver) findFirst() {
	size := 16
	for size < 2*len(r.uses) {
		size *= 2
	}
	r.slots = slices.Grow(r.slots[:0], size)[:size]
	r.first = slices.Grow(r.first[:0], len(r.uses))[:len(r.uses)]
	r.owner = slices.Grow(r.owner[:0], len(r.uses))[:len(r.uses)]
	clear(r.slots)
	mask := uint64(size - 1)
	for i := range r.uses {
		id := r.uses[i].id
		k := usesHash(id) & mask
		for r.slots[k] != 0 && r.uses[r.slots[k]-1].id != id {
			k = (k + 1) & mask
		}
		if r.slots[k] == 0 {
			r.slots[k], r.first[i], r.owner[i] = uint32(i)+1, uint32(i), usedOnce
			r.room.mark(id)
			continue
		}
		first := r.slots[k] - 1
		r.first[i] = first
		r.usedAgain(&r.owner[first], first, i)
	}
}

// usedAgain keeps the owner of an id that is used first here and then there.
func (r *resolver) usedAgain(owner *int32, first uint32, then int) {
	if *owner == usedOnce {
		*owner = r.of[r.uses[first].row]
	}
	if *owner != usedByMore && *owner != r.of[r.uses[then].row] {
		*owner = usedByMore
	}
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
