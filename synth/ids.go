package synth

import (
	"math"
	"slices"

	"tailgate/trace"
)

// keep marks a block of a copy that keeps its id.
const keep = -1

// freshIDs gives the copies of a session their block ids. A full block that at least two sessions of the source
// hold keeps its id (a shared prompt). A private block gets a new id per copy, and so does a last block that is
// not full, shared or not: what comes after it would be another user's words. Where the source uses one id, a
// copy uses one id.
type freshIDs struct {
	t         *trace.Trace
	local     [][]int32 // of each row, block by block: number within its session, or keep; nil = nothing new
	base      []int64   // first new id of each session's copy 1
	count     []int64   // new ids per copy of each session
	sessionOf []int32
}

// newFreshIDs numbers the new ids of all copies without gaps, in order of session and copy, in a range that no
// id of the source lies in.
func newFreshIDs(t *trace.Trace, sessions []session, of []int32, copies []int32) *freshIDs {
	f := &freshIDs{t: t, local: make([][]int32, len(t.Rows)), sessionOf: of}
	f.base, f.count = make([]int64, len(sessions)), make([]int64, len(sessions))
	shared := sharedBlocks(t, of)
	total := int64(0)
	for j := range sessions {
		if copies[j] < 2 {
			continue
		}
		f.number(j, sessions[j].rows, shared)
		f.base[j] = total
		total += f.count[j] * int64(copies[j]-1)
	}
	first := freeRange(shared, total)
	for j := range f.base {
		f.base[j] += first
	}
	return f
}

// sharedBlocks tells for each id of the source whether at least two sessions hold it.
func sharedBlocks(t *trace.Trace, of []int32) map[int64]bool {
	holder := map[int64]int32{}
	shared := map[int64]bool{}
	for i := range t.Rows {
		for _, id := range t.Rows[i].HashIDs {
			j, seen := holder[id]
			if !seen {
				holder[id] = of[i]
				shared[id] = false
			} else if j != of[i] {
				shared[id] = true
			}
		}
	}
	return shared
}

// number gives the blocks of one session that need new ids their numbers, by first use.
func (f *freshIDs) number(j int, rows []int32, shared map[int64]bool) {
	numbers := map[int64]int32{}
	for _, i := range rows {
		row := &f.t.Rows[i]
		if len(row.HashIDs) == 0 {
			continue
		}
		local := make([]int32, len(row.HashIDs))
		for b, id := range row.HashIDs {
			full := int64(b+1)*int64(f.t.Meta.BlockSize) <= int64(row.InputTokens)
			if shared[id] && full {
				local[b] = keep
				continue
			}
			n, ok := numbers[id]
			if !ok {
				n = int32(len(numbers))
				numbers[id] = n
			}
			local[b] = n
		}
		f.local[i] = local
	}
	f.count[j] = int64(len(numbers))
}

// of returns the ids of row i in its copy q >= 1.
func (f *freshIDs) of(i, q int32) []int64 {
	ids := f.t.Rows[i].HashIDs
	if f.local[i] == nil {
		return ids // unknown or empty
	}
	j := f.sessionOf[i]
	first := f.base[j] + f.count[j]*int64(q-1)
	out := make([]int64, len(ids))
	for b, n := range f.local[i] {
		if n == keep {
			out[b] = ids[b]
		} else {
			out[b] = first + int64(n)
		}
	}
	return out
}

// freeRange returns the start of n ids in a row that are not used: above the greatest one, or, where keyed ids
// fill the whole range, in the first gap that is wide enough.
func freeRange(used map[int64]bool, n int64) int64 {
	top := int64(-1)
	for id := range used {
		top = max(top, id)
	}
	if top < math.MaxInt64-n {
		return top + 1
	}
	ids := make([]int64, 0, len(used))
	for id := range used {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	next := int64(0)
	for _, id := range ids {
		if id-next >= n {
			break
		}
		next = max(next, id+1)
	}
	return next
}
