package synth

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"tailgate/schemas"
)

const minuteUs = 60_000_000

// Sums that a selection should keep in proportion.
const (
	sumIn = iota
	sumOut
	sumBlocks
	sumHits // blocks that the source hits at each probed capacity
	nSums   = sumHits + len(probeParts)
)

// sums are whole numbers, so that they do not depend on the order of adding.
type sums [nSums]int64

// tally is what a trace adds up to.
type tally struct {
	sums    sums
	rows    int64
	minutes []int32 // rows per minute
	ranks   []int32 // rows per different input length
}

// load is what one row adds to a tally, side by side for the sake of the processor's cache.
type load struct {
	in, out, blocks int32
	minute          int32 // of the row's next copy
	rank            int32 // of its input length among the different ones
	needed          [len(probeParts)]uint16
}

// scorer tells how far a selection is from s.scale times the source, from counts alone.
type scorer struct {
	*facts
	scale  float64
	far    bool // copies do not keep the shape of the day
	source tally
	base   tally        // of the ⌊f⌋ copies that every session gets
	load   []load       // what each row adds
	hits   int64        // blocks that a counted hit stands for
	sample *blockSample // of the source; nil = no blocks
}

func newScorer(f *facts, scale float64, move mover, sample *blockSample) *scorer {
	s := &scorer{facts: f, scale: scale, far: move.far, load: make([]load, len(f.at)), hits: 1 << sample.shift}
	if f.needed != nil {
		s.sample = sample
	}
	for i := range s.load {
		s.load[i] = load{in: f.in[i], out: max(f.out[i], 0), blocks: f.blocks[i]}
		if f.needed != nil {
			s.load[i].needed = f.needed[i]
		}
	}
	minutes := int(f.lengthUs/minuteUs) + 1
	s.source = tally{rows: int64(len(f.at)), minutes: make([]int32, minutes), ranks: s.rankInputs()}
	s.base = tally{minutes: make([]int32, minutes), ranks: slices.Clone(s.source.ranks)}
	whole := int32(math.Floor(scale))
	shifts := make([]int64, whole+1)
	for j := range int32(f.sessions()) {
		for q := range shifts {
			shifts[q] = move.shift(j, int32(q))
		}
		for _, i := range f.rows(j) {
			s.addRow(&s.source.sums, i, 1)
			s.source.minutes[f.at[i]/minuteUs]++
			for _, d := range shifts[:whole] {
				s.base.minutes[(f.at[i]+d)/minuteUs]++
			}
			s.load[i].minute = int32((f.at[i] + shifts[whole]) / minuteUs)
		}
	}
	s.base.rows = int64(whole) * s.source.rows
	for k := range s.base.sums {
		s.base.sums[k] = int64(whole) * s.source.sums[k]
	}
	for i := range s.base.ranks {
		s.base.ranks[i] *= whole
	}
	return s
}

// addRow adds a row to sums, or with by = -1 takes it away.
func (s *scorer) addRow(to *sums, i int32, by int64) {
	l := &s.load[i]
	to[sumIn] += by * int64(l.in)
	to[sumOut] += by * int64(l.out)
	to[sumBlocks] += by * int64(l.blocks)
	for k, h := range l.needed {
		to[sumHits+k] += by * s.hits * int64(h)
	}
}

// rankInputs numbers the different input lengths and counts their rows.
func (s *scorer) rankInputs() (counts []int32) {
	var seen lengths
	for _, tokens := range s.in {
		seen.add(tokens)
	}
	sorted := seen.sorted()
	small, large := make([]int32, len(seen.small)), map[int32]int32{}
	for k, c := range sorted {
		counts = append(counts, int32(c.n))
		if c.tokens >= 0 && int(c.tokens) < len(small) {
			small[c.tokens] = int32(k)
		} else {
			large[c.tokens] = int32(k)
		}
	}
	for i, tokens := range s.in {
		if tokens >= 0 && int(tokens) < len(small) {
			s.load[i].rank = small[tokens]
		} else {
			s.load[i].rank = large[tokens]
		}
	}
	return counts
}

