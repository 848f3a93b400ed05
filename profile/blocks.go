package profile

import "tailgate/schemas"

// Units of the reuse table.
const (
	UnitRequests = "requests"
	UnitUs       = "us"
)

// Sizes of the tables of blocks.
const (
	maxRoots  = 100
	maxPairs  = 100
	deepest   = 64 // blocks that the depth of a root counts at most
	maxShared = 1 << 25
)

// scratch is memory that the tables of one group after the other use.
type scratch struct {
	num     numbering
	lengths [2]lengthCounts
	cells   []int64
	path    []uint32
	limits  hitLimits
	salt    uint64 // of the sample
	columns columns
	prompts numbering // nodes of whole prompts
	roots   numbering
}

// usage follows the blocks of a group: how often each is used, and how long it rests between two uses.
type usage struct {
	in      *input
	g       group
	scratch *scratch
	num     *numbering // nil for the total, whose blocks have their own numbers
	uses    []uint32   // requests by block
	last    []uint32   // request that used it last, from 1
	private int64      // blocks of one request that are not followed
	resting [2][logBins][parts]int64
}

func (in *input) use(g group, scratch *scratch) *usage {
	u := &usage{in: in, g: g, scratch: scratch}
	if nodes := len(in.tree.nodes); g.total {
		u.uses, u.last = make([]uint32, nodes), make([]uint32, nodes)
	} else {
		u.num = &scratch.num
		u.num.reset(nodes)
	}
	request := uint32(0)
	for i := range in.each(g) {
		request++
		u.private += int64(in.blocks(i) - in.followed(i))
		scratch.path = in.tree.path(scratch.path, in.leaf[i], in.depth[i])
		for _, at := range scratch.path {
			block := in.tree.nodes[at].block
			k := u.number(block)
			before := u.last[k]
			if before == request {
				continue
			}
			if before > 0 {
				u.rest(block, request-before, in.at[i]-in.at[u.row(before)])
			}
			u.uses[k]++
			u.last[k] = request
		}
	}
	return u
}

// number is the number of a block in the group.
func (u *usage) number(block uint32) uint32 {
	if u.num == nil {
		return block
	}
	k, isNew := u.num.of(block)
	if isNew {
		u.uses, u.last = append(u.uses, 0), append(u.last, 0)
	}
	return k
}

// row is the row of the group's n-th request, from 1.
func (u *usage) row(n uint32) int32 {
	if u.g.rows == nil {
		return int32(n - 1)
	}
	return u.g.rows[n-1]
}

// rest takes the distance from one use of a block to the next.
func (u *usage) rest(block, requests uint32, us int64) {
	part := uint64(0)
	if u.in.skip > 0 {
		part = samplePart(sampleHash(uint64(u.in.tree.nodes[block].id)))
	}
	if us < u.in.resolution {
		us = 0
	}
	u.resting[0][logOctaves.place(int64(requests))][part]++
	u.resting[1][logOctaves.place(us)][part]++
}

// different is the number of blocks that are followed; of a sample, of those that it stands for.
func (u *usage) different() (n int) {
	for _, uses := range u.uses {
		if uses > 0 {
			n++
		}
	}
	return n << u.in.skip
}

// popularity counts blocks by uses; a request that holds a block twice uses it once.
func (u *usage) popularity(key schemas.ProfileKey) []schemas.ProfilePopularity {
	var blocks, uses [logBins]int64
	var squares [logBins]float64
	for _, n := range u.uses {
		if n > 0 {
			place := logOctaves.place(int64(n))
			blocks[place]++
			uses[place] += int64(n)
			squares[place] += float64(n) * float64(n)
		}
	}
	rate := u.in.skip.rate()
	var out []schemas.ProfilePopularity
	for place, n := range blocks {
		private := int64(0)
		if place == 1 {
			private = u.private
		}
		if n+private > 0 {
			lo, hi := logOctaves.bin(place)
			out = append(out, schemas.ProfilePopularity{ProfileKey: key, LoUses: lo, HiUses: hi, Blocks: n<<u.in.skip + private,
				Uses: uses[place]<<u.in.skip + private, SampleRate: &rate, BlocksError: u.in.skip.drawError(float64(n)), UsesError: u.in.skip.drawError(squares[place])})
		}
	}
	return out
}

// reuse is the histogram of the distances from one use of a block to its next.
func (u *usage) reuse(key schemas.ProfileKey) []schemas.ProfileReuse {
	rate := u.in.skip.rate()
	var out []schemas.ProfileReuse
	for k, unit := range []string{UnitRequests, UnitUs} {
		for place, byPart := range u.resting[k] {
			n, sums := int64(0), [parts]float64{}
			for p, x := range byPart {
				n += x
				sums[p] = float64(x)
			}
			if n == 0 {
				continue
			}
			lo, hi := logOctaves.bin(place)
			if unit == UnitUs && lo == 0 {
				hi = max(hi, u.in.resolution)
			}
			out = append(out, schemas.ProfileReuse{ProfileKey: key, Unit: unit, Lo: lo, Hi: hi, N: n << u.in.skip, SampleRate: &rate, NError: val(u.in.skip.sumError(sums))})
		}
	}
	return out
}
