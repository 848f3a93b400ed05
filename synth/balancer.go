package synth

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/rng"
)

// A request is estimated to be as much work as its input tokens and twenty times its output tokens; replicas
// work at a pace that keeps them busy for this part of the time.
const (
	workPerOutput = 20
	busyShare     = 0.85
)

// balance tells which sessions one replica of 1/scale gets from a balancer that sends a session's first turn to
// the replica with the least work left (of idle ones, to the one that has had the least) and later turns where
// the session is. Where 1/scale is no whole number, one more replica has the remaining part of a replica's
// speed. Method: TraceSplitter's least work left, with sessions kept together. The seed says which replica.
func balance(f *facts, o Options, scale float64) *decision {
	b := newReplicas(f, scale)
	shown := int32(rng.Hash(o.Seed, keyReplica) % uint64(b.whole))
	home := make([]int32, f.sessions())
	for j := range home {
		home[j] = -1
	}
	d := &decision{copies: make([]uint8, f.sessions()), move: mover{f: f}}
	for i, j := range f.of {
		b.workUntil(f.at[i])
		if home[j] < 0 {
			if home[j] = b.least(); home[j] == shown {
				d.copies[j] = 1
			}
		}
		b.add(home[j], f.work(int32(i), b.median))
	}
	d.notes = []string{fmt.Sprintf("replica %d of %.4g behind a balancer: sessions stay where they begin, least work left (input + %d × output tokens)",
		shown+1, 1/scale, workPerOutput)}
	return d
}

// work is the estimate for a row; median stands for an output that is not known.
func (f *facts) work(i, median int32) float64 {
	out := f.out[i]
	if out < 0 {
		out = median
	}
	return float64(f.in[i]) + workPerOutput*float64(out)
}

// replicas are the work that each replica has left.
type replicas struct {
	whole  int // replicas of full speed
	speed  []float64
	left   []float64
	had    []float64 // work sent to each, by its speed
	pace   float64   // work per µs of a full replica
	now    int64
	median int32 // output of the rows that tell one
}

func newReplicas(f *facts, scale float64) *replicas {
	n := 1 / scale
	whole := int(n + 1e-9)
	b := &replicas{whole: whole, speed: make([]float64, whole), median: medianOutput(f)}
	for i := range b.speed {
		b.speed[i] = 1
	}
	if part := n - float64(whole); part > 1e-9 {
		b.speed = append(b.speed, part)
	}
	b.left, b.had = make([]float64, len(b.speed)), make([]float64, len(b.speed))
	total := 0.0
	for i := range f.at {
		total += f.work(int32(i), b.median)
	}
	b.pace = total / (busyShare * n * math.Max(float64(f.lengthUs), 1))
	return b
}

func medianOutput(f *facts) int32 {
	var known []int32
	for _, out := range f.out {
		if out >= 0 {
			known = append(known, out)
		}
	}
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[len(known)/2]
}

func (b *replicas) workUntil(us int64) {
	done := b.pace * float64(us-b.now)
	b.now = us
	for i := range b.left {
		b.left[i] = max(b.left[i]-done, 0) // in units of the replica's own speed
	}
}

// least is the replica that would be idle first; of those idle, the one that has had the least.
func (b *replicas) least() int32 {
	best := 0
	for i := range b.left {
		if b.left[i] < b.left[best] || b.left[i] == b.left[best] && b.had[i] < b.had[best] {
			best = i
		}
	}
	return int32(best)
}

func (b *replicas) add(i int32, work float64) {
	b.left[i] += work / b.speed[i]
	b.had[i] += work / b.speed[i]
}
