package ingest

import (
	"bytes"
	"fmt"
	"testing"
	"testing/quick"
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
				s.learn(1, ask, b)
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
		s.learn(0, ask, wire(1000, 1000, 1))
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

// Values of a batch never share memory, whatever their sizes; those of a batch that was freed are cleared.
func TestArenaKeepsValuesApart(t *testing.T) {
	var pool chunkPool
	law := func(sizes []uint32) bool {
		values := arena{pool: &pool}
		var got [][]byte
		for i, n := range sizes {
			v := values.take(int(n % (chunkBytes / 2)))
			if bytes.Count(v, []byte{0}) != len(v) {
				return false // text of an earlier batch
			}
			for j := range v {
				v[j] = byte(i + 1)
			}
			got = append(got, v)
		}
		for i, v := range got {
			if bytes.Count(v, []byte{byte(i + 1)}) != len(v) || len(v) != int(sizes[i]%(chunkBytes/2)) {
				return false
			}
		}
		values.free()
		return len(pool.free) <= maxFreeChunks
	}
	if err := quick.Check(law, &quick.Config{MaxCount: 50}); err != nil {
		t.Error(err)
	}
	values := arena{pool: &pool}
	if v := values.take(0); v == nil {
		t.Error("an empty value is null")
	}
	if a := testing.AllocsPerRun(20, func() {
		for range 2000 {
			values.take(4000)
		}
		values.free()
	}); a > 10 {
		t.Error(fmt.Sprint(a, " allocations for 2,000 values"))
	}
}
