package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tailgate/analyze"
	"tailgate/schemas"
)

// Envelope is what a capacity test found, with its limits: it holds for the traffic, the cluster and the SLOs that it
// names, and for no other.
type Envelope struct {
	Definition  string            `json:"definition"`
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Digest      string            `json:"digest"` // of plan, gates and trace
	TraceSHA256 string            `json:"trace_sha256"`
	Profile     string            `json:"profile"` // its path in the plan; "" = made of the trace
	ProfileID   string            `json:"profile_id"`
	SLOs        []string          `json:"slos"`
	Rows        []EnvelopeRow     `json:"rows"`
	Ladder      *Ladder           `json:"ladder"`
	Soak        *Soak             `json:"soak"`
	NMinus1     *NMinus1          `json:"n_minus_1"`
	Pairs       []Paired          `json:"pairs,omitempty"`
	Micro       *Micro            `json:"micro,omitempty"`
	// BurstSensitivity is Safe QPS with bursty over that with Poisson arrivals, by class; a class without both is missing.
	BurstSensitivity map[string]float64 `json:"burst_sensitivity"`
	Growth           float64            `json:"growth"`
	// Replicas is how many the whole cluster had; 0 = not known.
	Replicas int `json:"replicas"`
	// Tested is the traffic of the test; null in envelopes of earlier versions.
	Tested *Band `json:"tested"`
	// Calibration is by how much the test's p99 latencies lie over those of production; null = not known.
	Calibration *float64 `json:"calibration_factor"`
	// Pitfalls are the ways in which a reader of these figures could be misled.
	Pitfalls []string `json:"pitfalls"`
	Runs     []string `json:"runs"`

	searches []*SafeQPS
	points   []schemas.CapacityPoint
}

// EnvelopeRow is one class under one pattern.
type EnvelopeRow struct {
	Class   string  `json:"class"`
	Pattern string  `json:"pattern"`
	Load    string  `json:"load"`
	State   string  `json:"state"`
	SafeQPS float64 `json:"safe_qps"`    // 0 = not confirmed
	Bound   float64 `json:"provisional"` // the bound of the fit where nothing is confirmed
	Lower   float64 `json:"lower"`       // 90 % interval of the rate that just keeps the SLOs
	Upper   float64 `json:"upper"`       //
	Decides string  `json:"decides"`     // the rule that limits
	Tested  float64 `json:"tested_s"`    // length of the confirming run
	Window  string  `json:"window"`      // for which the rate holds; "" = stationary arrivals
	// Drift is IDC(600 s)/IDC(60 s) of the arrivals; null = not told.
	Drift     *float64 `json:"drift_idc_ratio"`
	Offered10 float64  `json:"offered_p99_10s"`
	Offered60 float64  `json:"offered_p99_60s"`
	// Headroom is the rate with one replica less over the offered p99 rate of the 10 s and the 60 s bins; null where
	// there is no such rate. HeadroomFull is that of the whole cluster.
	Headroom10   *float64 `json:"headroom_10s"`
	Headroom60   *float64 `json:"headroom_60s"`
	HeadroomFull *float64 `json:"headroom_full_60s"`
	NeedsMinutes float64  `json:"needs_minutes"`
	Warnings     []string `json:"warnings"`
	Run          string   `json:"run"`
}

func (t *Test) envelope() *Envelope {
	e := &Envelope{Definition: schemas.Definition, Name: t.plan.Name, Labels: t.plan.Labels, Digest: t.journal.PlanSHA256, Profile: t.plan.Profile,
		Replicas: t.facts.Replicas, Tested: t.traffic.Band(t.facts.Hits), BurstSensitivity: map[string]float64{}, Growth: t.plan.Growth, Pitfalls: []string{}}
	for _, r := range t.gate.Rules {
		text := r.Name + " " + r.Limit.Text
		if len(r.By) > 0 {
			text += " (" + r.By.String() + ")"
		}
		e.SLOs = append(e.SLOs, text)
	}
	return e
}

func (e *Envelope) add(s *SafeQPS) { e.searches = append(e.searches, s) }

func (e *Envelope) row(c Cell) *SafeQPS {
	i := slices.IndexFunc(e.searches, func(s *SafeQPS) bool { return s.Cell == c })
	return e.searches[i]
}

// finish makes the rows and what stands beside them.
func (e *Envelope) finish(t *Test) {
	for _, s := range e.searches {
		r := EnvelopeRow{Class: s.Cell.Class, Pattern: s.Cell.Pattern, Load: s.Load, State: s.State, SafeQPS: s.SafeRate, Bound: s.Provisional,
			Tested: s.TestedSeconds, NeedsMinutes: s.NeedsMinutes, Warnings: s.Warnings, Run: s.Confirmed, Drift: s.Drift,
			Offered10: t.traffic.Offered(s.Cell.Class, 10*time.Second), Offered60: t.traffic.Offered(s.Cell.Class, time.Minute)}
		for _, rule := range s.Rules {
			if rule.Decides {
				r.Decides, r.Lower, r.Upper = rule.Rule, rule.Lower, rule.Upper
			}
		}
		if s.SameWindow {
			of := "the trace"
			if s.Cell.Pattern != PatternReal {
				of = "one draw"
			}
			r.Window = fmt.Sprintf("%.0f s from %.0f s of %s", s.WindowSeconds, s.WindowFrom, of)
		}
		r.HeadroomFull = headroom(s.SafeRate, r.Offered60)
		if n := e.NMinus1; n != nil && n.Holds && s.Cell.Class == Mix {
			r.Headroom10, r.Headroom60 = headroom(n.Rate, r.Offered10), headroom(n.Rate, r.Offered60)
		}
		e.Rows = append(e.Rows, r)
	}
	for _, bursty := range e.searches {
		for _, plain := range e.searches {
			if bursty.Cell == (Cell{plain.Cell.Class, PatternBursty}) && plain.Cell.Pattern == PatternPoisson && bursty.SafeRate > 0 && plain.SafeRate > 0 {
				e.BurstSensitivity[plain.Cell.Class] = bursty.SafeRate / plain.SafeRate
			}
		}
	}
	for _, m := range t.journal.Runs {
		e.Runs = append(e.Runs, m.Folder)
	}
	e.Calibration = calibration(t.backtest)
	e.Pitfalls = pitfalls(e, t)
	for _, m := range t.journal.Runs {
		e.points = append(e.points, m.points(e.Digest, t.gateOf(m.Load).ShareRules())...)
	}
}

