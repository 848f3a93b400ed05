package analyze

import (
	"testing"

	"tailgate/internal/rng"
)

// The first and the last minutes of a run count as much as its middle.
func TestResamplesDrawEveryCellEqually(t *testing.T) {
	const cells, rounds = 30, 20_000
	s := &blocks{perBlock: cellsPerBlock, counts: [2][]int{make([]int, cells), make([]int, cells)}}
	for c := range cells {
		s.counts[0][c], s.counts[1][c] = 1, 2
	}
	r, times, drawn := rng.New(1, "bootstrap"), make([]int32, cells), make([]int, cells)
	for range rounds {
		if n := s.draw(r, times); n != [2]int{cells, 2 * cells} {
			t.Fatalf("a resample of %d cells has %d and %d requests", cells, n[0], n[1])
		}
		for c, n := range times {
			drawn[c] += int(n)
		}
	}
	for c, n := range drawn {
		if n < rounds*97/100 || n > rounds*103/100 {
			t.Errorf("cell %d is drawn %d times in %d resamples", c, n, rounds)
		}
	}
}
