package trace

import (
	"testing"

	"tailgate/internal/rng"
)

// The tables give what maps give, on ids that are dense, random, extreme and strided, and keep to their size.
func TestIDTablesAreMaps(t *testing.T) {
	r := rng.New(1, "ids")
	kinds := map[string]func(i int) int64{
		"dense": func(i int) int64 { return int64(i/2) - 5 }, "random": func(int) int64 { return int64(r.Uint64()) },
		"strided": func(i int) int64 { return int64(i%40_000) << 32 }, "few": func(i int) int64 { return int64(i % 7) },
	}
	for name, id := range kinds {
		var table idTable
		var set idSet
		numbers := map[int64]int64{}
		for i := range 200_000 {
			id := id(i)
			want, had := numbers[id]
			if !had {
				want = int64(len(numbers))
				numbers[id] = want
			}
			n, known := table.number(id, want)
			if n != want || known != had || set.add(id) == had {
				t.Fatalf("%s: id %d has number %d (known %v), want %d (%v)", name, id, n, known, want, had)
			}
		}
		if set.n != int64(len(numbers)) {
			t.Errorf("%s: %d ids, want %d", name, set.n, len(numbers))
		}
		places := 0
		for i := range set.parts {
			places += len(set.parts[i].ids)
		}
		if n := len(numbers); n > 10_000 && (places*8 > 14*n || places < n) {
			t.Errorf("%s: %d places for %d ids", name, places, n)
		}
	}
}