// calibration is the p99 ratio of a backtest that is furthest from 1; null where none is known.
func calibration(b *analyze.Backtested) *float64 {
	if b == nil {
		return nil
	}
	factors := b.Factors
	if b.Worst != nil {
		factors = []analyze.Factor{*b.Worst}
	}
	var out *float64
	for _, f := range factors {
		if x := float64(f.Ratio); known(f.Ratio) && x > 0 && (out == nil || math.Abs(math.Log(x)) > math.Abs(math.Log(*out))) {
			out = &x
		}
	}
	return out
}

// points are the rows of a run: one for each rule that was counted, else one.
func (m *Made) points(digest string, rules []analyze.ShareRule) []schemas.CapacityPoint {
	p := schemas.CapacityPoint{RunID: digest, Layer: m.Load.Layer, Class: m.Load.Cell.Class, Pattern: m.Load.Cell.Pattern, Cluster: m.Load.Cluster,
		Folder: m.Folder, Concurrency: int64(m.Load.Concurrency), Achieved: m.Facts.RequestsPerS, OutputRate: m.Facts.OutputTokensPerS,
		Inflight: m.Facts.Inflight, MeasuredS: m.Facts.Seconds, N: int64(m.Facts.Scheduled), Verdict: m.Verdict, Valid: len(m.Invalid) == 0}
	if m.Load.Concurrency == 0 {
		p.RequestRate = &m.Load.Rate
	}
	if len(m.Counts) == 0 {
		return []schemas.CapacityPoint{p}
	}
	var out []schemas.CapacityPoint
	for i, counts := range m.Counts {
		share, n := Point{Counts: [][]Count{counts}}.share(0)
		p.Rule, p.Allowed, p.Violations, p.N = rules[i].Name, &rules[i].Allowed, &share, int64(n)
		out = append(out, p)
	}
	return out
}

// The lengths in seconds that a confirming run must have: 28 min, and with a limit on p99 or beyond 60 min.
const (
	confirmP95 = 28 * 60
	confirmP99 = 60 * 60
)

// pitfalls names what the test did not look at.
func pitfalls(e *Envelope, t *Test) []string {
	out := []string{}
	say := func(when bool, text string) {
		if when {
			out = append(out, text)
		}
	}
	strict, tails := false, false
	for _, r := range t.gate.ShareRules() {
		tails = true
		strict = strict || r.Minutes > 30
	}
	need := float64(confirmP95)
	if strict {
		need = confirmP99
	}
	bursts, pinned, oneLength, otherLengths := false, false, true, false
	for _, m := range t.journal.Runs {
		bursts = bursts || len(m.Load.Bursts) > 0 || m.Load.Concurrency == 0 && (m.Load.Cell.Pattern == PatternReal || m.Load.Cell.Pattern == PatternBursty)
		pinned = pinned || m.Facts.OutputMode != "" && m.Facts.OutputMode != "natural"
		oneLength = oneLength && (m.Facts.OneLength || m.Load.Layer == LayerMicro)
		if r := m.Facts.OutputRatio; m.Load.Concurrency == 0 && r > 0 && (r < .98 || r > 1.02) {
			otherLengths = true
		}
	}
	short := false
	for _, r := range e.Rows {
		short = short || r.State == SearchConfirmed && r.Tested < .99*need
	}
	say(!slices.ContainsFunc(t.journal.Runs, func(m Made) bool { return m.Load.Concurrency == 0 }), "closed loop only: slow answers held back the load")
	say(!tails, "means only: the gate has no limit on a tail")
	say(oneLength, "one length only: all prompts are of the same length, which no traffic is")
	say(pinned, "ignore_eos: output lengths were pinned, so the engine never stopped by itself")
	say(!bursts, "no burst: neither real nor bursty arrivals were tested, and the soak had no burst")
	say(short, fmt.Sprintf("too short: a confirming run lasted less than %.0f min", need/60))
	say(otherLengths, "not this workload: the output lengths that came differ from those of the trace by more than 2 %")
	say(t.backtest == nil, "not compared with production: no backtest of a replay at 1.0x was given (calibration)")
	if b := t.backtest; b != nil && b.Verdict != analyze.Calibrated {
		text := "the backtest says: " + strings.ReplaceAll(b.Verdict, "_", " ")
		if e.Calibration != nil {
			text += fmt.Sprintf(", p99 is %.3g times that of production", *e.Calibration)
		}
		say(true, text)
	}
	say(e.NMinus1 == nil, "the loss of a replica was not tested")
	say(len(missingLabels(t.plan.Labels)) > 0, fmt.Sprintf("labels are missing for a claim: %v", missingLabels(t.plan.Labels)))
	return out
}

// required are the labels without which a rate is nobody's.
var required = [...]string{"model", "engine", "gpu", "gpu_count", "parallelism"}

func missingLabels(labels map[string]string) []string {
	var out []string
	for _, l := range required {
		if labels[l] == "" {
			out = append(out, l)
		}
	}
	return out
}
