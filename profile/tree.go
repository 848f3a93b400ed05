package profile

import "math/bits"

// maxNodes bounds a tree of whole prompts: 2^25 different prefixes, about 800 MiB. Blocks behind it are counted and not
// followed, see tree.lost.
const maxNodes = 1 << 25

// tree holds every prefix of blocks that some request begins with, once: a request is the node of its last block, and
// the blocks before it are the nodes above. It is what stands for the hash ids of a trace, which are not kept. A tree
// of a sample holds the sampled blocks alone, with the places that they have in their prompts.
//
// Nodes are numbered from 1 in order of first sight, so a node comes after the one above it. Ids that are chained (an
// id tells all that lies before its block) have one node each; an id that is seen behind different prefixes has a
// node for each, and block tells that they are one.
type tree struct {
	nodes   []node
	places  []uint32 // by node: its place in the prompts, from 0; nil where all blocks are there, so that it is the depth
	slots   []uint64 // open addressing, linear probing: the tag of an id's hash << 32 | its first node; 0 = free
	shift   uint     // from a hash to its slot
	alias   map[aliasKey]uint32
	aliases int   // nodes of an id that has an earlier one; with 0, the ids are chained
	limit   int   // nodes at most
	lost    int64 // blocks that had no room
	seen    int64 // keeps what look reads
}

type node struct {
	id     int64
	parent uint32 // 0 = the root
	block  uint32 // the first node of the same id
}

// aliasKey finds the second and later nodes of an id.
type aliasKey struct {
	id            int64
	parent, place uint32
}

const minSlotBits = 12

func newTree() *tree {
	t := &tree{nodes: make([]node, 1, 1<<10), limit: maxNodes}
	t.resize(minSlotBits)
	return t
}

func (t *tree) resize(slotBits int) {
	t.slots, t.shift = make([]uint64, 1<<slotBits), uint(64-slotBits)
	for i := 1; i < len(t.nodes); i++ {
		if t.nodes[i].block == uint32(i) {
			t.place(hashID(t.nodes[i].id), uint32(i))
		}
	}
}

// hashID spreads ids, of which many traces use the first ones; the slot comes from its upper bits (Knuth's
// multiplicative hashing).
func hashID(id int64) uint64 {
	h := uint64(id) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}

func (t *tree) place(h uint64, n uint32) {
	mask := uint64(len(t.slots) - 1)
	i := h >> t.shift
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = h<<32 | uint64(n)
}

// find is the first node of id, 0 when there is none.
func (t *tree) find(id int64, h uint64) uint32 {
	mask := uint64(len(t.slots) - 1)
	for i := h >> t.shift; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			return 0
		}
		if s>>32 == h&(1<<32-1) && t.nodes[uint32(s)].id == id {
			return uint32(s)
		}
	}
}

// add takes the blocks of one request, and their places where they are a sample. It returns the node of the last one
// that has room, and how many have.
func (t *tree) add(ids []int64, places []uint32) (leaf uint32, depth int) {
	t.reserve(len(ids))
	leaf, depth = t.known(ids, places)
	for k := depth; k < len(ids); k++ {
		place := uint32(0)
		if places != nil {
			place = places[k]
		}
		next := t.step(leaf, ids[k], place)
		if next == 0 {
			t.lost += int64(len(ids) - k)
			return leaf, k
		}
		leaf = next
	}
	return leaf, len(ids)
}

// known is the node of the longest prefix whose last id was seen before. Most prompts go on from an earlier one, and
// with chained ids one look for its last block finds it: the blocks before it lie above, and are compared without a
// search. Where they are others, nothing is known, and every block is searched for.
func (t *tree) known(ids []int64, places []uint32) (leaf uint32, depth int) {
	for k := len(ids) - 1; k >= 0; k-- {
		at := t.find(ids[k], hashID(ids[k]))
		if at == 0 {
			continue
		}
		above := at
		for i := k; i >= 0; i-- {
			if above == 0 || t.nodes[above].id != ids[i] || places != nil && t.places[above] != places[i] {
				return 0, 0
			}
			above = t.nodes[above].parent
		}
		if above != 0 {
			return 0, 0
		}
		return at, k + 1
	}
	return 0, 0
}

// look reads the places of some ids in the table, so that the waits for memory overlap, before they are searched for one
// after the other.
func (t *tree) look(ids []int64) {
	for _, id := range ids {
		t.seen += t.nodes[uint32(t.slots[hashID(id)>>t.shift])].id
	}
}

