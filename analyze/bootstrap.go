package analyze

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
)

// checkResampling reports every fault of the options that each bootstrap has; 0 stands for its default.
func checkResampling(confidence float64, resamples int) error {
	var errs []error
	if !(confidence >= 0 && confidence < 1) {
		errs = append(errs, fmt.Errorf("confidence must lie between 0 and 1, not %v", confidence))
	}
	if resamples < 0 {
		errs = append(errs, fmt.Errorf("resamples must be >= 0, not %d", resamples))
	}
	return errors.Join(errs...)
}

// blocks is a paired bootstrap over time: the schedule is cut in short cells, blocks of consecutive cells are drawn with
// replacement (Künsch 1989) from a circle (Politis and Romano 1992), so that the ends of a run are drawn as often as its
// middle, and both runs take the same ones, so that what both have in common cancels.
type blocks struct {
	a, b     []sorted
	counts   [2][]int // requests of each cell, of a and of b
	perBlock int      // cells
	rounds   int
	seed     uint64
}

// sorted is one value with its cell.
type sorted struct {
	x    float64
	cell int32
}

// cellsPerBlock is how finely the starts of blocks are laid.
const cellsPerBlock = 6

// bootWork bounds the values that are looked at: very large runs are resampled less often.
const (
	bootRounds   = 2000
	bootLeast    = 200
	bootWork     = 4e8
	leastOfCells = 2 * cellsPerBlock
)

// newBlocks takes the values of two runs with their times, µs on one clock; neither is empty. The times are the same ones
// where the runs sent the same requests. resamples 0 = 2000, fewer for very many values.
func newBlocks(a []float64, atA []int64, b []float64, atB []int64, resamples int, seed uint64) *blocks {
	first, last := min(slices.Min(atA), slices.Min(atB)), max(slices.Max(atA), slices.Max(atB))
	span := time.Duration(last-first+1) * time.Microsecond
	cell := (blockLength(tauOfSlow(a, b), span, len(a)) / cellsPerBlock).Microseconds()
	s := &blocks{perBlock: cellsPerBlock, seed: seed}
	put := func(x []float64, at []int64, counts *[]int) []sorted {
		*counts = make([]int, int((last-first)/cell)+1)
		out := make([]sorted, len(x))
		for i := range x {
			c := int32((at[i] - first) / cell)
			out[i] = sorted{x[i], c}
			(*counts)[c]++
		}
		return out
	}
	s.a, s.b = put(a, atA, &s.counts[0]), put(b, atB, &s.counts[1])
	for _, list := range [][]sorted{s.a, s.b} {
		slices.SortFunc(list, func(x, y sorted) int {
			if x.x < y.x {
				return -1
			}
			if x.x > y.x {
				return 1
			}
			return int(x.cell - y.cell)
		})
	}
	if s.rounds = resamples; s.rounds == 0 {
		s.rounds = max(bootLeast, min(bootRounds, int(bootWork/float64(len(a)+len(b)))))
	}
	return s
}

// tauOfSlow is the larger autocorrelation time of being above the 90 % quantile in either run.
func tauOfSlow(a, b []float64) float64 {
	tau := 1.0
	for _, x := range [][]float64{a, b} {
		order := slices.Clone(x)
		slices.Sort(order)
		limit := order[stats.Rank(len(order), .9)-1]
		var above stats.Bits
		for _, v := range x {
			above.Append(v > limit)
		}
		tau = max(tau, above.Tau())
	}
	return tau
}

// quantiles are the plain ones of both runs.
func (s *blocks) quantiles(q float64) (base, value float64) {
	return s.a[stats.Rank(len(s.a), q)-1].x, s.b[stats.Rank(len(s.b), q)-1].x
}

// interval is the percentile interval of value/base − 1, and twice the smaller share of resamples on one side of 0. It is
// false where the schedule has too few blocks, or failures reach the percentile.
func (s *blocks) interval(q, confidence float64) (lower, upper, p float64, ok bool) {
	cells := len(s.counts[0])
	if cells < leastOfCells {
		return 0, 0, 0, false
	}
	ratios := make([]float64, 0, s.rounds)
	r := rng.New(s.seed, "bootstrap")
	times := make([]int32, cells)
	up, down := 0, 0
	for range s.rounds {
		n := s.draw(r, times)
		if n[0] == 0 || n[1] == 0 {
			continue
		}
		base, value := weighted(s.a, times, stats.Rank(n[0], q)), weighted(s.b, times, stats.Rank(n[1], q))
		if math.IsInf(base, 1) || math.IsInf(value, 1) {
			return 0, 0, 0, false
		}
		ratio := value/base - 1
		ratios = append(ratios, ratio)
		if ratio >= 0 {
			up++
		}
		if ratio <= 0 {
			down++
		}
	}
	if len(ratios) == 0 {
		return 0, 0, 0, false
	}
	sort.Float64s(ratios)
	at := func(p float64) float64 { return ratios[min(max(int(p*float64(len(ratios))), 0), len(ratios)-1)] }
	tail := (1 - confidence) / 2
	// One more on each side keeps the p value above what so many resamples can tell.
	p = min(1, 2*float64(min(up, down)+1)/float64(len(ratios)+1))
	return at(tail), at(1 - tail), p, true
}

// draw counts how often each cell is in one resample, and the requests of both runs in it.
func (s *blocks) draw(r *rand.Rand, times []int32) (n [2]int) {
	clear(times)
	for range (len(times) + s.perBlock - 1) / s.perBlock {
		start := r.IntN(len(times))
		for k := range s.perBlock {
			c := (start + k) % len(times)
			times[c]++
			n[0], n[1] = n[0]+s.counts[0][c], n[1]+s.counts[1][c]
		}
	}
	return n
}

// weighted is the k-th smallest value when the values of each cell are there so many times.
func weighted(list []sorted, times []int32, k int) float64 {
	seen := 0
	for i := range list {
		if seen += int(times[list[i].cell]); seen >= k {
			return list[i].x
		}
	}
	return math.Inf(1)
}

// blockLength is the time of a block of the bootstrap: at least a minute, and ten times the time over which requests that
// are slow together follow each other.
func blockLength(tau float64, span time.Duration, n int) time.Duration {
	if n == 0 {
		return time.Minute
	}
	return max(time.Minute, time.Duration(10*tau*float64(span)/float64(n)))
}
