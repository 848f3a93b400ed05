package capacity

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/stats"
)

// ClusterB is the other arm of a comparison.
const ClusterB = "b"

// PairOptions compare two clusters, or two configurations of one, on the same window of the trace.
type PairOptions struct {
	Target  string // the other arm …
	Targets string // … or its targets file; both "" = the same target, which Hook changes
	// Hook is a command that is run before each run, with TAILGATE_ARM set to a or b.
	Hook   string
	Scales []float64 // of the rate of the trace; empty = 1
	Pairs  int       // 0 = 3
}

// leastPairs is how many pairs an interval needs.
const leastPairs = 3

// Paired is what the pairs of one scale say.
type Paired struct {
	Scale   float64      `json:"scale"`
	Pairs   int          `json:"pairs"`
	Changes []PairChange `json:"changes"`
	Runs    []string     `json:"runs"` // in the order in which they were made: a, a, b, b, a, a, b …
}

// PairChange is how one tail of b differs from that of a.
type PairChange struct {
	Metric string  `json:"metric"` // ttft_p95 …
	Ratio  float64 `json:"ratio"`  // b ÷ a, the geometric mean of the pairs
	Lower  float64 `json:"lower"`  // 95 % by Student's t over the logarithms of the pairs
	Upper  float64 `json:"upper"`
	Floor  float64 `json:"floor"` // largest ratio, 1 or more, between two runs of a
	Call   string  `json:"call"`  // rose, fell, or same: within the interval or the floor
}

// Calls of a PairChange.
const (
	CallRose = "rose"
	CallFell = "fell"
	CallSame = "same"
)

// order lists the arms: a alone first, for the floor, then a b, b a, a b …, so that a drift of the cluster weighs on both
// alike.
func order(pairs int) []string {
	arms := []string{ClusterFull}
	for i := range pairs {
		if i%2 == 0 {
			arms = append(arms, ClusterFull, ClusterB)
		} else {
			arms = append(arms, ClusterB, ClusterFull)
		}
	}
	return arms
}

// pairs runs both arms in turn at every scale.
func (t *Test) pairs(ctx context.Context) ([]Paired, error) {
	o := *t.plan.Pairs
	if len(o.Scales) == 0 {
		o.Scales = []float64{1}
	}
	s, err := NewSearch(withLadder(t.searchOptions(Cell{Mix, PatternReal}, ClusterFull)))
	if err != nil {
		return nil, err
	}
	from := max(t.plan.From, s.o.Warmup)
	length := min(s.o.Probe, t.traffic.Length-from)
	rate := t.traffic.Rate(Mix, from, from+length)
	var out []Paired
	for _, scale := range o.Scales {
		p := Paired{Scale: scale, Pairs: o.Pairs}
		var a, b []*Made
		for i, arm := range order(o.Pairs) {
			m, err := t.make(ctx, Load{Name: fmt.Sprintf("pairs-%g-%02d-%s", scale, i, armName(arm)), Layer: LayerPairs, Cell: Cell{Mix, PatternReal},
				Cluster: arm, Rate: scale * rate, Scale: scale, From: from, Warmup: s.o.Warmup, Length: length, Seed: t.plan.Seed}, 0)
			if err != nil {
				return nil, err
			}
			if p.Runs = append(p.Runs, m.Folder); arm == ClusterB {
				b = append(b, m)
			} else {
				a = append(a, m)
			}
		}
		p.Changes = pairChanges(a, b)
		for _, c := range p.Changes {
			t.note(fmt.Sprintf("pairs at %gx: %s", scale, c.text()))
		}
		out = append(out, p)
	}
	return out, nil
}

func armName(cluster string) string {
	if cluster == ClusterB {
		return "b"
	}
	return "a"
}

// pairChanges compares the tails of b with those of a, of which there is one more, the first. A tail that a run does not
// tell, or that is infinite, is left out.
func pairChanges(a, b []*Made) []PairChange {
	var out []PairChange
	for i, l := range b[0].Facts.Latency {
		for _, p := range []string{"p95", "p99"} {
			value := func(m *Made) float64 {
				f := m.Facts.Latency[i].P95
				if p == "p99" {
					f = m.Facts.Latency[i].P99
				}
				if !known(f) || f <= 0 {
					return math.NaN()
				}
				return math.Log(float64(f))
			}
			var logs []float64
			floor := 0.0
			for k := range b {
				logs = append(logs, value(b[k])-value(a[k+1]))
			}
			for j := range a {
				for k := range j {
					floor = max(floor, math.Abs(value(a[j])-value(a[k])))
				}
			}
			if c, ok := pairChange(l.Metric+"_"+p, logs, floor); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// pairChange is the change of one tail; false where a run does not tell it.
func pairChange(metric string, logs []float64, floor float64) (PairChange, bool) {
	n := float64(len(logs))
	m := stats.Mean(logs)
	sum := 0.0
	for _, x := range logs {
		sum += (x - m) * (x - m)
	}
	if math.IsNaN(m) || math.IsNaN(floor) || n < 2 {
		return PairChange{}, false
	}
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(.975) * math.Sqrt(sum/(n-1)/n)
	c := PairChange{Metric: metric, Ratio: math.Exp(m), Lower: math.Exp(m - half), Upper: math.Exp(m + half), Floor: math.Exp(floor), Call: CallSame}
	switch {
	case math.Abs(m) <= floor:
	case m-half > 0:
		c.Call = CallRose
	case m+half < 0:
		c.Call = CallFell
	}
	return c, true
}

func (c PairChange) text() string {
	s := fmt.Sprintf("%s of b is %.3g times that of a [%.3g, %.3g]", c.Metric, c.Ratio, c.Lower, c.Upper)
	if c.Call == CallSame {
		return s + ", within the noise"
	}
	return s + ": " + c.Call
}

// pairsTime is how long the pairs take.
func (t *Test) pairsTime() time.Duration {
	o := t.plan.Pairs
	s := withLadder(t.searchOptions(Cell{Mix, PatternReal}, ClusterFull)).filled()
	return time.Duration(len(order(o.Pairs))*max(1, len(o.Scales))) * (s.Warmup + s.Probe)
}