// reserve makes room for n more nodes in the table.
func (t *tree) reserve(n int) {
	slots := len(t.slots)
	for 4*(len(t.nodes)+n) > 3*slots {
		slots *= 2
	}
	if slots > len(t.slots) {
		t.resize(bits.Len(uint(slots)) - 1)
	}
}

// step is the node of id below parent, a new one at first sight, 0 where there is no room. The place counts in a tree of
// a sample.
func (t *tree) step(parent uint32, id int64, place uint32) uint32 {
	h := hashID(id)
	first := t.find(id, h)
	if first != 0 {
		if t.nodes[first].parent == parent && (t.places == nil || t.places[first] == place) {
			return first
		}
		if n, ok := t.alias[aliasKey{id, parent, place}]; ok {
			return n
		}
	}
	n := uint32(len(t.nodes))
	if int(n) > t.limit {
		return 0
	}
	if first == 0 {
		return t.grow(parent, id, place)
	}
	if t.places != nil {
		t.places = append(t.places, place)
	}
	if t.alias == nil {
		t.alias = map[aliasKey]uint32{}
	}
	t.nodes = append(t.nodes, node{id: id, parent: parent, block: first})
	t.alias[aliasKey{id, parent, place}] = n
	t.aliases++
	return n
}

// grow is a new node below parent for an id that has none.
func (t *tree) grow(parent uint32, id int64, place uint32) uint32 {
	n := uint32(len(t.nodes))
	if t.places != nil {
		t.places = append(t.places, place)
	}
	t.nodes = append(t.nodes, node{id: id, parent: parent, block: n})
	t.place(hashID(id), n)
	return n
}

// different is the number of different blocks.
func (t *tree) different() int { return len(t.nodes) - 1 - t.aliases }

// seal ends the adding and frees the table.
func (t *tree) seal() { t.slots, t.alias = nil, nil }

// path fills buf with the nodes from the first block of a request to its last one.
func (t *tree) path(buf []uint32, leaf uint32, depth int32) []uint32 {
	if cap(buf) < int(depth) {
		buf = make([]uint32, depth, 2*depth)
	}
	buf = buf[:depth]
	for k := len(buf) - 1; k >= 0; k-- {
		buf[k] = leaf
		leaf = t.nodes[leaf].parent
	}
	return buf
}

// common is the node of the last of the leading blocks that two requests share, and how many they are.
func (t *tree) common(a uint32, depthA int32, b uint32, depthB int32) (node uint32, blocks int) {
	for ; depthA > depthB; depthA-- {
		a = t.nodes[a].parent
	}
	for ; depthB > depthA; depthB-- {
		b = t.nodes[b].parent
	}
	for ; a != b; depthA-- {
		a, b = t.nodes[a].parent, t.nodes[b].parent
	}
	return a, int(depthA)
}

// at is the node of the last block above or at a node that has a place below end in its prompts.
func (t *tree) at(node, end uint32) uint32 {
	for node != 0 && t.places[node] >= end {
		node = t.nodes[node].parent
	}
	return node
}

// rebuilt is a tree of some of the nodes, each below the nearest one above it that is there too. It tells, for each
// node of t, the new one that stands at or above it. Sampled tells that the new tree is one of a sample.
func (t *tree) rebuilt(sampled bool, keep func(node uint32) bool) (out *tree, became []uint32) {
	out, became = newTree(), make([]uint32, len(t.nodes))
	out.lost = t.lost
	if sampled {
		out.reserve(len(t.nodes) / 2)
	}
	chained := t.aliases == 0 // then no two nodes become one
	var depth []uint32
	if sampled {
		out.places = make([]uint32, 1, 1<<10)
		if t.places == nil {
			depth = make([]uint32, len(t.nodes))
		}
	}
	for k := 1; k < len(t.nodes); k++ {
		n, place := t.nodes[k], uint32(0)
		if t.places != nil {
			place = t.places[k]
		} else if sampled {
			depth[k] = depth[n.parent] + 1
			place = depth[k] - 1
		}
		if became[k] = became[n.parent]; keep(uint32(k)) {
			out.reserve(1)
			if chained {
				became[k] = out.grow(became[n.parent], n.id, place)
			} else {
				became[k] = out.step(became[n.parent], n.id, place)
			}
		}
	}
	return out, became
}

// depths are the blocks that lie at and above each node.
func (t *tree) depths() []int32 {
	out := make([]int32, len(t.nodes))
	for k := 1; k < len(out); k++ {
		out[k] = out[t.nodes[k].parent] + 1
	}
	return out
}
