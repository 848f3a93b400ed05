package synth

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/rng"
)

// draws is the number of selections of which the best is kept.
const draws = 32

// Keys of the draws that are addressed by counters.
const (
	keyStart = iota + 1
	keySelect
	keyTrim
	keyJitter
	keySample
	keyReplica
)

// selection says which sessions get one copy more than ⌊f⌋.
type selection []bool

// selector chooses sessions so that the number of rows is exact and the mix is kept.
type selector struct {
	*facts
	scale  float64
	seed   uint64
	strata []stratum
	many   int // manyRows, less in tests
	want   int // rows that the selected sessions must have together
	score  *scorer
	bySize map[int][]int32 // sessions by their number of rows
	sizes  []int           // ascending
}

func newSelector(f *facts, scale float64, seed uint64, strata []stratum, score *scorer) *selector {
	n := len(f.at)
	s := &selector{facts: f, scale: scale, seed: seed, strata: strata, score: score, many: manyRows, bySize: map[int][]int32{},
		want: int(math.Round(scale*float64(n))) - int(math.Floor(scale))*n}
	for j := range int32(f.sessions()) {
		s.bySize[f.size(j)] = append(s.bySize[f.size(j)], j)
	}
	s.sizes = slices.Sorted(maps.Keys(s.bySize))
	return s
}

// manyRows is from how many rows on a draw may be good enough: chance evens out there, mostly in the first.
const manyRows = 1_000_000

// enough tells that a selection of a large trace needs no better one: all it uses of the limits, taken together, is
// a seventh of one.
func (s *selector) enough(cost float64) bool { return len(s.at) >= s.many && cost < .02 }

// best draws 32 selections, takes the one with the least cost (of equal ones, the first) and refines it. Of a large
// trace it takes the first that is good enough.
func (s *selector) best(ctx context.Context, threads int) (selection, error) {
	if s.scale == math.Floor(s.scale) {
		return make(selection, s.sessions()), nil
	}
	var cost []float64
	sels := make([]selection, min(threads, draws))
	for len(cost) < draws && !slices.ContainsFunc(cost, s.enough) {
		round := make([]float64, min(len(sels), draws-len(cost)))
		g, stop := errgroup.WithContext(ctx)
		for w := range round {
			g.Go(func() error {
				if sels[w] == nil {
					sels[w] = make(selection, s.sessions())
				}
				s.draw(sels[w], uint64(len(cost)+w))
				round[w] = s.score.cost(sels[w])
				return stop.Err()
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		cost = append(cost, round...)
	}
	if k := slices.IndexFunc(cost, s.enough); k >= 0 {
		cost = cost[:k+1] // those after it were drawn for the sake of other threads
	}
	return s.final(ctx, cost)
}

// finalists is how many of the best draws are refined where the caches of the result must be looked at.
const finalists = 4

// final refines the best draw. For f < 1 it refines the best few, sends what they leave through the caches, and
// takes the best of them: that a block was hit in the source does not tell that it is hit among fewer.
func (s *selector) final(ctx context.Context, cost []float64) (selection, error) {
	order := make([]int, len(cost))
	for d := range order {
		order[d] = d
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cost[a], cost[b]) })
	if s.scale > 1 || s.score.sample == nil || s.score.far {
		order = order[:1]
	}
	var best selection
	least := math.Inf(1)
	for _, d := range order[:min(finalists, len(order))] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sel := make(selection, s.sessions())
		s.draw(sel, uint64(d))
		if !s.score.far {
			s.refine(sel)
		}
		if len(order) == 1 {
			return sel, nil
		}
		if c := s.score.cost(sel) + s.score.cacheCost(sel); c < least {
			best, least = sel, c
		}
	}
	return best, nil
}

// draw selects the fractional part: from each group of consecutive sessions of a stratum an exact number at
// random, the remainder carried to the next group and on to the next stratum of the same size, from a random
// start. So each session comes in with the probability frac(f), however small its stratum. Then it trims.
func (s *selector) draw(sel selection, d uint64) {
	frac := s.scale - math.Floor(s.scale)
	clear(sel)
	carry, size, number := 0.0, -1, uint64(0)
	var shuffled []int32
	missing := s.want
	for _, st := range s.strata {
		if st.size != size {
			size = st.size
			carry = rng.Float(s.seed, keyStart, d, uint64(size)) - .5
		}
		for rest := st.members; len(rest) > 0; {
			group := rest[:min(len(rest), st.group())]
			rest = rest[len(group):]
			exact := float64(len(group))*frac + carry
			k := min(max(int(math.Round(exact)), 0), len(group))
			carry = exact - float64(k)
			// The first k places of a Fisher–Yates shuffle.
			shuffled = append(shuffled[:0], group...)
			key := rng.Hash(s.seed, keySelect, d, number)
			number++
			for i := range k {
				at := i + below(rng.Hash(key, uint64(i)), len(group)-i)
				shuffled[i], shuffled[at] = shuffled[at], shuffled[i]
				sel[shuffled[i]] = true
				missing -= s.size(shuffled[i])
			}
		}
	}
	s.trim(sel, d, missing)
}

// below maps 64 random bits to 0…n−1.
func below(bits uint64, n int) int { return int((bits >> 33) * uint64(n) >> 31) }

// trim flips sessions until the selected ones have the wanted number of rows: singletons where there are
// enough, else the largest that fit, at last a pair of which one goes and one comes. What whole sessions cannot
// reach stays missing.
func (s *selector) trim(sel selection, d uint64, missing int) {
	if missing == 0 {
		return
	}
	largest := min(abs(missing), s.sizes[len(s.sizes)-1])
	if s.flippable(sel, 1, missing < 0) >= abs(missing) {
		largest = 1
	}
	tries := uint64(0)
	for size := largest; size > 0 && missing != 0; {
		if size > abs(missing) {
			size--
			continue
		}
		j, ok := s.find(sel, size, missing < 0, rng.Hash(s.seed, keyTrim, d, tries))
		if !ok {
			size--
			continue
		}
		tries++
		sel[j] = !sel[j]
		missing -= size * sign(missing)
	}
	if missing != 0 {
		s.swap(sel, missing)
	}
}

// flippable counts the sessions of a size that are selected, or not.
func (s *selector) flippable(sel selection, size int, selected bool) (n int) {
	for _, j := range s.bySize[size] {
		if sel[j] == selected {
			n++
		}
	}
	return n
}

// find looks for a session of a size that is selected, or not, at random places first and then one by one.
func (s *selector) find(sel selection, size int, selected bool, key uint64) (j int32, ok bool) {
	const probes = 64
	members := s.bySize[size]
	if len(members) == 0 {
		return 0, false
	}
	at := 0
	for i := range uint64(probes) {
		at = below(rng.Hash(key, i), len(members))
		if j = members[at]; sel[j] == selected {
			return j, true
		}
	}
	for i := range members {
		if j = members[(at+i)%len(members)]; sel[j] == selected {
			return j, true
		}
	}
	return 0, false
}

// swap takes one session in and another out whose sizes differ by what is missing, when there are such two.
func (s *selector) swap(sel selection, missing int) {
	for _, in := range s.sizes {
		out := in - missing
		i := slices.IndexFunc(s.bySize[in], func(j int32) bool { return !sel[j] })
		k := slices.IndexFunc(s.bySize[out], func(j int32) bool { return sel[j] })
		if i >= 0 && k >= 0 {
			sel[s.bySize[in][i]], sel[s.bySize[out][k]] = true, false
			return
		}
	}
}

func abs(x int) int { return x * sign(x) }

func sign(x int) int {
	if x < 0 {
		return -1
	}
	return 1
}
