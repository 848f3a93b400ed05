package capacity

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/stats"
	"tailgate/schemas"
	"tailgate/trace"
)

// Clusters that loads go to.
const (
	ClusterFull   = "full"
	ClusterMinus1 = "n_minus_1"
)

// Layers of a capacity test.
const (
	LayerLadder = "ladder"
	LayerSearch = "search"
	LayerSoak   = "soak"
	LayerMinus1 = "n_minus_1"
	LayerSweep  = "sweep"
	LayerPairs  = "pairs"
	LayerMicro  = "micro"
)

// Load is one run to make.
type Load struct {
	Name    string `json:"name"` // of its folder
	Layer   string `json:"layer"`
	Cell    Cell   `json:"cell"`
	Cluster string `json:"cluster"`
	// Concurrency is a closed loop's; 0 = open loop at Rate.
	Concurrency int `json:"concurrency,omitempty"`
	// Rate of the cell's class, requests/s; of the real pattern the mean over the window.
	Rate float64 `json:"rate,omitempty"`
	// Scale of the real pattern: Rate over the rate of the trace there.
	Scale float64 `json:"scale,omitempty"`
	// Drawn is the rate of the one draw of a synthetic pattern whose window is rescaled by Scale, as that of a trace is;
	// 0 = drawn afresh at Rate.
	Drawn float64 `json:"drawn,omitempty"`
	// Others is the rate at which the other classes are sent beside it; 0 = not at all.
	Others float64        `json:"others,omitempty"`
	From   time.Duration  `json:"from_ns,omitempty"` // begin of the counted part in the trace, for the real pattern
	Warmup time.Duration  `json:"warmup_ns"`
	Length time.Duration  `json:"length_ns"` // counted
	Seed   uint64         `json:"seed"`
	Bursts []BurstOptions `json:"bursts,omitempty"`
	// InputLengths restricts the prompts of a synthetic pattern, as synth's flag does; "" = the trace's lengths.
	InputLengths  string `json:"input_lengths,omitempty"`
	OutputLengths string `json:"output_lengths,omitempty"` // likewise, for the micro layer
	MaxInflight   int    `json:"max_inflight,omitempty"`   // cap in open loop; 0 = none
	Offline       bool   `json:"offline,omitempty"`        // everything at t0
	// Lose takes a replica away at LoseAt: a fault of the simulator, or hook:COMMAND.
	Lose   string        `json:"lose,omitempty"`
	LoseAt time.Duration `json:"lose_at_ns,omitempty"`
}

// Runner makes runs.
type Runner interface {
	// Run makes one run and leaves its finished folder at dir. An error means that the run cannot be made, now or
	// at all; a run that was made and is invalid is no error.
	Run(ctx context.Context, l Load, dir string) error
	// Draw tells the requests that a synthetic load is made of, without sending them.
	Draw(ctx context.Context, l Load) (*Traffic, error)
}

// Traffic is what the plan's trace holds.
type Traffic struct {
	Length time.Duration
	at     []time.Duration // ascending
	input  []int32
	output []int32 // -1 = not known
	failed []bool  // no lengths
	class  []int32
	names  []string
}

// NewTraffic reads the rows of a trace, in order of their stamps. A workload class named mix is refused (fault.Usage):
// cells and figures of the whole mix have that name.
func NewTraffic(rows iter.Seq[*schemas.TraceRow]) (*Traffic, error) {
	t := &Traffic{}
	index := map[string]int32{}
	for r := range rows {
		name := ""
		if r.Class != nil {
			name = *r.Class
		}
		if name == Mix {
			return nil, fault.Mark(fmt.Errorf("reading the traffic: row %d is of a class named %q, as the whole mix is", r.Row, Mix), fault.Usage,
				"give the class another name in the rules of --classes")
		}
		c, ok := index[name]
		if !ok {
			c = int32(len(t.names))
			index[name] = c
			t.names = append(t.names, name)
		}
		at := time.Duration(r.ScheduledUs) * time.Microsecond
		output := int32(-1)
		if r.OutputTokens != nil {
			output = *r.OutputTokens
		}
		t.at, t.class, t.input, t.output = append(t.at, at), append(t.class, c), append(t.input, r.InputTokens), append(t.output, output)
		t.failed = append(t.failed, trace.Failed(r))
		t.Length = at
	}
	return t, nil
}

// Len counts the rows.
func (t *Traffic) Len() int { return len(t.at) }

// Classes are the workload classes, sorted.
func (t *Traffic) Classes() []string {
	out := slices.DeleteFunc(slices.Clone(t.names), func(s string) bool { return s == "" })
	slices.Sort(out)
	return out
}

// Rate is the mean rate of a class (Mix = all) in [from, to).
func (t *Traffic) Rate(class string, from, to time.Duration) float64 {
	n := 0
	for i, at := range t.at {
		if at >= from && at < to && t.of(i, class) {
			n++
		}
	}
	return float64(n) / (to - from).Seconds()
}

func (t *Traffic) of(i int, class string) bool { return class == Mix || t.names[t.class[i]] == class }

// InputLengths are those of a class, in tokens.
func (t *Traffic) InputLengths(class string) []float64 {
	var out []float64
	for i, n := range t.input {
		if t.of(i, class) {
			out = append(out, float64(n))
		}
	}
	return out
}

// Offered is the p99 over time of a class's rate in bins of the given width: the load that production offers at its
// worst. Bins without a request count.
func (t *Traffic) Offered(class string, bin time.Duration) float64 {
	bins := make([]int, int(t.Length/bin)+1)
	for i, at := range t.at {
		if t.of(i, class) {
			bins[at/bin]++
		}
	}
	slices.Sort(bins)
	return float64(bins[stats.Rank(len(bins), .99)-1]) / bin.Seconds()
}
