package audit

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// matcher finds many patterns in one pass: Wu and Manber's search ("A fast algorithm for multi-pattern
// searching", 1994) with blocks of four bytes. It looks at the last block of a window as long as the shortest
// pattern and mostly moves on by several bytes; where the block may end a pattern's start, the patterns that
// begin like the window are compared.
type matcher struct {
	patterns []pattern
	window   int     // length of the shortest pattern, at most maxWindow
	longest  int     // length of the longest pattern
	shift    []uint8 // by hash of a block: how far the window may move
	bits     int     // log2 of len(shift)
	starts   map[uint64][]int32
	keyLen   int
}

type pattern struct {
	text    []byte
	canary  int // from 0
	variant string
}

const (
	blockBytes = 4
	maxWindow  = 64
)

func newMatcher(canaries [][]byte) *matcher {
	most := len(canaries) * 25 // spellings of each, about
	m := &matcher{starts: make(map[uint64][]int32, most), window: maxWindow, patterns: make([]pattern, 0, most)}
	seen := make(map[string]bool, most)
	for i, c := range canaries {
		for _, s := range spellings(c) {
			if len(s.text) < blockBytes+1 || seen[string(s.text)] {
				continue
			}
			seen[string(s.text)] = true
			m.patterns = append(m.patterns, pattern{s.text, i, s.name})
			m.window, m.longest = min(m.window, len(s.text)), max(m.longest, len(s.text))
		}
	}
	m.keyLen = min(m.window, 8)
	places := m.window - blockBytes + 1
	m.bits = min(max(bits.Len(uint(len(m.patterns)*places))+3, 12), 22)
	m.shift = make([]uint8, 1<<m.bits)
	for i := range m.shift {
		m.shift[i] = uint8(places)
	}
	for i, p := range m.patterns {
		for at := range places {
			h := m.hash(p.text[at:])
			m.shift[h] = min(m.shift[h], uint8(places-1-at))
		}
		key := m.key(p.text)
		m.starts[key] = append(m.starts[key], int32(i))
	}
	return m
}

func (m *matcher) hash(b []byte) uint32 {
	return (binary.LittleEndian.Uint32(b) * 0x9E3779B1) >> (32 - m.bits)
}

// key is the start of a window.
func (m *matcher) key(b []byte) (k uint64) {
	if m.keyLen == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	for _, c := range b[:m.keyLen] {
		k = k<<8 | uint64(c)
	}
	return k
}

// find calls emit for each pattern in data that ends after the byte seen.
func (m *matcher) find(data []byte, seen int, emit func(*pattern)) {
	table, at := m.shift, 0
	last := m.window - blockBytes
	for at+m.window <= len(data) {
		if s := table[m.hash(data[at+last:])]; s > 0 {
			at += int(s)
			continue
		}
		for _, i := range m.starts[m.key(data[at:])] {
			p := &m.patterns[i]
			if at+len(p.text) > seen && bytes.HasPrefix(data[at:], p.text) {
				emit(p)
			}
		}
		at++
	}
}
