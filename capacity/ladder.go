package capacity

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"tailgate/internal/stats"
)

// The ladder doubles the concurrency until the rate grows by less than flatGrowth twice, and at most to mostSlots.
const (
	ladderStep   = 3 * time.Minute
	ladderWarmup = time.Minute
	flatGrowth   = .05
	mostSlots    = 4096
)

// Rung is one concurrency of the closed loop.
type Rung struct {
	Concurrency      int     `json:"concurrency"`
	RequestsPerS     float64 `json:"requests_per_s"`
	OutputTokensPerS float64 `json:"output_tokens_per_s"`
	Inflight         float64 `json:"inflight"`
	MeanE2EMs        float64 `json:"mean_e2e_ms"`
	// Little is X·R/N: the rate times the mean time over the slots; 1 where the loop was full and steady.
	Little float64  `json:"little"`
	Tails  []Figure `json:"tails"`
	Run    string   `json:"run"`
}

// Ladder is the closed loop's saturation curve.
type Ladder struct {
	Class string `json:"class"`
	Rungs []Rung `json:"rungs"`
	// Rate is the highest that was completed, requests/s: what a saturated cluster serves of this traffic. It is no
	// capacity: a closed loop waits for slow answers.
	Rate float64 `json:"rate"`
	// Knee is the concurrency at which the rate leaves its first line; 0 = not seen. It decides nothing.
	Knee float64 `json:"knee"`
}

// ladder climbs; class restricts the traffic (Mix = all).
func (t *Test) ladder(ctx context.Context, cluster, class string) (*Ladder, error) {
	out := &Ladder{Class: class}
	flat := 0
	step := cmp.Or(t.plan.Ladder.Step, ladderStep)
	warmup := min(ladderWarmup, step/3)
	for i := 0; ; i++ {
		slots, more := t.slots(i)
		if !more || flat == 2 {
			break
		}
		name := fmt.Sprintf("%s-ladder-%04d", class, slots)
		if cluster != ClusterFull {
			name = "n-1-" + name
		}
		m, err := t.make(ctx, Load{Name: name, Layer: LayerLadder, Cell: Cell{class, PatternReal}, Cluster: cluster, Concurrency: slots,
			Warmup: warmup, Length: step - warmup, Seed: t.plan.Seed}, 0)
		if err != nil {
			return nil, err
		}
		r := m.rung()
		if r.RequestsPerS < out.Rate*(1+flatGrowth) {
			flat++
		} else {
			flat = 0
		}
		out.Rate = max(out.Rate, r.RequestsPerS)
		out.Rungs = append(out.Rungs, r)
		t.note(fmt.Sprintf("%s: %d at a time give %.4g requests/s", name, slots, r.RequestsPerS))
		if len(t.plan.Ladder.Concurrency) > 0 {
			flat = 0 // a list that was given is run whole
		}
	}
	out.Knee = out.knee()
	return out, nil
}

// climbed are the ladders of a test, each climbed once.
type climbed struct {
	t  *Test
	by map[string]*Ladder
}

func (c *climbed) climb(ctx context.Context, cluster, class string) (*Ladder, error) {
	key := cluster + "/" + class
	if l, ok := c.by[key]; ok {
		return l, nil
	}
	l, err := c.t.ladder(ctx, cluster, class)
	if err != nil {
		return nil, err
	}
	if l.Rate == 0 {
		return nil, fmt.Errorf("the ladder of %s completed no request", class)
	}
	c.by[key] = l
	return l, nil
}

// saturated is the rate of a cell's class, requests/s, that a cluster can serve: of a class that is searched beside the
// others, in the share of its time that they leave, and a tenth at least.
func (c *climbed) saturated(ctx context.Context, cluster string, cell Cell) (float64, error) {
	mix, err := c.climb(ctx, cluster, Mix)
	if err != nil {
		return 0, err
	}
	if cell.Class == Mix {
		return mix.Rate, nil
	}
	own, err := c.climb(ctx, cluster, cell.Class)
	if err != nil {
		return 0, err
	}
	if c.t.plan.Load == LoadInMix {
		return own.Rate * max(.1, 1-c.t.others(cell.Class)/mix.Rate), nil
	}
	return own.Rate, nil
}

// rung is a closed loop's run as a rung.
func (m *Made) rung() Rung {
	f, slots := m.Facts, m.Load.Concurrency
	return Rung{Concurrency: slots, RequestsPerS: f.RequestsPerS, OutputTokensPerS: f.OutputTokensPerS, Inflight: f.Inflight,
		MeanE2EMs: f.MeanE2EMs, Little: f.RequestsPerS * f.MeanE2EMs / 1e3 / float64(slots), Tails: f.Tails, Run: m.Folder}
}

// slots is the concurrency of step i; false = there is none.
func (t *Test) slots(i int) (int, bool) {
	if list := t.plan.Ladder.Concurrency; len(list) > 0 {
		if i < len(list) {
			return list[i], true
		}
		return 0, false
	}
	n := 1 << i
	return n, n <= mostSlots
}

// knee fits two lines to log(rate) over log(concurrency), the second of them flat, and returns where they meet.
func (l *Ladder) knee() float64 {
	n := len(l.Rungs)
	if n < 4 {
		return 0
	}
	x, y := make([]float64, n), make([]float64, n)
	for i, r := range l.Rungs {
		if r.RequestsPerS <= 0 {
			return 0
		}
		x[i], y[i] = math.Log(float64(r.Concurrency)), math.Log(r.RequestsPerS)
	}
	best, at := math.Inf(1), 0.0
	for cut := 2; cut <= n-2; cut++ {
		slope, level, rest := stats.Line(x[:cut], y[:cut])
		flat := stats.Mean(y[cut:])
		for _, v := range y[cut:] {
			rest += (v - flat) * (v - flat)
		}
		if rest < best && slope > .1 {
			best, at = rest, (flat-level)/slope
		}
	}
	if at == 0 {
		return 0
	}
	return math.Exp(at)
}
