package bpe

import (
	"math"
	"slices"
	"sync"
	"testing"
)

// The reference that the fast encoder is held to: byte-pair encoding by its definition, over maps. The splitter
// is the encoding's own; the oracles hold that one.
type naive struct {
	enc   *Encoding
	ranks map[string]uint32
	pairs map[[2]uint32]uint32 // nil: the id of the joint is the rank
}

func newNaive(e *Encoding, merges [][2]uint32) *naive {
	n := &naive{enc: e, ranks: map[string]uint32{}}
	for id := range uint32(len(e.vocab.offsets) - 1) {
		if t := e.vocab.token(id); len(t) > 0 {
			n.ranks[string(t)] = id
		}
	}
	if merges != nil {
		n.pairs = map[[2]uint32]uint32{}
		for rank, m := range merges {
			if _, ok := n.pairs[m]; !ok {
				n.pairs[m] = uint32(rank)
			}
		}
	}
	return n
}

func (n *naive) encode(text []byte) (ids []uint32) {
	text = []byte(string([]rune(string(text)))) // callers give well-formed text
	for pos := 0; pos < len(text); {
		end := n.enc.split(text, pos)
		ids = append(ids, n.piece(text[pos:end])...)
		pos = end
	}
	return ids
}

func (n *naive) piece(piece []byte) []uint32 {
	if id, ok := n.ranks[string(piece)]; ok && n.enc.whole {
		return []uint32{id}
	}
	var parts []string
	for i := range piece {
		parts = append(parts, string(piece[i:i+1]))
	}
	for {
		best, at := none, -1
		for i := range len(parts) - 1 {
			rank, ok := n.ranks[parts[i]+parts[i+1]]
			if ok && n.pairs != nil {
				rank, ok = n.pairs[[2]uint32{n.ranks[parts[i]], n.ranks[parts[i+1]]}]
			}
			if ok && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
	ids := make([]uint32, len(parts))
	for i, p := range parts {
		ids[i] = n.ranks[p]
	}
	return ids
}

// Loaded once for all tests: with their tables made, and such as never make them.
var (
	loadO200k  = sync.OnceValues(withTables(O200k))
	loadCl100k = sync.OnceValues(withTables(Cl100k))
	encodings  = map[string]func() (*Encoding, error){"o200k": loadO200k, "cl100k": loadCl100k}
	withouts   = map[string]func() (*Encoding, error){"o200k, no tables": sync.OnceValues(without(O200k)), "cl100k, no tables": sync.OnceValues(without(Cl100k))}
)

func withTables(load func() (*Encoding, error)) func() (*Encoding, error) {
	return func() (*Encoding, error) {
		e, err := load()
		if err == nil {
			e.tables()
		}
		return e, err
	}
}

func without(load func() (*Encoding, error)) func() (*Encoding, error) {
	return func() (*Encoding, error) {
		e, err := load()
		if err == nil {
			e.early = math.MaxInt
		}
		return e, err
	}
}

// eachEncoding does a test with the embedded vocabularies in both their states.
func eachEncoding(t *testing.T, do func(t *testing.T, e *Encoding)) {
	eachWithTables(t, do)
	for name, load := range withouts {
		t.Run(name, func(t *testing.T) {
			e, err := load()
			if err != nil {
				t.Fatal(err)
			}
			if do(t, e); e.made.Load() != nil {
				t.Error("tables were made")
			}
		})
	}
}

func eachWithTables(t *testing.T, do func(t *testing.T, e *Encoding)) {
	for name, load := range encodings {
		t.Run(name, func(t *testing.T) {
			e, err := load()
			if err != nil {
				t.Fatal(err)
			}
			do(t, e)
		})
	}
}