// tally adds up the result that a selection gives.
func (s *scorer) tally(sel selection) *tally {
	got := &tally{sums: s.base.sums, rows: s.base.rows, minutes: slices.Clone(s.base.minutes), ranks: slices.Clone(s.base.ranks)}
	for j, selected := range sel {
		if !selected {
			continue
		}
		for _, i := range s.rows(int32(j)) {
			got.rows++
			s.addRow(&got.sums, i, 1)
			got.minutes[s.load[i].minute]++
			got.ranks[s.load[i].rank]++
		}
	}
	return got
}

// cost adds up the squares of how much of each limit a selection uses: tokens in and out, the cache hits, the
// shape of the counts per minute, and the Kolmogorov–Smirnov distance of the input lengths. It is safe for
// concurrent use.
func (s *scorer) cost(sel selection) float64 {
	got := s.tally(sel)
	ks := ksOf(&s.source, got) / interpolate(ksPoints, s.scale)
	return s.sumsCost(got) + s.shapeCost(shape(s.source.minutes, got.minutes)) + ks*ks
}

func (s *scorer) sumsCost(got *tally) float64 {
	in := offBy(got, &s.source, sumIn, s.scale) / tokenLimit(s.scale)
	out := offBy(got, &s.source, sumOut, s.scale) / tokenLimit(s.scale)
	cost := in*in + out*out
	for k := sumHits; k < nSums; k++ {
		hit := (got.share(k) - s.source.share(k)) / hitLimit(s.scale)
		cost += hit * hit
	}
	return cost
}

// cacheCost is the same for the cache hits that the selected sessions have by themselves, at f times the probed
// capacities.
func (s *scorer) cacheCost(sel selection) float64 {
	before := s.sample.cache()
	after := before.scaled(s.scale)
	after.simulate(func(yield func(*schemas.TraceRow) bool) {
		s.sample.traceRows(func(r *schemas.TraceRow) bool { return !sel[s.of[r.Row]] || yield(r) })
	}, nil)
	cost := 0.0
	for k := range after.lru {
		used := (after.lru[k] - before.lru[k]) / hitLimit(s.scale)
		cost += used * used
	}
	return cost
}

// scaled are caches that correspond to those of c at scale f, without their hits.
func (c *cacheHits) scaled(f float64) *cacheHits {
	out := &cacheHits{at: slices.Clone(c.at)}
	for k, n := range c.at {
		out.at[k] = max(int64(math.Round(f*float64(n))), 1)
	}
	return out
}

func (s *scorer) shapeCost(shape float64) float64 {
	if s.far {
		return 0
	}
	used := (1 - shape) / (1 - shapeLimit(s.scale))
	return used * used
}

// share is a sum of blocks as a share of all blocks.
func (t *tally) share(k int) float64 { return float64(t.sums[k]) / float64(max(t.sums[sumBlocks], 1)) }

func ksOf(x, y *tally) float64 {
	d := 0.0
	var a, b int64
	perX, perY := 1/float64(max(x.rows, 1)), 1/float64(max(y.rows, 1))
	for i := range x.ranks {
		a += int64(x.ranks[i])
		b += int64(y.ranks[i])
		d = max(d, math.Abs(float64(a)*perX-float64(b)*perY))
	}
	return d
}

// offBy is the relative distance of a sum from scale times the source's; 0 when nothing is wanted.
func offBy(got, source *tally, k int, scale float64) float64 {
	want := scale * float64(source.sums[k])
	if want == 0 {
		return 0
	}
	return math.Abs(float64(got.sums[k])/want - 1)
}

// shape is the correlation of two series of counts; 1 when the first has no shape to keep.
func shape(before, after []int32) float64 {
	if len(before) < 2 || slices.Min(before) == slices.Max(before) {
		return 1
	}
	if slices.Min(after) == slices.Max(after) {
		return 0
	}
	return stat.Correlation(asFloats(before), asFloats(after), nil)
}

func asFloats(x []int32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
