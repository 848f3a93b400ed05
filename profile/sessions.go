package profile

import (
	"slices"

	"tailgate/schemas"
)

// turns counts the sessions that start in g by their number of requests. A session belongs to the tenant and
// class of its first request, and all its requests count.
func turns(g group, key schemas.ProfileKey) []schemas.ProfileSession {
	counts := map[int32]int64{}
	for _, rows := range g.sessions {
		counts[int32(len(rows))]++
	}
	sizes := make([]int32, 0, len(counts))
	for s := range counts {
		sizes = append(sizes, s)
	}
	slices.Sort(sizes)
	out := make([]schemas.ProfileSession, len(sizes))
	for i, s := range sizes {
		out[i] = schemas.ProfileSession{ProfileKey: key, Turns: s, Sessions: counts[s]}
	}
	return out
}
