package profile

import (
	"iter"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"
)

// moments are what the laws need to know of some gaps.
type moments struct {
	n, mean, meanLog float64
	varLog           float64 // divided by n, as the likelihood has it
}

// span is the least and the greatest of some gaps.
type span struct{ lo, hi float64 }

// sample is a set of gaps on a clock of a known resolution.
type sample struct {
	x, w     []float64 // different values above half a step, ascending, and how often each is seen
	logs     []float64 // of x
	spans    []span    // of the gaps that x stands for; nil where they are all x
	half     float64   // half a step of the clock
	ties     float64   // gaps below that
	n, mean  float64   // of all gaps as they are
	variance float64   // sample variance
	above    moments   // of the gaps above half a step
	floored  moments   // of all gaps, ties taken as half a step: where the searches start
}

// maxValues is the number of different gaps up to which a sample holds each; above, gaps that are equal to 2⁻⁸ of their
// length are put together at their mean. It moves the parameters by less than 10⁻³ of their value and KS by
// less than .0005.
const maxValues = 1 << 12

// cellBits are the digits of a float that such gaps may differ in.
const cellBits = 52 - 8

// sampleOf takes gaps in any order; it may change the order.
func sampleOf(gaps []float64, half float64) *sample {
	s := &sample{half: half, n: float64(len(gaps))}
	s.mean, s.variance = stat.MeanVariance(gaps, nil)
	if len(gaps) > maxValues {
		s.addCells(slices.Values(gaps))
	} else {
		slices.Sort(gaps)
		for _, g := range gaps {
			s.add(g, 1)
		}
	}
	return s.ready()
}

// rawSample takes sorted gaps in µs.
func rawSample(sorted []int64, half float64) *sample {
	s := &sample{half: half, n: float64(len(sorted))}
	different := 0
	for i, us := range sorted {
		s.mean += float64(us) / 1e6 / s.n
		if i == 0 || us != sorted[i-1] {
			different++
		}
	}
	for _, us := range sorted {
		d := float64(us)/1e6 - s.mean
		s.variance += d * d / (s.n - 1)
	}
	gaps := func(yield func(float64) bool) {
		for _, us := range sorted {
			if !yield(float64(us) / 1e6) {
				return
			}
		}
	}
	if different > maxValues {
		s.addCells(gaps)
		return s.ready()
	}
	for g := range gaps {
		s.add(g, 1)
	}
	return s.ready()
}

// add takes w gaps of one length; lengths ascend.
func (s *sample) add(gap, w float64) {
	switch last := len(s.x) - 1; {
	case gap < s.half:
		s.ties += w
	case last >= 0 && s.x[last] == gap:
		s.w[last] += w
	default:
		s.x, s.w = append(s.x, gap), append(s.w, w)
	}
}

// addCells takes gaps in any order in cells of 2⁻⁸ width. The ties stay exact.
func (s *sample) addCells(gaps iter.Seq[float64]) {
	place := func(gap float64) int { return int(math.Float64bits(gap) >> cellBits) } // rises with the gap
	least, most := math.MaxInt, 0
	for g := range gaps {
		if g >= s.half && g > 0 {
			least, most = min(least, place(g)), max(most, place(g))
		}
	}
	if most < least {
		s.ties = s.n
		return
	}
	cells := make([]cell, most-least+1)
	spans := make([]span, len(cells))
	for g := range gaps {
		if g < s.half || g <= 0 {
			s.ties++
			continue
		}
		k := place(g) - least
		if cells[k].w == 0 {
			spans[k] = span{g, g}
		}
		spans[k] = span{min(spans[k].lo, g), max(spans[k].hi, g)}
		cells[k].x, cells[k].w = cells[k].x+g, cells[k].w+1
	}
	for k, c := range cells {
		if c.w > 0 {
			s.x, s.w, s.spans = append(s.x, c.x/c.w), append(s.w, c.w), append(s.spans, spans[k])
		}
	}
}

func (s *sample) ready() *sample {
	s.logs = make([]float64, len(s.x))
	for i, v := range s.x {
		s.logs[i] = math.Log(v)
	}
	s.above = momentsOf(s.x, s.logs, s.w)
	s.floored = s.above
	if s.ties > 0 {
		s.floored = momentsOf(s.flooredValues())
	}
	return s
}

