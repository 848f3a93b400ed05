package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"tailgate/internal/fault"
)

// SweepOptions are a grid of runs that curves are drawn from. It answers how the cluster behaves, not what it can hold:
// that takes a search.
type SweepOptions struct {
	Concurrency []int     // a closed loop each
	Rates       []float64 // an open loop each …
	Patterns    []string  // … for each of these; empty = poisson
	Lengths     []string  // … and each of these input lengths (short, 1024..8192 …); empty = the trace's
	Classes     []string  // … and each of these classes, alone; empty = the mix
	Caps        []int     // … and each cap on requests in flight, 0 = none; empty = none
	Offline     bool      // one run with everything at t0
	Step        time.Duration
	Warmup      time.Duration
	Seed        uint64
}

// Validate reports every fault.
func (o SweepOptions) Validate() error {
	var errs []error
	if len(o.Concurrency) == 0 && len(o.Rates) == 0 && !o.Offline {
		errs = append(errs, errors.New("a sweep needs concurrencies, rates, or offline"))
	}
	for _, c := range o.Concurrency {
		if c < 1 {
			errs = append(errs, fmt.Errorf("concurrency %d must be 1 or more", c))
		}
	}
	for _, r := range o.Rates {
		if !(r > 0) || math.IsInf(r, 0) {
			errs = append(errs, fmt.Errorf("rate %v must be above 0", r))
		}
	}
	for _, p := range o.Patterns {
		if _, err := ParseCell(Mix + "/" + p); err != nil {
			errs = append(errs, fmt.Errorf("pattern %q is not one of %s", p, strings.Join(Patterns(), ", ")))
		}
		if p == PatternReal && len(o.Lengths) > 0 {
			errs = append(errs, errors.New("pattern real has the trace's lengths: leave lengths or the pattern out"))
		}
	}
	for _, c := range o.Caps {
		if c < 0 {
			errs = append(errs, fmt.Errorf("cap %d must be 0 or more", c))
		}
	}
	if o.Warmup < 0 || o.Step <= o.Warmup {
		errs = append(errs, fmt.Errorf("a step of %v must be longer than its warm-up of %v", o.Step, o.Warmup))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Sweep is what a grid of runs showed.
type Sweep struct {
	Points []SweepPoint `json:"points"`
	// OfflineRatio is the output tokens a second of the fastest closed loop or open point over those of the offline run;
	// 0 = no offline run.
	OfflineRatio float64 `json:"server_offline_ratio"`
	Runs         []Made  `json:"-"`
}

// SweepPoint is one run of a sweep.
type SweepPoint struct {
	Load       Load     `json:"load"`
	Run        string   `json:"run"`
	Facts      RunFacts `json:"facts"`
	PerGPU     float64  `json:"output_tokens_per_s_per_gpu"` // 0 = the number of GPUs is not known
	Verdict    string   `json:"verdict"`                     // of the gate, "" without one
	Violations []string `json:"broken"`                      // rules that failed
}

// Sweep makes the runs of a grid that are not made yet. gpus is the number of GPUs of the cluster, 0 = not known.
func (t *Test) Sweep(ctx context.Context, o SweepOptions, gpus float64) (*Sweep, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Sweep{}
	offline, best := 0.0, 0.0
	for _, l := range t.grid(o) {
		m, err := t.make(ctx, l, 0)
		if err != nil {
			return nil, err
		}
		p := SweepPoint{Load: l, Run: m.Folder, Facts: m.Facts, Verdict: m.Verdict}
		if gpus > 0 {
			p.PerGPU = m.Facts.OutputTokensPerS / gpus
		}
		for _, f := range m.Facts.Tails {
			if f.Verdict == "fail" {
				p.Violations = append(p.Violations, f.Rule)
			}
		}
		if l.Offline {
			offline = m.Facts.OutputTokensPerS
		} else {
			best = max(best, m.Facts.OutputTokensPerS)
		}
		s.Points, s.Runs = append(s.Points, p), append(s.Runs, *m)
		t.note(fmt.Sprintf("%s: %.4g requests/s, %.4g output tokens/s", l.Name, m.Facts.RequestsPerS, m.Facts.OutputTokensPerS))
	}
	if offline > 0 {
		s.OfflineRatio = best / offline
	}
	return s, nil
}

// grid lists the runs.
func (t *Test) grid(o SweepOptions) []Load {
	base := Load{Layer: LayerSweep, Cluster: ClusterFull, Warmup: o.Warmup, Length: o.Step - o.Warmup, Seed: o.Seed}
	classes, patterns, lengths, caps := orOne(o.Classes, Mix), orOne(o.Patterns, PatternPoisson), orOne(o.Lengths, ""), o.Caps
	if len(caps) == 0 {
		caps = []int{0}
	}
	var out []Load
	for _, class := range classes {
		for _, c := range o.Concurrency {
			l := base
			l.Cell, l.Concurrency = Cell{class, PatternReal}, c
			l.Name = fmt.Sprintf("%s-closed-%04d", class, c)
			out = append(out, l)
		}
		for _, pattern := range patterns {
			for _, length := range lengths {
				for _, most := range caps {
					for _, rate := range o.Rates {
						l := base
						l.Cell, l.Rate, l.InputLengths, l.MaxInflight = Cell{class, pattern}, rate, length, most
						l.Name = fmt.Sprintf("%s-%s-%09.4f", class, pattern, rate)
						if length != "" {
							l.Name += "-" + strings.Map(plainName, length)
						}
						if most > 0 {
							l.Name += fmt.Sprintf("-cap%d", most)
						}
						if pattern == PatternReal {
							l.From = max(t.plan.From, o.Warmup)
							l.Length = min(l.Length, t.traffic.Length-l.From)
							l.Scale = rate / t.traffic.Rate(class, l.From, l.From+l.Length)
						}
						out = append(out, l)
					}
				}
			}
		}
	}
	if o.Offline {
		l := base
		l.Cell, l.Offline, l.Name, l.Warmup = Cell{Mix, PatternReal}, true, "offline", 0
		out = append(out, l)
	}
	return out
}

// plainName keeps what a file's name may have.
func plainName(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
		return r
	}
	return '_'
}

func orOne(list []string, one string) []string {
	if len(list) == 0 {
		return []string{one}
	}
	return list
}

// Ratios are n rates from low to high, each the same times the one before.
func Ratios(low, high float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = low * math.Pow(high/low, float64(i)/float64(n-1))
	}
	return out
}
