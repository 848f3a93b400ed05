package analyze

import (
	"time"

	"tailgate/internal/yamldoc"
)

// Gate is a parsed gate file.
type Gate struct {
	Name  string // of the file
	Rules []Rule // capacity_gate first, then the buckets in order
	// Warmup is cut off the start of every input beside the run's own warm-up. 0 = nothing more.
	Warmup time.Duration
	// Confidence is that of each bound, one-sided; 0.95 unless stated. Point compares the run's own percentiles
	// and gives no bound.
	Confidence float64
	Point      bool
	// FromSent takes latencies from the time of sending; false = from the schedule.
	FromSent bool
	// Headroom is the share of capacity to keep free, for the search of Safe QPS; an analysis does not use it.
	Headroom float64
}

// Origin is the word of the gate file.
func (g *Gate) Origin() string {
	if g.FromSent {
		return "sent"
	}
	return "scheduled"
}

// ParseGate reads a gate file in YAML. ${NAME} in a value is replaced by lookup(NAME). Unknown keys, unknown
// metrics, broken limits and unset variables are all reported, each with name:line, as one fault of kind Usage.
func ParseGate(name string, data []byte, lookup func(string) (string, bool)) (*Gate, error) {
	r, root := yamldoc.New(name, data, lookup)
	p := gateParser{r, &Gate{Name: name, Confidence: 0.95}}
	if root != nil {
		p.top(root)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return p.gate, nil
}

// TTFTLimit is the tightest limit on ttft, 0 without one or without a gate: what the client's lag is held against.
func (g *Gate) TTFTLimit() time.Duration {
	if g == nil {
		return 0
	}
	least := 0.0 // µs
	for _, r := range g.Rules {
		if r.kind == percentileRule && (r.metric == ttft || r.metric == ttftSent) && (least == 0 || r.Limit.Value < least) {
			least = r.Limit.Value
		}
	}
	return time.Duration(least * 1e3)
}

// of returns the metric of a rule under the gate's origin.
func (g *Gate) of(r Rule) metric {
	if g.FromSent {
		return r.metric.fromSent()
	}
	return r.metric
}
