package synth

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"tailgate/internal/rng"
)

// A profile tells the inputs of all turns, not of first turns. Those are found by Richardson–Lucy deconvolution: the
// first turns from which sessions of the profile's turns and growth have the profile's inputs.
const (
	firstRounds  = 50
	firstSamples = 600 // of the next turn, per bin
	firstTail    = 1e-4
)

// nextInput draws the input of a later turn: the turn before, its answer, and what is new. A growth that would leave
// no prompt, or more than the profile has seen, is drawn again.
func (m *sessionModel) nextInput(in, out, limit int32, r *rand.Rand) int32 {
	next := int64(in) + int64(out)
	for range 16 {
		if v := next + m.growth.draw(r); v >= 1 && v <= int64(limit) {
			return int32(v)
		}
	}
	return int32(max(1, min(next, int64(limit))))
}

// inputBin is the bin of a length: eight to the octave.
func inputBin(v int32) int {
	if v < 16 {
		return int(max(v, 0))
	}
	shift := bits.Len32(uint32(v)) - 4
	return 16 + (shift-1)*8 + int(v>>shift) - 8
}

// firstTurns is the search for the first turns of a group: how long they are, and how much longer sessions begin with
// longer prompts. The second is not in the profile either; where it tells how many blocks an infinite prefix cache
// would hit, that decides it, since later turns of long prompts hit more blocks.
type firstTurns struct {
	m        *sessionModel
	l        *lengthModel
	prefix   *prefixModel // with ids of its own
	all      []float64    // inputs of all turns, by bin
	steps    []transition
	survival []float64 // sessions with more than k turns
	seed     uint64

	first []float64 // inputs of first turns
	multi []float64 // share of them that begin a longer session
}

// fitFirstTurns sets the weights of first turns in l, and the carry of the sessions. hits is the block hit ratio to
// reach, below 0 where it is not told.
func (m *sessionModel) fitFirstTurns(l *lengthModel, prefix *prefixModel, hits float64, seed uint64) {
	if m.growth.empty() || m.turns.tail(1) == 0 {
		return
	}
	f := &firstTurns{m: m, l: l, seed: seed, all: make([]float64, inputBin(l.maxIn)+1), survival: []float64{1}}
	scratch := *prefix
	scratch.blocks = &blockIDs{roots: map[rootKey][]int64{}}
	f.prefix = &scratch
	t := l.all
	for i, p := range t.in {
		total := 0.0
		for _, u := range p.subs {
			total += u.w[anyTurn]
		}
		for _, u := range p.subs {
			f.all[inputBin(u.lo)] += t.inW[i] * u.w[anyTurn] / total
		}
	}
	normalise(f.all)
	f.steps = m.transitions(l, f.all, rng.New(seed, "synth", "first turns"))
	for k := int64(1); k < 1<<14; k++ {
		s := m.turns.tail(k)
		if s < firstTail {
			break
		}
		f.survival = append(f.survival, s)
	}
	f.search(hits)
}

const (
	hitsNear     = 0.003
	steepest     = 4.0 // of the logit of a longer session over the log of the first prompt
	middleOctave = 7.0 // of the bins: 1,024 tokens
	searchSteps  = 9
)

// search finds the steepness that reaches the hits, or the end of its range.
func (f *firstTurns) search(hits float64) {
	got := f.try(0)
	if hits < 0 || f.prefix.block == 0 || math.Abs(got-hits) < hitsNear {
		return
	}
	lo, hi := -steepest, steepest
	if got < hits {
		lo = 0
	} else {
		hi = 0
	}
	for range searchSteps {
		mid := (lo + hi) / 2
		if got = f.try(mid); math.Abs(got-hits) < hitsNear {
			return
		}
		if got < hits {
			lo = mid
		} else {
			hi = mid
		}
	}
}

// try fits the first turns for a steepness, sets the weights, and returns the block hit ratio that comes of it.
func (f *firstTurns) try(steep float64) float64 {
	f.first = append([]float64(nil), f.all...)
	f.multi = make([]float64, len(f.all))
	odds := make([]float64, len(f.all))
	for i := range odds { // eight bins to the octave, about 0 in the middle of the lengths
		odds[i] = math.Exp(steep * math.Ln2 * (float64(i)/8 - middleOctave))
	}
	for range firstRounds {
		f.logistic(odds)
		f.deconvolve()
	}
	f.logistic(odds)
	for _, p := range f.l.all.in {
		for i := range p.subs {
			u := &p.subs[i]
			k := inputBin(u.lo)
			ratio := 0.0
			if f.all[k] > 0 {
				ratio = f.first[k] / f.all[k]
			}
			u.w[singleTurn], u.w[firstOfMany] = u.w[anyTurn]*ratio*(1-f.multi[k]), u.w[anyTurn]*ratio*f.multi[k]
		}
	}
	return f.trial()
}

