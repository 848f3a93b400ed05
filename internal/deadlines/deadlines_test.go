package deadlines_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tailgate/internal/deadlines"
)

// TestQueue does to a queue and to a plain list the same, at random.
func TestQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var q deadlines.Queue[int]
	entries := make([]deadlines.Entry[int], 50)
	for i := range entries {
		entries[i].Owner = i
	}
	due := map[int]time.Duration{}
	popped := 0
	for range 20_000 {
		i, at := r.IntN(len(entries)), time.Duration(r.IntN(1000))
		switch r.IntN(4) {
		case 0, 1:
			q.Set(&entries[i], at)
			due[i] = at
		case 2:
			q.Drop(&entries[i])
			delete(due, i)
		case 3:
			first, some := q.Next()
			owner, ok := q.Pop(at)
			all := make([]time.Duration, 0, len(due))
			for _, d := range due {
				all = append(all, d)
			}
			slices.Sort(all)
			if some != (len(all) > 0) || some && first != all[0] || ok != (some && first <= at) || ok && due[owner] != first {
				t.Fatalf("next %v %v, by %v popped %v: %d due at %v, of %v", first, some, at, ok, owner, due[owner], all)
			}
			if ok {
				delete(due, owner)
				popped++
			}
		}
	}
	if popped < 1000 {
		t.Errorf("only %d were popped", popped)
	}
}
