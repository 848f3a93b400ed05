package synth

import (
	"fmt"
	"math"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
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

// block is one use of a block: which row, which of its blocks, and where in the trace.
type block struct {
	id      int64
	row, at int32
	place   uint32
}

// resolver finds the blocks that sessions share, for a part of the ids at a time.
type resolver struct {
	*facts
	place []uint32 // the result
	slots []holder // open addressing
	tails map[tail]uint32
}

// holder is who uses a block: one session or more.
type holder struct {
	id      int64
	first   uint32 // place of its first use
	session int32
	state   int8 // 0 = free
}

const (
	private = iota + 1
	shared
)

// tail is a shared block that is not full, in one session.
type tail struct {
	id      int64
	session int32
}

// resolve takes every use of some ids, in order of place.
func (r *resolver) resolve(uses []block) {
	size := 16
	for size < 2*len(uses) {
		size *= 2
	}
	if cap(r.slots) < size {
		r.slots = make([]holder, size)
	}
	r.slots = r.slots[:size]
	clear(r.slots)
	for i := range uses {
		u := &uses[i]
		h := r.slot(u.id)
		switch session := r.facts.of[u.row]; {
		case h.state == 0:
			*h = holder{id: u.id, first: u.place, session: session, state: private}
		case h.session != session:
			h.state = shared
		}
	}
	r.tails = map[tail]uint32{}
	for i := range uses {
		u := &uses[i]
		switch h := r.slot(u.id); {
		case h.state == private:
			r.place[u.place] = h.first
		case r.full(u):
			r.place[u.place] = keep
		default:
			key := tail{u.id, r.facts.of[u.row]}
			first, seen := r.tails[key]
			if !seen {
				first = u.place
				r.tails[key] = first
			}
			r.place[u.place] = first
		}
	}
}

func (r *resolver) slot(id int64) *holder {
	for i := rng.Hash(uint64(id)) >> 20; ; i++ {
		h := &r.slots[i&uint64(len(r.slots)-1)]
		if h.state == 0 || h.id == id {
			return h
		}
	}
}

// full tells whether a block holds as many tokens as fit. Of a row, only the last block may hold fewer.
func (r *resolver) full(u *block) bool {
	return int64(u.at+1)*int64(r.blockSize) <= int64(r.in[u.row])
}

// maxBlocks bounds the blocks of a trace, which places number.
const maxBlocks = math.MaxUint32 - 1

// partBlocks is how many uses of blocks are resolved at a time.
const partBlocks = 1 << 22

// numberBlocks finds the shared blocks of a trace in memory.
func numberBlocks(f *facts, ids func(row int) []int64) (*freshIDs, error) {
	if f.total > maxBlocks {
		return nil, tooManyBlocks(f.total)
	}
	r := resolver{facts: f, place: make([]uint32, f.total)}
	parts := uint64(f.total/partBlocks + 1)
	var uses []block
	for part := range parts {
		uses = uses[:0]
		place := uint32(0)
		for i := range f.at {
			for b, id := range ids(i) {
				if parts == 1 || rng.Hash(uint64(id))%parts == part {
					uses = append(uses, block{id: id, row: int32(i), at: int32(b), place: place})
				}
				place++
			}
		}
		r.resolve(uses)
	}
	return &freshIDs{span: f.total, place: r.place}, nil
}

func tooManyBlocks(n int64) error {
	return fault.Mark(fmt.Errorf("%d hash ids are more than %d", n, uint64(maxBlocks)), fault.Usage, "cut the trace with --window")
}

// placeCopies sets where the new ids of so many copies begin: above the greatest id, or, where keyed ids fill the
// whole range, in a gap between them. each visits every id of the source.
func (f *freshIDs) placeCopies(top int64, copies int32, each func(visit func(id int64))) error {
	n := f.span * int64(copies)
	if top < math.MaxInt64-n {
		f.base = top + 1
		return nil
	}
	gaps := newGaps()
	each(gaps.mark)
	base, ok := gaps.find(n)
	if !ok {
		return fault.Mark(fmt.Errorf("%d new hash ids have no room between those of the trace", n), fault.Data, "")
	}
	f.base = base
	return nil
}

// gaps marks which of 2^27 equal parts of the 63-bit range hold an id: a hundred million random ids leave half
// of them free, a billion one in two thousand, each 2^36 wide.
type gaps struct{ used []uint64 }

const gapBits = 36

func newGaps() *gaps { return &gaps{used: make([]uint64, 1<<(63-gapBits-6))} }

func (g *gaps) mark(id int64) {
	if id >= 0 {
		part := uint64(id) >> gapBits
		g.used[part/64] |= 1 << (part % 64)
	}
}

// find returns the begin of the first n free ids in whole parts.
func (g *gaps) find(n int64) (base int64, ok bool) {
	need, run := (n-1)>>gapBits+1, int64(0)
	for part := range int64(len(g.used)) * 64 {
		if g.used[part/64]&(1<<(part%64)) != 0 {
			run = 0
			continue
		}
		if run++; run == need {
			return (part - run + 1) << gapBits, true
		}
	}
	return 0, false
}
