package synth

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
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

type sums [nSums]float64

// tally is what a trace adds up to.
type tally struct {
	sums    sums
	rows    float64
	minutes []float64 // rows per minute
	ranks   []float64 // rows per different input length
}

// scorer tells how far a selection is from f times the source, from counts alone.
type scorer struct {
	f        float64
	sessions []session
	source   tally
	base     tally   // of the ⌊f⌋ copies that every session gets
	minute   []int32 // of each row's next copy
	rank     []int32 // of each row's input length among the different ones
	sums     []sums  // of each session
}

func newScorer(t *trace.Trace, sessions []session, f float64, move jitter) *scorer {
	s := &scorer{f: f, sessions: sessions, minute: make([]int32, len(t.Rows)), sums: make([]sums, len(sessions))}
	minutes := int(t.LengthUs()/minuteUs) + 1
	s.source = tally{rows: float64(len(t.Rows)), minutes: make([]float64, minutes), ranks: s.rankInputs(t)}
	s.base = tally{minutes: make([]float64, minutes), ranks: make([]float64, len(s.source.ranks))}
	whole := int32(math.Floor(f))
	hits := sourceHits(t)
	for j := range sessions {
		for _, i := range sessions[j].rows {
			r := &t.Rows[i]
			s.sums[j][sumIn] += float64(r.InputTokens)
			if r.OutputTokens != nil {
				s.sums[j][sumOut] += float64(*r.OutputTokens)
			}
			s.sums[j][sumBlocks] += float64(len(r.HashIDs))
			for k, h := range hits[i] {
				s.sums[j][sumHits+k] += float64(h)
			}
			s.source.minutes[r.ScheduledUs/minuteUs]++
			for q := range whole {
				s.base.minutes[(r.ScheduledUs+move.shift(&sessions[j], int32(j), q))/minuteUs]++
			}
			s.minute[i] = int32((r.ScheduledUs + move.shift(&sessions[j], int32(j), whole)) / minuteUs)
		}
		s.source.sums.add(&s.sums[j], 1)
	}
	s.base.sums.add(&s.source.sums, float64(whole))
	s.base.rows = float64(whole) * s.source.rows
	for i, n := range s.source.ranks {
		s.base.ranks[i] = float64(whole) * n
	}
	return s
}

func (a *sums) add(b *sums, times float64) {
	for k := range a {
		a[k] += times * b[k]
	}
}

// rankInputs numbers the different input lengths and counts their rows.
func (s *scorer) rankInputs(t *trace.Trace) (counts []float64) {
	order := make([]int32, len(t.Rows))
	for i := range order {
		order[i] = int32(i)
	}
	length := func(i int32) int32 { return t.Rows[i].InputTokens }
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(length(a), length(b)) })
	s.rank = make([]int32, len(order))
	for k, i := range order {
		if k == 0 || length(i) != length(order[k-1]) {
			counts = append(counts, 0)
		}
		s.rank[i] = int32(len(counts) - 1)
		counts[s.rank[i]]++
	}
	return counts
}

// sourceHits counts for each row the blocks that the source itself hits at each probed capacity.
func sourceHits(t *trace.Trace) [][len(probeParts)]int32 {
	at := probes(t)
	out := make([][len(probeParts)]int32, len(t.Rows))
	row := 0
	rows := func(yield func(*schemas.TraceRow) bool) {
		for row = range t.Rows {
			if !yield(&t.Rows[row]) {
				return
			}
		}
	}
	profile.NeededCapacity(rows, func(_ *schemas.TraceRow, _ int, need int64) {
		for k, c := range at {
			if need <= c {
				out[row][k]++
			}
		}
	})
	return out
}

// tally adds up the result that a selection gives.
func (s *scorer) tally(sel selection) *tally {
	got := &tally{sums: s.base.sums, rows: s.base.rows, minutes: slices.Clone(s.base.minutes), ranks: slices.Clone(s.base.ranks)}
	for j, selected := range sel {
		if !selected {
			continue
		}
		got.sums.add(&s.sums[j], 1)
		got.rows += float64(s.sessions[j].size())
		for _, i := range s.sessions[j].rows {
			got.minutes[s.minute[i]]++
			got.ranks[s.rank[i]]++
		}
	}
	return got
}

// cost adds up the squares of how much of each limit a selection uses: tokens in and out, the cache hits, the
// shape of the counts per minute, and the Kolmogorov–Smirnov distance of the input lengths. It is safe for
// concurrent use.
func (s *scorer) cost(sel selection) float64 {
	got := s.tally(sel)
	ks := ksOf(&s.source, got) / interpolate(ksPoints, s.f)
	return s.sumsCost(got) + s.shapeCost(shape(s.source.minutes, got.minutes)) + ks*ks
}

func (s *scorer) sumsCost(got *tally) float64 {
	in := offBy(got.sums[sumIn], s.f*s.source.sums[sumIn]) / tokenLimit(s.f)
	out := offBy(got.sums[sumOut], s.f*s.source.sums[sumOut]) / tokenLimit(s.f)
	cost := in*in + out*out
	for k := sumHits; k < nSums; k++ {
		hit := (got.share(k) - s.source.share(k)) / hitLimit(s.f)
		cost += hit * hit
	}
	return cost
}

func (s *scorer) shapeCost(shape float64) float64 {
	used := (1 - shape) / (1 - shapeLimit(s.f))
	return used * used
}

// share is a sum of blocks as a share of all blocks.
func (t *tally) share(k int) float64 { return t.sums[k] / max(t.sums[sumBlocks], 1) }

func ksOf(x, y *tally) float64 {
	d, a, b := 0.0, 0.0, 0.0
	for i := range x.ranks {
		a += x.ranks[i] / max(x.rows, 1)
		b += y.ranks[i] / max(y.rows, 1)
		d = max(d, math.Abs(a-b))
	}
	return d
}

// offBy is the relative distance of got from want; 0 when nothing is wanted.
func offBy(got, want float64) float64 {
	if want == 0 {
		return 0
	}
	return math.Abs(got/want - 1)
}

// shape is the correlation of two series of counts; 1 when the first has no shape to keep.
func shape(before, after []float64) float64 {
	if len(before) < 2 || slices.Min(before) == slices.Max(before) {
		return 1
	}
	if slices.Min(after) == slices.Max(after) {
		return 0
	}
	return stat.Correlation(before, after, nil)
}
