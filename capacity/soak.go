package capacity

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"tailgate/analyze"
)

// Soak is the long run with bursts.
type Soak struct {
	Rate    float64     `json:"rate"`
	Seconds float64     `json:"seconds"`
	Bursts  []SoakBurst `json:"bursts"`
	Verdict string      `json:"verdict"`
	Tails   []Figure    `json:"tails"`
	Run     string      `json:"run"`
	// Recoveries are how long after each burst the run was back inside its baseline.
	Recoveries []analyze.Recovery `json:"recoveries"`
	// Drift compares the first part of the soak with the last: an hour each, or a third of a shorter one.
	Drift []Drift `json:"drift"`
}

// Drift is one figure at the begin and at the end of a soak; −1 = nobody told it, or infinite.
type Drift struct {
	Figure string  `json:"figure"`
	First  float64 `json:"first"`
	Last   float64 `json:"last"`
}

// SoakBurst is a burst of the soak. Seconds count from the end of the warm-up.
type SoakBurst struct {
	At  float64 `json:"at_s"`
	For float64 `json:"for_s"`
	X   float64 `json:"x"`
}

// Defaults of the soak.
const (
	soakLength = time.Hour
	soakShare  = .8
)

// steadyPattern is how a cell's traffic is sent where it must be steady: like the cell itself when that is
// synthetic, else with Poisson arrivals.
func steadyPattern(c Cell) Cell {
	if c.Pattern == PatternReal {
		c.Pattern = PatternPoisson
	}
	return c
}

func (t *Test) soak(ctx context.Context, of *SafeQPS) (*Soak, error) {
	o := *t.plan.Soak
	o.Length, o.Share = cmp.Or(o.Length, soakLength), cmp.Or(o.Share, soakShare)
	l := Load{Name: "soak", Layer: LayerSoak, Cell: steadyPattern(of.Cell), Cluster: ClusterFull, Rate: o.Share * of.SafeRate,
		Warmup: t.warmup(), Length: o.Length, Seed: t.plan.Seed, Bursts: o.Bursts}
	m, err := t.make(ctx, l, 0)
	if err != nil {
		return nil, err
	}
	t.note(fmt.Sprintf("soak: %.4g/s for %v: %s", l.Rate, o.Length, m.Verdict))
	s := &Soak{Rate: l.Rate, Seconds: m.Facts.Seconds, Verdict: m.Verdict, Tails: m.Facts.Tails, Run: m.Folder, Recoveries: m.Facts.Recoveries}
	for _, b := range o.Bursts {
		s.Bursts = append(s.Bursts, SoakBurst{b.At.Seconds(), b.For.Seconds(), b.X})
	}
	s.Drift, err = t.drift(ctx, m.Folder, l)
	return s, err
}

// drift compares the ends of a run.
func (t *Test) drift(ctx context.Context, folder string, l Load) ([]Drift, error) {
	dir := filepath.Join(t.dir, folder)
	d, err := analyze.Load(ctx, []string{dir})
	if err != nil {
		return nil, err
	}
	samples, err := telemetryOf(dir)
	if err != nil {
		return nil, err
	}
	part := min(time.Hour, l.Length/3)
	begin, end := l.Warmup, l.Warmup+l.Length
	first, last := d.TailsBetween(begin, begin+part, ""), d.TailsBetween(end-part, end, "")
	finite := func(f analyze.Figure) float64 {
		if !known(f) {
			return -1
		}
		return float64(f)
	}
	var out []Drift
	for i := range first {
		out = append(out, Drift{first[i].Metric + "_p95_ms", finite(first[i].P95), finite(last[i].P95)},
			Drift{first[i].Metric + "_p99_ms", finite(first[i].P99), finite(last[i].P99)})
	}
	a, b := gaugesOf(samples, begin, begin+part), gaugesOf(samples, end-part, end)
	return append(out, Drift{"kv_usage", a.KVUsage, b.KVUsage}, Drift{"prefix_hits", a.PrefixHits, b.PrefixHits}, Drift{"preemptions", a.Preemptions, b.Preemptions},
		Drift{"waiting", a.Waiting, b.Waiting}, Drift{"rss_bytes", a.RSSBytes, b.RSSBytes}, Drift{"hbm_bytes", a.HBMBytes, b.HBMBytes},
		Drift{"connections_opened", a.Connections, b.Connections}), nil
}

// recovered tells that the soak was back inside its baseline after each of its bursts.
func (s *Soak) recovered() bool {
	for _, r := range s.Recoveries {
		if !known(r.InflightS) || !known(r.TTFTS) {
			return false
		}
	}
	return len(s.Recoveries) > 0
}

// recoveryText tells the slowest way back.
func (s *Soak) recoveryText() string {
	if len(s.Recoveries) == 0 {
		return "no burst"
	}
	if !s.recovered() {
		return "not seen back after every burst"
	}
	slowest := 0.0
	for _, r := range s.Recoveries {
		slowest = max(slowest, float64(r.InflightS), float64(r.TTFTS))
	}
	return fmt.Sprintf("back within %.0f s of every burst", slowest)
}
