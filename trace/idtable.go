package trace

import "math/bits"

// Tables of ids are cut in parts, which grow one at a time by less than half: growing never takes twice the whole,
// and between 60 and 87 % of the places are taken.
const (
	idParts  = 64
	firstIDs = 16 // places of a part at first
)

// full tells whether a part with so many places must grow before it takes one more, and grown to how many.
func full(used, places int) bool { return 8*used >= 7*places }

func grown(places int) int { return max(firstIDs, places+2*places/5) }

// idTable gives each id a number of the caller's, in 14 to 20 bytes. The zero value is empty and ready.
type idTable struct {
	parts [idParts]struct {
		ids     []int64
		numbers []uint32 // 1 + the number; 0 = the place is free
		used    int
	}
}

// number returns the number of id; where it has none yet it gets next, and known is false.
func (t *idTable) number(id, next int64) (n int64, known bool) {
	h := mixID(id)
	p := &t.parts[h>>58]
	if full(p.used, len(p.ids)) {
		ids, numbers := p.ids, p.numbers
		size := grown(len(ids))
		p.ids, p.numbers = make([]int64, size), make([]uint32, size)
		for i, n := range numbers {
			if n != 0 {
				at := t.find(p.ids, p.numbers, ids[i], mixID(ids[i]))
				p.ids[at], p.numbers[at] = ids[i], n
			}
		}
	}
	at := t.find(p.ids, p.numbers, id, h)
	if p.numbers[at] != 0 {
		return int64(p.numbers[at]) - 1, true
	}
	p.ids[at], p.numbers[at] = id, uint32(next+1)
	p.used++
	return next, false
}

// find returns the place of id, or the free one where it belongs.
func (t *idTable) find(ids []int64, numbers []uint32, id int64, h uint64) int {
	at := firstPlace(h, len(ids))
	for numbers[at] != 0 && ids[at] != id {
		if at++; at == len(ids) {
			at = 0
		}
	}
	return at
}

// idSet is a set of ids, in 9 to 13 bytes each. The zero value is empty and ready.
type idSet struct {
	parts [idParts]struct {
		ids  []int64 // 0 = the place is free
		used int
	}
	zero bool // 0 is in the set
	n    int64
}

// add adds id; false = it was there.
func (t *idSet) add(id int64) bool {
	if id == 0 {
		if t.zero {
			return false
		}
		t.zero = true
		t.n++
		return true
	}
	h := mixID(id)
	p := &t.parts[h>>58]
	if full(p.used, len(p.ids)) {
		old := p.ids
		p.ids = make([]int64, grown(len(old)))
		for _, id := range old {
			if id != 0 {
				putID(p.ids, id, mixID(id))
			}
		}
	}
	if !putID(p.ids, id, h) {
		return false
	}
	p.used++
	t.n++
	return true
}

// putID puts id in its place; false = it was there.
func putID(ids []int64, id int64, h uint64) bool {
	at := firstPlace(h, len(ids))
	for ids[at] != 0 {
		if ids[at] == id {
			return false
		}
		if at++; at == len(ids) {
			at = 0
		}
	}
	ids[at] = id
	return true
}

// firstPlace is where the search for an id begins, by the low half of its hash.
func firstPlace(h uint64, places int) int { return int(h & (1<<32 - 1) * uint64(places) >> 32) }

// mixID spreads ids over all bits.
func mixID(id int64) uint64 {
	hi, lo := bits.Mul64(uint64(id)^0x9e3779b97f4a7c15, 0xd1342543de82ef95)
	return hi ^ lo
}
