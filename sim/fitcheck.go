package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// Compared is one percentile of a run beside that of the fitted engine, both from the sending of a request.
type Compared struct {
	Metric   string  `json:"metric"` // ttft_p50 …
	Measured float64 `json:"measured_ms"`
	Fitted   float64 `json:"fitted_ms"`
	N        int     `json:"n"`
}

// Check sends the requests of the run to the fitted engine, each to the replica that it went to, and compares. It
// is not an independent check, but what the model does not have shows in it. It returns nothing where more than 5 %
// of the prompt tokens came from the cache, as results do not tell which, and of runs beyond 10⁸ output tokens.
func (f *Fit) Check(obs []Observation) []Compared {
	byTarget := map[string][]Observation{}
	var prompt, cached, output int64
	for _, o := range obs {
		if o.OK {
			byTarget[o.Target] = append(byTarget[o.Target], o)
			prompt += int64(o.Input)
			cached += int64(max(0, o.Cached))
			output += int64(o.Output)
		}
	}
	if prompt == 0 || float64(cached) > .05*float64(prompt) || output > 1e8 {
		return nil
	}
	var measured, fitted latencyLists
	for _, list := range byTarget {
		got, err := f.replay(list)
		if err != nil {
			return nil
		}
		for i := range list {
			if got[i].OK {
				measured.add(&list[i])
				fitted.add(&got[i])
			}
		}
	}
	front := 0.0
	for _, c := range f.Coefficients {
		if c.Name == columnNames[colFront].name {
			front = max(0, c.Value)
		}
	}
	var out []Compared
	for _, p := range []struct {
		name string
		p    float64
	}{{"p50", .5}, {"p99", .99}} {
		out = append(out, Compared{"ttft_" + p.name, quantile(measured.ttft, p.p), quantile(fitted.ttft, p.p) + front, len(measured.ttft)})
	}
	for _, p := range []struct {
		name string
		p    float64
	}{{"p50", .5}, {"p99", .99}} {
		out = append(out, Compared{"tpot_" + p.name, quantile(measured.tpot, p.p), quantile(fitted.tpot, p.p), len(measured.tpot)})
	}
	return out
}

// latencyLists are the latencies of a run in ms.
type latencyLists struct{ ttft, tpot []float64 }

func (l *latencyLists) add(o *Observation) {
	l.ttft = append(l.ttft, float64(o.First-o.Sent)/1e3)
	if n := o.Output - o.FirstTokens; n > 0 {
		l.tpot = append(l.tpot, float64(o.Last-o.First)/1e3/float64(n))
	}
}

func quantile(x []float64, p float64) float64 {
	slices.Sort(x)
	v, ok := stats.Quantile(x, p)
	if !ok {
		return math.NaN()
	}
	return v
}

// replay sends requests to one replica of the fitted engine and returns what it does with each.
func (f *Fit) replay(obs []Observation) ([]Observation, error) {
	c := f.Config
	c.Replicas, c.Router, c.Faults = 1, "", nil
	cl, err := NewCluster(c)
	if err != nil {
		return nil, err
	}
	out := make([]Observation, len(obs))
	order := make([]int, len(obs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(obs[a].Sent, obs[b].Sent) })
	emit := func(ev schemas.EngineEvent) {
		o := &out[ev.ID]
		if ev.Tokens > 0 && o.First == 0 {
			o.First = ev.AtNs / 1e3
			o.FirstTokens = ev.Tokens
		}
		if ev.Tokens > 0 {
			o.Last = ev.AtNs / 1e3
		}
		o.Output += ev.Tokens
		o.OK = o.OK || ev.Done && ev.Status == schemas.ResultOK
	}
	zero := obs[order[0]].Sent
	for _, i := range order {
		at := time.Duration(obs[i].Sent-zero) * time.Microsecond
		out[i].Sent = at.Microseconds()
		cl.Advance(at, emit)
		cl.Submit(at, int64(i), &schemas.TraceRow{InputTokens: obs[i].Input, OutputTokens: &obs[i].Output})
	}
	cl.Advance(math.MaxInt64, emit)
	return out, nil
}
