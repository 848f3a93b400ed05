package capacity

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Patterns of arrivals.
const (
	PatternReal    = "real"    // the trace's own, rescaled by sessions
	PatternPoisson = "poisson" // exponential gaps
	PatternSmooth  = "smooth"  // Gamma gaps of shape 4
	PatternBursty  = "bursty"  // Gamma gaps of shape 0.3
)

// Patterns lists them.
func Patterns() []string { return []string{PatternReal, PatternPoisson, PatternSmooth, PatternBursty} }

// Burstiness is the Gamma shape of a synthetic pattern.
func Burstiness(pattern string) float64 {
	switch pattern {
	case PatternSmooth:
		return 4
	case PatternBursty:
		return .3
	}
	return 1
}

// Mix is the class name of the whole mix.
const Mix = "mix"

// How the other classes are loaded while one is searched.
const (
	LoadInMix = "in_mix" // they stay at their rate in production
	LoadAlone = "alone"
)

// Cell is what one Safe QPS is for.
type Cell struct {
	Class   string `json:"class"` // Mix, or a workload class
	Pattern string `json:"pattern"`
}

// String is class/pattern, as plans and reports write a cell.
func (c Cell) String() string { return c.Class + "/" + c.Pattern }

// ParseCell reads CLASS/PATTERN, such as mix/real.
func ParseCell(s string) (Cell, error) {
	class, pattern, ok := strings.Cut(s, "/")
	if !ok || class == "" || !slices.Contains(Patterns(), pattern) {
		return Cell{}, fmt.Errorf("cell %q is not CLASS/PATTERN with one of the patterns %s, such as mix/real", s, strings.Join(Patterns(), ", "))
	}
	return Cell{class, pattern}, nil
}

// Plan is a capacity test.
type Plan struct {
	Name    string
	Target  string // sim:SPEC or a URL; "" = Targets
	Targets string // targets file, as written
	Trace   string
	Profile string // for synthetic patterns and the offered rate; "" = made of the trace
	Gate    string
	Labels  map[string]string
	Replay  map[string]string // more flags of `tailgate replay`, by name
	Seed    uint64
	Cells   []Cell
	Load    string        // LoadInMix or LoadAlone
	From    time.Duration // begin of the window of the trace that real cells replay, behind its lead-in
	Window  time.Duration // its length; 0 = 28 min, or with a limit on p99 60 min where the trace has them
	Search  SearchOptions // without Ladder, Rules and SameWindow
	Ladder  LadderOptions
	Soak    *SoakOptions // null = not run
	NMinus1 *NMinus1Options
	Pairs   *PairOptions // null = nothing is compared
	Micro   *MicroOptions
	// Growth is the declared growth of the traffic that the headroom must hold, 1.2 = 20 %.
	Growth float64
	// Calibration is a result of `tailgate backtest`; "" = none.
	Calibration string
}

// LadderOptions say how the closed loop climbs.
type LadderOptions struct {
	Concurrency []int         // empty = doubling from 1 until the rate grows by less than 5 % twice
	Step        time.Duration // of each concurrency, warm-up included; 0 = 3 min
}

// SoakOptions say how long the cluster is held at a steady rate, with bursts in it.
type SoakOptions struct {
	Length time.Duration // 0 = 60 min
	Share  float64       // of Safe QPS; 0 = .8
	Bursts []BurstOptions
}

// BurstOptions are one burst of the soak.
type BurstOptions struct {
	At  time.Duration `json:"at_ns"` // behind the warm-up
	For time.Duration `json:"for_ns"`
	X   float64       `json:"x"` // times the rate
}

// NMinus1Options say how the loss of a replica is tested.
type NMinus1Options struct {
	Target  string        // the cluster with one replica less
	Targets string        // or its targets file
	Remove  string        // or a command that takes a replica of the plan's target away before each run …
	Restore string        // … and one that brings it back behind it; "" = nothing
	Gate    string        // "" = that of the plan
	Rate    float64       // requests/s to hold; 0 = the offered p99 of the 60 s rate times Growth, at most Safe QPS
	Search  bool          // search its own Safe QPS instead, 3 h or more
	Length  time.Duration // of the steady run; 0 = that of a confirmation
	// Lose is how a replica is taken away in the middle of a run: a fault of the simulator (kill:1@10m) or hook:COMMAND.
	Lose string
	// LoseAt is when, in the run; 0 = 10 min.
	LoseAt time.Duration
}
