package trace

import "math/bits"

// idTable numbers ids from 0 in the order in which they come, in 16 to 32 bytes each. It grows in parts, so that
// growing never takes twice the whole. The zero value is empty and ready.
type idTable struct {
	parts [1 << idParts]idPart
	n     int64
}

const idParts = 6

// idPart is a hash table with linear probing.
type idPart struct {
	ids     []int64
	numbers []uint32 // 1 + the number; 0 = free
	used    int
}

// number returns the number of id, a new one where it has none yet; known tells which.
func (t *idTable) number(id int64) (n int64, known bool) {
	h := mixID(id)
	p := &t.parts[h>>(64-idParts)]
	if 4*p.used >= 3*len(p.ids) {
		p.grow()
	}
	mask := uint64(len(p.ids) - 1)
	for at := h & mask; ; at = (at + 1) & mask {
		switch {
		case p.numbers[at] == 0:
			p.ids[at], p.numbers[at] = id, uint32(t.n+1)
			p.used++
			t.n++
			return t.n - 1, false
		case p.ids[at] == id:
			return int64(p.numbers[at]) - 1, true
		}
	}
}

func (p *idPart) grow() {
	ids, numbers := p.ids, p.numbers
	size := max(16, 2*len(ids))
	p.ids, p.numbers = make([]int64, size), make([]uint32, size)
	mask := uint64(size - 1)
	for i, n := range numbers {
		if n == 0 {
			continue
		}
		at := mixID(ids[i]) & mask
		for p.numbers[at] != 0 {
			at = (at + 1) & mask
		}
		p.ids[at], p.numbers[at] = ids[i], n
	}
}

// idSet is a set of ids, in 11 to 22 bytes each; it grows as idTable does.
type idSet struct {
	parts [1 << idParts]struct {
		ids  []int64 // 0 = free
		used int
	}
	zero bool // 0 is in the set
	n    int64
}

// add adds id; false = it was there.
func (t *idSet) add(id int64) bool {
	if id == 0 {
		added := !t.zero
		t.zero = true
		if added {
			t.n++
		}
		return added
	}
	h := mixID(id)
	p := &t.parts[h>>(64-idParts)]
	if 4*p.used >= 3*len(p.ids) {
		old := p.ids
		p.ids = make([]int64, max(16, 2*len(old)))
		for _, id := range old {
			if id != 0 {
				place(p.ids, id)
			}
		}
	}
	if !place(p.ids, id) {
		return false
	}
	p.used++
	t.n++
	return true
}

// place puts id in its place of a table; false = it was there.
func place(ids []int64, id int64) bool {
	mask := uint64(len(ids) - 1)
	at := mixID(id) & mask
	for ; ids[at] != 0; at = (at + 1) & mask {
		if ids[at] == id {
			return false
		}
	}
	ids[at] = id
	return true
}

// mixID spreads ids over all bits.
func mixID(id int64) uint64 {
	hi, lo := bits.Mul64(uint64(id)^0x9e3779b97f4a7c15, 0xd1342543de82ef95)
	return hi ^ lo
}
