package analyze

import (
	"iter"

	"tailgate/schemas"
)

// ExpectedPrefix tells for each row of a trace, in order of its schedule, how many leading tokens of its prompt an endless cache
// of whole blocks would hold when it comes. It is false for rows whose prompt is not known, and for all where the block size
// is not.
func ExpectedPrefix(rows iter.Seq[*schemas.TraceRow], blockSize int) func(row int64) (tokens int32, ok bool) {
	expected := map[int64]int32{}
	seen := map[int64]struct{}{}
	for r := range rows {
		if r.HashIDs == nil || blockSize <= 0 {
			continue
		}
		whole := min(len(r.HashIDs), int(r.InputTokens)/blockSize)
		n := 0
		for n < whole {
			if _, ok := seen[r.HashIDs[n]]; !ok {
				break
			}
			n++
		}
		for _, id := range r.HashIDs[n:whole] {
			seen[id] = struct{}{}
		}
		expected[r.Row] = int32(n * blockSize)
	}
	return func(row int64) (int32, bool) {
		n, ok := expected[row]
		return n, ok
	}
}
