package sim

// kvCache is the paged KV memory of one replica with its prefix cache, after vLLM's block manager (Kwon et al.,
// "Efficient Memory Management for Large Language Model Serving with PagedAttention", SOSP 2023, and the V1
// automatic prefix caching design). A node is one cached prompt block under its chain key, which names the
// block and all that stands before it. Referenced nodes stay; unreferenced ones are evicted, the least recently
// used first. A request releases its last blocks first, so a block never outlives the one it follows.
//
// Every page is free, idle (of an unreferenced node), or held (of a referenced node or private to a request).
type kvCache struct {
	page  int32 // tokens of a page
	total int64 // pages
	free  int64
	idle  int64

	index map[uint64]int32
	nodes []kvNode // nodes[0] is the head of the LRU ring: next is the first to evict
	spare []int32
}

type kvNode struct {
	key        uint64
	prev, next int32
	refs       int32
	pages      int32
}

func newKVCache(tokens int64, page int) *kvCache {
	total := tokens / int64(page)
	return &kvCache{page: int32(page), total: total, free: total, index: map[uint64]int32{}, nodes: make([]kvNode, 1)}
}

// pagesOf returns the pages of n tokens.
func (k *kvCache) pagesOf(n int32) int32 { return (n + k.page - 1) / k.page }

// pagesFor returns the pages of the first n tokens of r: whole shared blocks are paged apart.
func (k *kvCache) pagesFor(r *request, n int32) int64 {
	whole := r.wholeBlocks(n)
	return int64(whole)*int64(k.pagesOf(r.block)) + int64(k.pagesOf(n-whole*r.block))
}

// wholeBlocks returns how many of r's keyed blocks lie within its first n tokens.
func (r *request) wholeBlocks(n int32) int32 {
	if len(r.keys) == 0 {
		return 0
	}
	return min(n/r.block, int32(len(r.keys)))
}

// available returns the pages that can be had without taking one from a request.
func (k *kvCache) available() int64 { return k.free + k.idle }

// usage returns the held share of all pages.
func (k *kvCache) usage() float64 { return float64(k.total-k.free-k.idle) / float64(k.total) }

// match appends to found the nodes of the longest cached run of leading keys, and returns with it how many of
// their pages are idle.
func (k *kvCache) match(keys []uint64, found []int32) ([]int32, int64) {
	var idle int64
	for _, key := range keys {
		i, ok := k.index[key]
		if !ok {
			break
		}
		if k.nodes[i].refs == 0 {
			idle += int64(k.nodes[i].pages)
		}
		found = append(found, i)
	}
	return found, idle
}

// hold adds a reference to node i.
func (k *kvCache) hold(i int32) {
	n := &k.nodes[i]
	if n.refs == 0 {
		k.unlink(i)
		k.idle -= int64(n.pages)
	}
	n.refs++
}

// grow gives r the pages for its first n tokens and puts the prompt blocks that become whole into the cache.
// It returns false, with nothing changed, when there are not enough pages.
func (k *kvCache) grow(r *request, n int32) bool {
	held := int32(len(r.nodes))
	if held == int32(len(r.keys)) && n-held*r.block <= r.pages*k.page {
		return true
	}
	whole := r.wholeBlocks(n)
	perBlock := k.pagesOf(r.block)
	want := (whole-held)*perBlock + k.pagesOf(n-whole*r.block)
	if !k.take(int64(want - r.pages)) {
		return false
	}
	r.pages = want - (whole-held)*perBlock
	for _, key := range r.keys[held:whole] {
		r.nodes = append(r.nodes, k.share(key, perBlock))
	}
	return true
}

// share turns taken pages into a node with one reference. A block that another request has put there meanwhile
// is kept once, and the pages are given back.
func (k *kvCache) share(key uint64, pages int32) int32 {
	if i, ok := k.index[key]; ok {
		k.hold(i)
		k.free += int64(pages)
		return i
	}
	var i int32
	if n := len(k.spare); n > 0 {
		i, k.spare = k.spare[n-1], k.spare[:n-1]
	} else {
		i = int32(len(k.nodes))
		k.nodes = append(k.nodes, kvNode{})
	}
	k.nodes[i] = kvNode{key: key, refs: 1, pages: pages}
	k.index[key] = i
	return i
}

// take turns n pages from free to held, evicting as needed.
func (k *kvCache) take(n int64) bool {
	if n > k.available() {
		return false
	}
	for k.free < n {
		k.evict()
	}
	k.free -= n
	return true
}

func (k *kvCache) evict() {
	i := k.nodes[0].next
	n := &k.nodes[i]
	k.unlink(i)
	delete(k.index, n.key)
	k.idle -= int64(n.pages)
	k.free += int64(n.pages)
	k.spare = append(k.spare, i)
}

// evictIdle drops every unreferenced node and tells whether none is left.
func (k *kvCache) evictIdle() bool {
	for k.idle > 0 {
		k.evict()
	}
	return len(k.index) == 0
}

// release gives back all that r holds; its prompt blocks stay cached.
func (k *kvCache) release(r *request) {
	k.free += int64(r.pages)
	r.pages = 0
	for j := len(r.nodes) - 1; j >= 0; j-- {
		i := r.nodes[j]
		n := &k.nodes[i]
		if n.refs--; n.refs == 0 {
			k.idle += int64(n.pages)
			last := k.nodes[0].prev
			n.prev, n.next = last, 0
			k.nodes[last].next = i
			k.nodes[0].prev = i
		}
	}
	r.nodes = r.nodes[:0]
}

func (k *kvCache) unlink(i int32) {
	n := &k.nodes[i]
	k.nodes[n.prev].next = n.next
	k.nodes[n.next].prev = n.prev
}
