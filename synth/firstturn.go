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
	firstRounds  = 80
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

// fitFirstTurns sets the weights of first turns in l.
func (m *sessionModel) fitFirstTurns(l *lengthModel, seed uint64) {
	if m.growth.empty() || m.turns.tail(1) == 0 {
		return
	}
	t := l.all
	bins := inputBin(l.maxIn) + 1
	all := make([]float64, bins)
	for i, p := range t.in {
		total := 0.0
		for _, u := range p.subs {
			total += u.w
		}
		for _, u := range p.subs {
			all[inputBin(u.lo)] += t.inW[i] * u.w / total
		}
	}
	normalise(all)
	steps := m.transitions(l, all, rng.New(seed, "synth", "first turns"))
	survival := []float64{1}
	for k := int64(1); k < 1<<14; k++ {
		s := m.turns.tail(k)
		if s < firstTail {
			break
		}
		survival = append(survival, s)
	}
	first := append([]float64(nil), all...)
	for range firstRounds {
		deconvolve(first, all, steps, survival)
	}
	for _, p := range t.in {
		for i := range p.subs {
			u := &p.subs[i]
			u.first = 0
			if k := inputBin(u.lo); all[k] > 0 {
				u.first = u.w * first[k] / all[k]
			}
		}
	}
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
	picker := newPicker(l.all, nil)
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
func deconvolve(first, all []float64, steps []transition, survival []float64) {
	pred := make([]float64, len(all))
	v := append([]float64(nil), first...)
	sum := 0.0
	for k, s := range survival {
		if k > 0 {
			v = forward(v, steps)
		}
		for i := range v {
			pred[i] += s * v[i]
		}
		sum += s
	}
	u := make([]float64, len(all))
	for i := range u {
		if pred[i] > 0 {
			u[i] = all[i] / (pred[i] / sum)
		}
	}
	back := make([]float64, len(all))
	for k, s := range survival {
		if k > 0 {
			u = backward(u, steps)
		}
		for i := range u {
			back[i] += s * u[i] / sum
		}
	}
	for i := range first {
		first[i] *= back[i]
	}
	normalise(first)
	for i := range first {
		if math.IsNaN(first[i]) {
			first[i] = 0
		}
	}
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
