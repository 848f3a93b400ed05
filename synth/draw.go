package synth

import (
	"cmp"
	"context"
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
)

// selection says which sessions get one copy more than ⌊f⌋.
type selection []bool

// selector chooses sessions so that the number of rows is exact and the mix is kept.
type selector struct {
	f        float64
	seed     uint64
	sessions []session
	strata   []stratum
	want     int // rows that the selected sessions must have together
	score    *scorer
}

// best draws 32 selections, takes the one with the least cost (of equal ones, the first) and refines it.
func (s *selector) best(ctx context.Context, threads int) (selection, error) {
	if s.f == math.Floor(s.f) {
		return make(selection, len(s.sessions)), nil
	}
	drawn, cost := make([]selection, draws), make([]float64, draws)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	for d := range draws {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			drawn[d] = s.draw(uint64(d))
			cost[d] = s.score.cost(drawn[d])
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	k := 0
	for d := range cost {
		if cost[d] < cost[k] {
			k = d
		}
	}
	s.refine(drawn[k])
	return drawn[k], nil
}

// draw selects the fractional part: from each group of consecutive sessions of a stratum an exact number at
// random, the remainder carried to the next group and on to the next stratum of the same size, from a random
// start. So each session comes in with the probability frac(f), however small its stratum. Then it trims.
func (s *selector) draw(d uint64) selection {
	frac := s.f - math.Floor(s.f)
	sel := make(selection, len(s.sessions))
	carry, size := 0.0, -1
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
			for _, j := range s.shuffled(group, keySelect, d)[:k] {
				sel[j] = true
			}
		}
	}
	s.trim(sel, d)
	return sel
}

// shuffled returns the sessions in an order drawn by their own numbers.
func (s *selector) shuffled(members []int32, key, d uint64) []int32 {
	out := slices.Clone(members)
	slices.SortFunc(out, func(a, b int32) int {
		return cmp.Compare(rng.Hash(s.seed, key, d, uint64(a)), rng.Hash(s.seed, key, d, uint64(b)))
	})
	return out
}

// trim flips sessions until the selected ones have the wanted number of rows: singletons where there are
// enough, else the largest that fit, at last a pair of which one goes and one comes. What whole sessions cannot
// reach stays missing.
func (s *selector) trim(sel selection, d uint64) {
	missing := s.want
	for j := range sel {
		if sel[j] {
			missing -= s.sessions[j].size()
		}
	}
	if missing == 0 {
		return
	}
	for _, j := range s.trimmable(sel, d, missing) {
		if n := s.sessions[j].size(); n <= abs(missing) {
			sel[j] = !sel[j]
			missing -= n * sign(missing)
		}
	}
	if missing != 0 {
		s.swap(sel, missing)
	}
}

// trimmable lists the sessions that may be flipped, in the order of trial.
func (s *selector) trimmable(sel selection, d uint64, missing int) []int32 {
	var single, all []int32
	for j := range s.sessions {
		if sel[j] == (missing < 0) {
			all = append(all, int32(j))
			if s.sessions[j].size() == 1 {
				single = append(single, int32(j))
			}
		}
	}
	if len(single) >= abs(missing) {
		return s.shuffled(single, keyTrim, d)
	}
	all = s.shuffled(all, keyTrim, d)
	slices.SortStableFunc(all, func(a, b int32) int { return cmp.Compare(s.sessions[b].size(), s.sessions[a].size()) })
	return all
}

// swap takes one session in and another out whose sizes differ by what is missing, when there are such two.
func (s *selector) swap(sel selection, missing int) {
	out := map[int]int{} // size → a selected session
	for j := range sel {
		if sel[j] {
			out[s.sessions[j].size()] = j
		}
	}
	for j := range sel {
		if sel[j] {
			continue
		}
		if k, ok := out[s.sessions[j].size()-missing]; ok {
			sel[j], sel[k] = true, false
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
