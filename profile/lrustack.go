package profile

// lruStack tells, at each access, how many different blocks were used since the last one. Every block seen has
// one slot, in order of its last use; a Fenwick tree sums up the weights of the slots. When the slots run out, they
// are renumbered without the holes. Blocks are numbered from 0 in order of first sight.
type lruStack struct {
	slotOf []uint32 // by block, from 1
	owner  []uint32 // slot → block + 1; 0 = a hole or blocks that are never used again
	weight []int64  // by slot
	tree   []int64  // Fenwick tree over weight
	next   uint32
	live   int64 // sum of all weights
	unit   int64 // weight of a block
}

// weightBits are the binary digits of a weight behind the point: a sampled block stands for 1/rate blocks.
const weightBits = 16

// newLRUStack expects about so many different blocks.
func newLRUStack(unit int64, blocks int) *lruStack {
	s := &lruStack{next: 1, unit: unit, slotOf: make([]uint32, 0, blocks)}
	s.resize(max(2*blocks, 1<<10))
	return s
}

func (s *lruStack) resize(slots int) {
	s.owner, s.weight, s.tree = make([]uint32, slots+1), make([]int64, slots+1), make([]int64, slots+1)
}

// touch uses a block and returns its stack distance: the smallest LRU capacity that still held it.
func (s *lruStack) touch(block uint32) int64 {
	if int(s.next) == len(s.owner) {
		s.compact()
	}
	distance := int64(Cold)
	if int(block) == len(s.slotOf) {
		s.slotOf = append(s.slotOf, 0)
		s.live += s.unit
	} else {
		slot := s.slotOf[block]
		distance = (s.live-s.sum(slot))>>weightBits + 1
		s.owner[slot], s.weight[slot] = 0, 0
		s.add(slot, -s.unit)
	}
	s.slotOf[block] = s.next
	s.owner[s.next], s.weight[s.next] = block+1, s.unit
	s.add(s.next, s.unit)
	s.next++
	return distance
}

// pass uses n blocks that are never used again.
func (s *lruStack) pass(n int64) {
	if n == 0 {
		return
	}
	w := n << weightBits
	s.live += w
	slot := s.next - 1
	if slot == 0 || s.owner[slot] != 0 { // else they join those before them
		if int(s.next) == len(s.owner) {
			s.compact()
		}
		slot = s.next
		s.next++
	}
	s.weight[slot] += w
	s.add(slot, w)
}

func (s *lruStack) compact() {
	owner, weight := s.owner, s.weight
	kept := 0
	for slot := 1; slot < len(owner); slot++ {
		switch {
		case weight[slot] == 0: // a hole
		case owner[slot] == 0 && kept > 0 && owner[kept] == 0: // they join those before them
			weight[kept] += weight[slot]
		default:
			kept++
			owner[kept], weight[kept] = owner[slot], weight[slot]
		}
	}
	s.resize(max(len(owner)-1, 2*kept))
	s.next = uint32(kept) + 1
	copy(s.owner, owner[:kept+1])
	copy(s.weight, weight[:kept+1])
	for slot := uint32(1); slot < uint32(len(s.tree)); slot++ {
		if o := s.owner[slot]; o != 0 {
			s.slotOf[o-1] = slot
		}
		s.tree[slot] += s.weight[slot]
		if up := slot + slot&-slot; up < uint32(len(s.tree)) {
			s.tree[up] += s.tree[slot]
		}
	}
}

func (s *lruStack) add(slot uint32, by int64) {
	for i := slot; i < uint32(len(s.tree)); i += i & -i {
		s.tree[i] += by
	}
}

// sum is the weight of the slots up to and with slot.
func (s *lruStack) sum(slot uint32) int64 {
	var n int64
	for i := slot; i > 0; i -= i & -i {
		n += s.tree[i]
	}
	return n
}