func momentsOf(x, logs, w []float64) moments {
	var m moments
	for _, v := range w {
		m.n += v
	}
	if m.n == 0 {
		return m
	}
	for i, v := range x {
		m.mean += w[i] / m.n * v
		m.meanLog += w[i] / m.n * logs[i]
	}
	for i, l := range logs {
		m.varLog += w[i] / m.n * (l - m.meanLog) * (l - m.meanLog)
	}
	return m
}

// loglik is the log-likelihood: densities of the gaps, and for ties the probability of a gap below half a step.
func (s *sample) loglik(f family, p params) float64 {
	l := 0.0
	if s.above.n > 0 {
		l = f.density(s, p)
	}
	if s.ties > 0 {
		l += s.ties * math.Log(f.cdf(p)(s.half))
	}
	return l
}

// refine maximises the likelihood with ties from a start that took them as half a step, by the simplex search of
// Nelder and Mead (1965). A search that fails keeps the start.
func (s *sample) refine(f family, start params) params {
	if s.ties == 0 {
		return start
	}
	at := func(x []float64) (p params) {
		for i, v := range x {
			if p[i] = v; !f.anySign[i] {
				p[i] = math.Exp(v)
			}
		}
		return p
	}
	x := make([]float64, f.params)
	for i := range x {
		if x[i] = start[i]; !f.anySign[i] {
			x[i] = math.Log(start[i])
		}
	}
	problem := optimize.Problem{Func: func(x []float64) float64 {
		if l := s.loglik(f, at(x)); finite(l) {
			return -l
		}
		return math.MaxFloat64
	}}
	settings := &optimize.Settings{MajorIterations: 500, Converger: &optimize.FunctionConverge{Absolute: 1e-6, Iterations: 20}}
	res, err := optimize.Minimize(problem, x, settings, &optimize.NelderMead{})
	if err != nil || res.F > -s.loglik(f, start) {
		return start
	}
	return at(res.X)
}

// ks is the one-sample Kolmogorov–Smirnov distance. The clock rounds, so the law is read half a step above and
// below each value.
func (s *sample) ks(cdf func(float64) float64) float64 {
	k := ksSearch{s: s, cdf: cdf, before: make([]float64, len(s.x)+1)}
	k.before[0] = s.ties / s.n
	if s.ties > 0 {
		k.most = math.Abs(cdf(s.half) - k.before[0])
	}
	seen := s.ties
	for i, w := range s.w {
		seen += w
		k.before[i+1] = seen / s.n
	}
	const first = 32 // values that are looked at before any is left out
	from, at := k.read(0), 0
	var reads [first]ksRead
	for j := 1; j < first && at < len(s.x)-1; j++ {
		at = max((len(s.x)-1)*j/(first-1), at)
		reads[j] = k.read(at)
	}
	last := 0
	for j := 1; j < first; j++ {
		if to := (len(s.x) - 1) * j / (first - 1); to > last {
			k.between(last, to, from, reads[j])
			last, from = to, reads[j]
		}
	}
	return k.most
}

// ksSearch looks for the greatest distance. The law and the share of the values below both grow, so what lies between
// two values is no further apart than the law at one of them and the share at the other; where that is no more than the
// greatest distance so far, nothing between them needs to be read.
type ksSearch struct {
	s      *sample
	cdf    func(float64) float64
	before []float64 // share of the gaps below each value
	most   float64
}

// ksRead is the law at a value, half a step below and above.
type ksRead struct{ lo, hi float64 }

func (k *ksSearch) read(i int) ksRead {
	if i >= len(k.s.x) {
		return ksRead{}
	}
	at := span{k.s.x[i], k.s.x[i]}
	if k.s.spans != nil {
		at = k.s.spans[i]
	}
	r := ksRead{k.cdf(max(at.lo-k.s.half, 0)), k.cdf(at.hi + k.s.half)}
	k.most = max(k.most, math.Abs(r.lo-k.before[i]), math.Abs(r.hi-k.before[i+1]))
	return r
}

func (k *ksSearch) between(from, to int, a, b ksRead) {
	if to-from < 2 || max(b.hi-k.before[from+1], k.before[to]-a.lo) <= k.most {
		return
	}
	middle := (from + to) / 2
	m := k.read(middle)
	k.between(from, middle, a, m)
	k.between(middle, to, m, b)
}