// logistic sets the share of longer sessions by first prompt: a logistic curve over its logarithm, with the right
// share in all. odds are e to the steepness times that logarithm.
func (f *firstTurns) logistic(odds []float64) {
	want := 0.0
	if len(f.survival) > 1 {
		want = f.survival[1]
	}
	lo, hi := -logitRange, logitRange
	for range logitSteps {
		mid, sum := (lo+hi)/2, 0.0
		level := math.Exp(mid)
		for i, p := range f.first {
			if p > 0 {
				x := level * odds[i]
				f.multi[i] = x / (1 + x)
				sum += p * f.multi[i]
			}
		}
		if sum < want {
			lo = mid
		} else {
			hi = mid
		}
	}
}

const (
	logitRange = 60.0
	logitSteps = 36 // to 2e-9
)

const trialSessions = 4_000

// trial draws sessions, fits the carry to them, and returns the block hit ratio.
func (f *firstTurns) trial() float64 {
	r := rng.New(f.seed, "synth", "trial sessions")
	p := newPicker(f.l.all, nil, false)
	block := max(f.prefix.block, 1)
	var blocks, hits, whole, cut, short, later float64
	for range trialSessions {
		turns := f.m.turns.draw(r)
		of := firstOfMany
		if turns == 1 {
			of = singleTurn
		}
		in, out := p.draw(r, of)
		_, common := f.prefix.first(in, r)
		blocks, hits = blocks+math.Ceil(float64(in)/float64(block)), hits+float64(common)
		for range turns - 1 {
			next := f.m.nextInput(in, out, f.l.maxIn, r)
			had, room := int(in)/block, int(next)/block
			keep := min(had, room)
			whole, cut, hits, later = whole+float64(had), cut+float64(had-keep), hits+float64(keep), later+1
			short += b2f(room < had)
			blocks += math.Ceil(float64(next) / float64(block))
			in, out = next, p.outputFor(next, r)
		}
	}
	lost := f.m.carry.fit(whole, cut, short/max(later, 1))
	return max(hits-lost, 0) / max(blocks, 1)
}

func normalise(x []float64) {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	if sum > 0 {
		for i := range x {
			x[i] /= sum
		}
	}
}

// transition is where turns of one bin go.
type transition struct {
	to []int32
	p  []float64
}

func (m *sessionModel) transitions(l *lengthModel, all []float64, r *rand.Rand) []transition {
	out := make([]transition, len(all))
	picker := newPicker(l.all, nil, false)
	lows := make([]int32, len(all)+1)
	for v := int32(0); v <= l.maxIn; {
		b := inputBin(v)
		lows[b] = v
		step := int32(1)
		if v >= 16 {
			step = 1 << (bits.Len32(uint32(v)) - 4)
		}
		v += step
		lows[b+1] = v
	}
	for b := range all {
		if all[b] == 0 {
			// Sessions may still pass through: their answers are those of the nearest length.
			if lows[b+1] <= lows[b] {
				continue
			}
		}
		counts := map[int32]float64{}
		for range firstSamples {
			in := lows[b]
			if w := lows[b+1] - lows[b]; w > 1 {
				in += r.Int32N(w)
			}
			in = min(in, l.maxIn)
			counts[int32(inputBin(m.nextInput(in, picker.outputFor(in, r), l.maxIn, r)))]++
		}
		for k := range int32(len(all)) {
			if n := counts[k]; n > 0 {
				out[b].to, out[b].p = append(out[b].to, k), append(out[b].p, n/firstSamples)
			}
		}
	}
	return out
}

// deconvolve does one step of Richardson (1972) and Lucy (1974).
func (f *firstTurns) deconvolve() {
	pred := append([]float64(nil), f.first...)
	v := make([]float64, len(f.all))
	for i := range v {
		v[i] = f.first[i] * f.multi[i]
	}
	later, total := 0.0, 1.0 // turns of a longer session after its first; of all
	for _, s := range f.survival[1:] {
		v = forward(v, f.steps)
		share := s / f.survival[1]
		for i := range v {
			pred[i] += share * v[i]
		}
		later, total = later+share, total+s
	}
	u := make([]float64, len(f.all))
	for i := range u {
		if pred[i] > 0 {
			u[i] = f.all[i] * total / pred[i]
		}
	}
	back := append([]float64(nil), u...)
	for _, s := range f.survival[1:] {
		u = backward(u, f.steps)
		for i := range u {
			back[i] += f.multi[i] * s / f.survival[1] * u[i]
		}
	}
	for i := range f.first {
		f.first[i] *= back[i] / (1 + f.multi[i]*later)
	}
	normalise(f.first)
}

func forward(v []float64, steps []transition) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		if x == 0 {
			continue
		}
		for k, to := range steps[i].to {
			out[to] += x * steps[i].p[k]
		}
	}
	return out
}

func backward(u []float64, steps []transition) []float64 {
	out := make([]float64, len(u))
	for i := range u {
		for k, to := range steps[i].to {
			out[i] += steps[i].p[k] * u[to]
		}
	}
	return out
}
