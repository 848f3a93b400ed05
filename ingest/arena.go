package ingest

import "sync"

// chunkBytes is the size of the pieces of memory that hold the values of batches. Values larger than a quarter of
// it get memory of their own, which is not kept.
const chunkBytes = 1 << 20

// maxFreeChunks is how many pieces wait for use; what is beyond is left to the garbage collector.
const maxFreeChunks = 64

// chunkPool keeps pieces of memory for use again: a log of small records would otherwise leave as many bytes to
// the garbage collector as it has.
type chunkPool struct {
	mu   sync.Mutex
	free [][]byte
}

func (p *chunkPool) get() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return make([]byte, 0, chunkBytes)
	}
	chunk := p.free[n-1]
	p.free = p.free[:n-1]
	return chunk
}

// put takes chunks back, without the text that they hold.
func (p *chunkPool) put(chunks [][]byte) {
	for i := range chunks {
		clear(chunks[i])
		chunks[i] = chunks[i][:0]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, chunks[:min(len(chunks), maxFreeChunks-len(p.free))]...)
}

// arena holds the values of one batch.
type arena struct {
	pool   *chunkPool
	chunks [][]byte // the last one has room
}

// take returns room for a value of n bytes.
func (a *arena) take(n int) []byte {
	if n > chunkBytes/4 {
		return make([]byte, n)
	}
	last := len(a.chunks) - 1
	if last < 0 || len(a.chunks[last])+n > chunkBytes {
		a.chunks = append(a.chunks, a.pool.get())
		last++
	}
	from := len(a.chunks[last])
	a.chunks[last] = a.chunks[last][:from+n]
	return a.chunks[last][from : from+n : from+n]
}

// free gives the memory back; nobody may hold a value any more.
func (a *arena) free() {
	a.pool.put(a.chunks)
	a.chunks = nil
}
