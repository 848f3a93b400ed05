package profile

import (
	"math"
	"slices"
	"testing"

	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/trace"
)

// chats are n requests of conversations that go on from each other: chained ids, most of them used a few times, and some
// blocks that no other request has.
func chats(t *testing.T, seed uint64, n int) *input {
	t.Helper()
	r := rng.New(seed, "chats")
	c := newColumns(0)
	var open [400][]int64
	for i := range n {
		k := int(math.Abs(r.NormFloat64()) * 130)
		k = min(k, len(open)-1)
		ids := open[k]
		if len(ids) > 30 || r.IntN(12) == 0 {
			ids = []int64{int64(k % 7)}
		}
		ids = slices.Clone(ids)
		for range 1 + r.IntN(3) {
			ids = append(ids, int64(rng.Hash(seed, uint64(i), uint64(len(ids)))>>1))
		}
		open[k] = ids
		row := schemas.TraceRow{ScheduledUs: int64(i), InputTokens: int32(16 * len(ids)), HashIDs: ids}
		if err := c.add(&row); err != nil {
			t.Fatal(err)
		}
	}
	c.private = make([]int32, n)
	for i := range c.private {
		c.private[i] = int32(r.IntN(3))
		c.in[i] += 16 * c.private[i]
	}
	c.tree.seal()
	return newInput(c, trace.Meta{BlockSize: 16})
}

// TestSampledHitCurveKeepsItsError: at least nine in ten points of sampled curves are within the error that stands beside
// them, and no point is far off.
func TestSampledHitCurveKeepsItsError(t *testing.T) {
	if testing.Short() {
		t.Skip("replays 25 samples")
	}
	within, points, worst := 0, 0, 0.0
	for seed := range uint64(5) {
		in := chats(t, seed, 60_000)
		g, key := group{total: true}, schemas.ProfileKey{}
		exact := &scratch{limits: hitLimits{exactBlocks: math.MaxInt}}
		different := in.use(g, exact).different()
		want := in.hitCurve(g, key, different, exact)
		for salt := range uint64(5) {
			s := &scratch{limits: hitLimits{exactBlocks: 1, sampleBlocks: 8192}, salt: salt}
			for k, h := range in.hitCurve(g, key, different, s) {
				if *h.SampleRate >= .2 || *want[k].SampleRate != 1 || *want[k].BlockHitError != 0 {
					t.Fatalf("rates %v and %v", *h.SampleRate, *want[k].SampleRate)
				}
				off := math.Abs(*h.BlockHit - *want[k].BlockHit)
				if points++; off <= *h.BlockHitError {
					within++
				}
				worst = max(worst, off, math.Abs(*h.TokenHit-*want[k].TokenHit), math.Abs(*h.RequestMeanHit-*want[k].RequestMeanHit))
			}
		}
	}
	t.Logf("%d of %d points within their error, the worst %.4f off", within, points, worst)
	if 10*within < 9*points || worst > .03 {
		t.Errorf("%d of %d points are within their error, the worst is %.4f off", within, points, worst)
	}
}

// TestRunsOfPrivateBlocksAreBlocks: blocks that only one request has push others out as if each had an id.
func TestRunsOfPrivateBlocksAreBlocks(t *testing.T) {
	r := rng.New(3, "private")
	for range 40 {
		plain, runs := newLRUStack(1<<weightBits, 0), newLRUStack(1<<weightBits, 5)
		fresh, numbers := uint32(0), map[int]uint32{}
		for range 3000 {
			if r.IntN(3) == 0 {
				n := 1 + r.IntN(40)
				for range n {
					plain.touch(fresh)
					fresh++
				}
				runs.pass(int64(n))
				continue
			}
			k := r.IntN(60)
			if _, ok := numbers[k]; !ok {
				numbers[k] = fresh
				fresh++
			}
			own := slices.Index(order(numbers), numbers[k])
			if a, b := plain.touch(numbers[k]), runs.touch(uint32(own)); a != b {
				t.Fatalf("distance %d with ids, %d with runs", a, b)
			}
		}
	}
}

