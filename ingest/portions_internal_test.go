package ingest

import (
	"testing"
)

// wire answers a fetch of ask bytes from a log whose batches take batch bytes there and inflate times as much.
func wire(ask, batch, inflate int) *Batch {
	n := max(1, ask/batch)
	b := &Batch{}
	for range n {
		b.Records = append(b.Records, Record{Size: int64(batch * inflate)})
	}
	return b
}

// What is asked for settles where an answer is neither more than a portion, if its batches allow that, nor much less.
func TestPortionsSettle(t *testing.T) {
	for _, batch := range []int{500, 16 << 10, 400 << 10, 32 << 20} {
		for _, inflate := range []int{1, 3, 12, 200} {
			s := portions{bytes: portionBytes}
			got := int64(0)
			for range 30 {
				ask := s.next(1, portionBytes)
				b := wire(ask, batch, inflate)
				s.learn(1, ask, b.size())
				got = 0
				for _, r := range b.Records {
					got += r.Size
				}
			}
			least := max(smallestPortion, batch) * inflate // one batch, or the least that is asked for
			if int(got) > max(portionBytes, least) || int(got) < min(portionBytes/4, batch*inflate) {
				t.Errorf("batches of %d bytes that inflate %d times: %d bytes at a time", batch, inflate, got)
			}
		}
	}
}

// A log that has little to give is not asked for more and more.
func TestPortionsOfAQuietLog(t *testing.T) {
	s := portions{bytes: portionBytes}
	for range 30 {
		ask := s.next(0, portionBytes)
		s.learn(0, ask, wire(1000, 1000, 1).size())
	}
	if ask := s.next(0, portionBytes); ask != firstPortion {
		t.Errorf("asked for %d bytes", ask)
	}
	if ask := s.next(0, 7); ask != 7 {
		t.Errorf("asked for %d bytes, beyond the limit", ask)
	}
}

// Many processors have smaller portions, none less than the first.
func TestPortionsOfManyProcessors(t *testing.T) {
	for processors, want := range map[int]int{1: 8 << 20, 2: 8 << 20, 4: 8 << 20, 8: 4 << 20, 16: 2 << 20, 128: 1 << 20} {
		if got := portionFor(processors); got != want {
			t.Errorf("%d processors: %d bytes, want %d", processors, got, want)
		}
	}
}
