package ingest

import "sync"

// portionBytes is how many bytes of records one fetch should bring, as they are after the broker's batches were
// decompressed. What is asked for is what they take on the wire, a tenth of that where they compress well.
// All processors together hold no more than four times the largest portion, so that many have smaller ones.
const portionBytes = 8 << 20

// portionFor is how much one fetch should bring on a machine with so many processors.
func portionFor(processors int) int {
	return max(firstPortion, min(portionBytes, 4*portionBytes/processors))
}

// Bounds of what is asked for at a time. A broker sends one batch at least, whatever was asked for.
const (
	firstPortion    = 1 << 20
	smallestPortion = 64 << 10
)

// portions learns by partition how much to ask for.
type portions struct {
	bytes int // of records that one should bring
	mu    sync.Mutex
	ask   map[int32]int
}

// next is how much to ask partition p for, at most limit.
func (s *portions) next(p int32, limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	ask, ok := s.ask[p]
	if !ok {
		ask = firstPortion
	}
	return min(ask, limit)
}

// learn notes what an answer brought: too much is halved as often as needed at once, too little is doubled, unless
// the answer was smaller than it might have been.
func (s *portions) learn(p int32, asked int, brought int64) {
	got, ask := int(brought), asked
	for got > s.bytes && ask > smallestPortion {
		got, ask = got/2, ask/2
	}
	if ask == asked && got >= asked/2 && got <= s.bytes/2 {
		ask *= 2
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ask == nil {
		s.ask = map[int32]int{}
	}
	s.ask[p] = ask
}
