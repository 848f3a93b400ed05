package sim_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// poisson hands out n arrivals of the given rate per second.
func poisson(seed uint64, n int, rate float64, make func(i int) schemas.TraceRow) func() (arrival, bool) {
	r := rng.New(seed, "arrival")
	i, at := 0, 0.0
	return func() (arrival, bool) {
		if i == n {
			return arrival{}, false
		}
		at += r.ExpFloat64() / rate
		a := arrival{time.Duration(at * 1e9), make(i)}
		i++
		return a, true
	}
}

// With Poisson arrivals, one slot and a fixed service time s at load ρ, the mean wait is ρ·s/(2·(1−ρ))
// (Pollaczek and Khinchine).
func TestWaitsOfMD1(t *testing.T) {
	for _, tc := range []struct {
		load float64
		n    int
	}{{.3, 200_000}, {.7, 600_000}} {
		c := mustCluster(t, mustConfig(t, "sim:fixed:service=300ms,slots=1"))
		one := row(1, 1)
		var sum float64
		drive(c, poisson(1, tc.n, tc.load/.3, func(int) schemas.TraceRow { return one }), func(ev schemas.EngineEvent) {
			sum += float64(ev.QueueNs) / 1e9
		})
		near(t, fmt.Sprintf("mean wait at load %v", tc.load), sum/float64(tc.n), tc.load*.3/(2*(1-tc.load)), .02)
	}
}

func TestSlotsServeAtOnce(t *testing.T) {
	c := mustCluster(t, mustConfig(t, "sim:fixed:service=100ms,slots=2"))
	var at []int64
	for _, ev := range collect(c, arrival{row: row(1, 1)}, arrival{row: row(1, 1)}, arrival{row: row(1, 1)}, arrival{row: row(1, 1)}, arrival{row: row(1, 1)}) {
		at = append(at, ev.AtNs)
	}
	if want := []int64{1e8, 1e8, 2e8, 2e8, 3e8}; !slices.Equal(at, want) {
		t.Errorf("ends at %v, want %v", at, want)
	}
}

// L = λ·W (Little): the mean number of requests inside, sampled in time, is the arrival rate times the mean time
// inside.
func TestLittlesLaw(t *testing.T) {
	const n, rate = 20_000, 6.0
	r := rng.New(3, "lengths")
	c := mustCluster(t, mustConfig(t, "sim:replicas=2"))
	next := poisson(3, n, rate, func(int) schemas.TraceRow { return row(int32(1+r.IntN(2000)), int32(1+r.IntN(300))) })
	var arrived []int64
	var inside, samples, total float64
	emit := func(ev schemas.EngineEvent) {
		if ev.Done {
			total += float64(ev.AtNs-arrived[ev.ID]) / 1e9
		}
	}
	const period = 20 * time.Millisecond
	var sample time.Duration
	for a, more := next(); more; a, more = next() {
		for ; sample < a.at; sample += period {
			c.Advance(sample, emit)
			for _, s := range c.Stats() {
				inside += float64(s.Running + s.Waiting)
			}
			samples++
		}
		c.Advance(a.at, emit)
		c.Submit(a.at, int64(len(arrived)), &a.row)
		arrived = append(arrived, int64(a.at))
	}
	c.Advance(math.MaxInt64, emit)
	near(t, "mean number inside", inside/samples, total/sample.Seconds(), .01)
}

// lru is a prefix cache by brute force: blocks in order of their last release, the oldest first.
type lru struct {
	blocks   []string
	capacity int // blocks
}

// serve runs one request alone: beside its prefix blocks it needs tail blocks for the rest of its prompt, and
// peak at its end. It returns the prefix blocks found.
func (l *lru) serve(prefixes []string, limit, tail, peak int) int {
	hit := 0
	for hit < limit && slices.Contains(l.blocks, prefixes[hit]) {
		hit++
	}
	without := func(names []string) {
		l.blocks = slices.DeleteFunc(l.blocks, func(b string) bool { return slices.Contains(names, b) })
	}
	evict := func(extra int) {
		for len(l.blocks)+len(prefixes)+extra > l.capacity {
			l.blocks = l.blocks[1:]
		}
	}
	without(prefixes[:hit])
	evict(tail)
	// A block that is computed anew replaces the one that lies in the cache.
	without(prefixes)
	evict(peak)
	for i := len(prefixes) - 1; i >= 0; i-- {
		l.blocks = append(l.blocks, prefixes[i])
	}
	return hit
}

// Requests that do not overlap meet the cache that brute force finds, whether it holds everything or little.
func TestPrefixHitsAgainstBruteForce(t *testing.T) {
	const block = 64
	for _, capacity := range []int{1 << 20, 200, 60, 30} {
		c := mustCluster(t, mustConfig(t, fmt.Sprintf("sim:block_size=%d,engine_block=%d,kv_tokens=%d,max_num_batched_tokens=100000", block, block, capacity*block)))
		cache := &lru{capacity: capacity}
		r := rng.New(5, "prefixes")
		var arrivals []arrival
		var want []int32
		for i := range 1000 {
			// Conversations: a shared system prompt, then one of 40 histories, cut at some turn.
			whole := 1 + r.IntN(20)
			talk := int64(r.IntN(40))
			var ids []int64
			var prefixes []string
			name := ""
			for b := range whole {
				id := talk*100 + int64(b)
				if b < 2 {
					id = int64(b)
				}
				ids = append(ids, id)
				name += fmt.Sprint("/", id)
				prefixes = append(prefixes, name)
			}
			in := int32(whole*block + r.IntN(2)*r.IntN(block))
			out := int32(1 + r.IntN(100))
			// The last output token is never computed.
			tail := (int(in) - whole*block + block - 1) / block
			peak := (int(in+out-1) - whole*block + block - 1) / block
			want = append(want, int32(cache.serve(prefixes, int(in-1)/block, tail, peak)*block))
			arrivals = append(arrivals, arrival{time.Duration(i) * time.Hour, row(in, out, ids...)})
		}
		wrong := 0
		for id, ev := range sorted(ends(collect(c, arrivals...))) {
			if ev.CachedTokens != want[id] {
				wrong++
			}
		}
		if wrong > 0 {
			t.Errorf("capacity %d: %d of %d requests found another prefix than brute force", capacity, wrong, len(want))
		}
		s := c.Stats()[0]
		t.Logf("capacity %d blocks: hit ratio %.3f", capacity, float64(s.PrefixHits)/float64(s.PrefixQueries))
	}
}