// order lists the numbers that blocks were given, in the order in which they were.
func order(numbers map[int]uint32) []uint32 {
	var out []uint32
	for _, n := range numbers {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// TestCellsStandForTheirGaps: putting gaps of about the same length together hardly moves a fit.
func TestCellsStandForTheirGaps(t *testing.T) {
	r := rng.New(4, "cells")
	for name, draw := range map[string]func() float64{
		"exponential": r.ExpFloat64,
		"lognormal":   func() float64 { return math.Exp(1.3 * r.NormFloat64()) },
		"weibull":     func() float64 { return math.Pow(r.ExpFloat64(), 2) },
	} {
		gaps := make([]float64, 12_000)
		for i := range gaps {
			gaps[i] = math.Round(draw()*1e5) / 1e6
		}
		half := 5e-7
		together := fitClock(ClockRaw, sampleOf(slices.Clone(gaps), half), schemas.ProfileKey{})
		exact := &sample{half: half, n: float64(len(gaps))}
		other := sampleOf(slices.Clone(gaps), half)
		exact.mean, exact.variance = other.mean, other.variance
		slices.Sort(gaps)
		for _, g := range gaps {
			exact.add(g, 1)
		}
		apart := fitClock(ClockRaw, exact.ready(), schemas.ProfileKey{})
		if len(other.x) > maxValues || len(exact.x) < maxValues || len(apart) != len(together) {
			t.Fatalf("%s: %d cells, %d values, %d and %d fits", name, len(other.x), len(exact.x), len(together), len(apart))
		}
		for i := range apart {
			a, b := apart[i], together[i]
			if a.Selected != b.Selected || math.Abs(*a.P1/(*b.P1)-1) > 1e-3 || math.Abs(*a.KS-*b.KS) > 5e-4 {
				t.Errorf("%s: %s: p1 %v and %v, KS %v and %v", name, a.Dist, *a.P1, *b.P1, *a.KS, *b.KS)
			}
		}
	}
}

// TestFullTreeCounts: blocks that have no place are counted as blocks that no other request has.
func TestFullTreeCounts(t *testing.T) {
	tr := newTree()
	tr.limit = 4
	for _, c := range []struct {
		ids   []int64
		depth int
		lost  int64
	}{{[]int64{1, 2, 3}, 3, 0}, {[]int64{1, 2, 9, 10, 11}, 3, 2}, {[]int64{1, 2, 3}, 3, 2}, {[]int64{7}, 0, 3}, {[]int64{1, 7, 8}, 1, 5}} {
		if _, depth := tr.add(c.ids, nil); depth != c.depth || tr.lost != c.lost {
			t.Errorf("%v: depth %d, %d lost, want %d and %d", c.ids, depth, tr.lost, c.depth, c.lost)
		}
	}
}

func TestBinsHaveTheirPlaces(t *testing.T) {
	for _, v := range []int64{0, 1, 7, 8, 9, 15, 16, 31, 32, 33, 1000, 1 << 20, 1<<40 + 12345, 1<<55 + 1} {
		if lo, hi := logOctaves.bin(logOctaves.place(v)); v < lo || v >= hi || v >= 8 && (hi-lo)*4 > lo {
			t.Errorf("%d is in [%d, %d)", v, lo, hi)
		}
		if lo, hi := latencyOctaves.bin(latencyOctaves.place(v)); v < lo || v >= hi || v >= 32 && (hi-lo)*16 > lo {
			t.Errorf("%d is in [%d, %d)", v, lo, hi)
		}
		if v < math.MaxInt32 {
			if lo, hi := jointBorders(jointPlace(int32(v))); int32(v) < lo || int32(v) >= hi {
				t.Errorf("%d is in [%d, %d)", v, lo, hi)
			}
		}
	}
}

func TestSortIntsSorts(t *testing.T) {
	r := rng.New(5, "sort")
	for _, most := range []int64{2, 1 << 11, 1 << 30, 1 << 62} {
		x := make([]int64, 5000)
		for i := range x {
			x[i] = r.Int64N(most)
		}
		want := slices.Sorted(slices.Values(x))
		if sortInts(x); !slices.Equal(x, want) {
			t.Errorf("up to %d: not sorted", most)
		}
	}
}
