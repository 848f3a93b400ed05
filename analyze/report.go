package analyze

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailgate/schemas"
)

// Figure is a number of a report: NaN is unknown (JSON null), infinities are the strings "inf" and "-inf".
type Figure float64

// unknown is the Figure of what nothing tells.
var unknown = Figure(math.NaN())

// Known is false for NaN.
func (f Figure) Known() bool { return !math.IsNaN(float64(f)) }

// MarshalJSON writes null, a number, or "inf".
func (f Figure) MarshalJSON() ([]byte, error) {
	switch x := float64(f); {
	case math.IsNaN(x):
		return []byte("null"), nil
	case math.IsInf(x, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(x, -1):
		return []byte(`"-inf"`), nil
	default:
		return json.Marshal(x)
	}
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Figure) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "null":
		*f = unknown
		return nil
	case `"inf"`:
		*f = Figure(math.Inf(1))
		return nil
	case `"-inf"`:
		*f = Figure(math.Inf(-1))
		return nil
	}
	x, err := strconv.ParseFloat(string(data), 64)
	*f = Figure(x)
	return err
}

// pointer is the Figure as a nullable column.
func (f Figure) pointer() *float64 {
	if !f.Known() {
		return nil
	}
	x := float64(f)
	return &x
}

// Report is an analysis. Its fields are its JSON.
type Report struct {
	Definition string   `json:"definition"`
	Valid      *bool    `json:"valid"` // null: not judged, see Unchecked
	Invalid    []string `json:"invalid"`
	Unchecked  []string `json:"unchecked"`
	Runs       []RunRef `json:"runs"`

	Scheduled       int            `json:"scheduled"` // measured rows, sent or not
	OK              int            `json:"ok"`
	SuccessRate     Figure         `json:"success_rate"`
	Errors          map[string]int `json:"errors"` // rows by status, without ok and not_sent
	NotSent         int            `json:"not_sent"`
	WarmupRows      int            `json:"warmup_rows"`          // left out of everything else
	DrainRows       int            `json:"drain_rows,omitempty"` // cool-down: in success, not in tails
	MeasuredMinutes Figure         `json:"measured_minutes"`

	ExcludedNonStream int        `json:"excluded_non_stream"` // ok, but not streamed: no ttft, tpot, itl
	EarlyStopShare    Figure     `json:"early_stop_share"`
	Attainment        Figure     `json:"attainment"` // see Bucket
	Workload          Workload   `json:"workload"`
	Throughput        Throughput `json:"throughput"`
	// Warmup is the check of the run's start; absent where the run is too short for it.
	Warmup *Warmup `json:"warmup,omitempty"`
	// Recoveries are those of declared bursts.
	Recoveries []Recovery `json:"recoveries,omitempty"`

	Buckets []Bucket    `json:"buckets"` // the whole run first
	Gate    *GateReport `json:"gate"`
	// Rates are the runs apart, where several are given; see docs/report.md.
	Rates []RatePoint `json:"rates,omitempty"`
	// Servers is what the targets showed of themselves, where the runs have telemetry.
	Servers []ServerFacts `json:"servers,omitempty"`
	// Truth is the comparison with a truth table, where one was asked for.
	Truth *Truth `json:"truth,omitempty"`
	// Explain says why requests break limits, where it was asked for.
	Explain *Explanation `json:"explain,omitempty"`

	view *view
	gate *Gate
}

// RunRef names a run that the rows came from.
type RunRef struct {
	RunID     *string           `json:"run_id"` // null: a bare file that tells none
	StartedAt *time.Time        `json:"started_at"`
	Clock     *string           `json:"clock"` // real or virtual
	Labels    map[string]string `json:"labels"`
	Rows      int               `json:"rows"`
}

// Workload compares the output lengths that were asked for with those that came, over ok rows that tell both.
type Workload struct {
	N                 int    `json:"n"`
	OutputTokensRatio Figure `json:"output_tokens_ratio"` // got / asked
	OutputTokensKS    Figure `json:"output_tokens_ks"`    // Kolmogorov–Smirnov distance
}

// Throughput counts ok requests over the time from the first scheduled one to the last completion.
type Throughput struct {
	RequestsPerS     Figure `json:"requests_per_s"`
	OutputTokensPerS Figure `json:"output_tokens_per_s"`
	TotalTokensPerS  Figure `json:"total_tokens_per_s"`
	GoodputPerS      Figure `json:"goodput_per_s"` // ok and within every latency limit of the gate; null without one
	WindowS          Figure `json:"window_s"`
}

// Bucket holds the figures of one bucket.
type Bucket struct {
	By                Tuple  `json:"by"`
	Scheduled         int    `json:"scheduled"`
	OK                int    `json:"ok"`
	SuccessRate       Figure `json:"success_rate"`
	ExcludedNonStream int    `json:"excluded_non_stream"`
	EarlyStopShare    Figure `json:"early_stop_share"`
	// Attainment is the share of scheduled rows, those of the cool-down aside, that were ok and kept every latency limit
	// of the gate: the share that goodput has of the load. Null without a gate.
	Attainment Figure     `json:"attainment"`
	Throughput Throughput `json:"throughput"` // over the run's window, or over the slice of time
	Metrics    Metrics    `json:"metrics"`
}

// Metrics holds one Metric per entry of the JSON, in its order.
type Metrics []Metric

// Metric describes one metric of a bucket, in ms or tokens. Percentiles are those of ok rows; Tail counts failures
// as infinite.
type Metric struct {
	Name         string         `json:"-"` // ttft_ms …
	N            int            `json:"n"`
	Undefined    int            `json:"undefined"` // ok rows that do not have the metric
	Min          Figure         `json:"min"`
	Mean         Figure         `json:"mean"`
	P50          Figure         `json:"p50"`
	P90          Figure         `json:"p90"`
	P95          Figure         `json:"p95"`
	P99          Figure         `json:"p99"`
	P995         Figure         `json:"p995"`
	P999         Figure         `json:"p999"`
	Max          Figure         `json:"max"`
	Insufficient []string       `json:"insufficient"` // percentiles that n values are too few for
	Needs        map[string]int `json:"needs"`        // how many values each of them needs
	Tail         Tail           `json:"tail"`
	// OverRuns are intervals of the tail's percentiles over five or more independent runs.
	OverRuns RunIntervals `json:"over_runs,omitempty"`

	hist histogram
}

// Tail holds percentiles over all scheduled rows that could have the metric.
type Tail struct {
	N            int       `json:"n"`
	NEff         Figure    `json:"n_eff"` // independent values that n are worth at p95: n / tau*
	P50          Figure    `json:"p50"`
	P90          Figure    `json:"p90"`
	P95          Figure    `json:"p95"`
	P99          Figure    `json:"p99"`
	P995         Figure    `json:"p995"`
	P999         Figure    `json:"p999"`
	Insufficient []string  `json:"insufficient"`
	Intervals    Intervals `json:"intervals"` // at 95 %, two-sided
}

// GateReport is the verdict of a gate with its rules.
type GateReport struct {
	Verdict     string       `json:"verdict"`
	Provisional bool         `json:"provisional"` // a rule passed for now only: the run is short
	Confidence  string       `json:"confidence"`  // of the bounds, or "point"
	Origin      string       `json:"origin"`
	Rules       []RuleReport `json:"rules"`
}

// RuleReport is the verdict of one rule on its bucket. Observed, Lower and Upper are in the rule's own unit (ms
// for times); the shares are those of values beyond the limit.
type RuleReport struct {
	Rule           string       `json:"rule"`
	By             Tuple        `json:"by"`
	Limit          string       `json:"limit"`
	Observed       Figure       `json:"observed"`
	Lower          Figure       `json:"lower"`
	Upper          Figure       `json:"upper"`
	N              int          `json:"n"`
	NEff           Figure       `json:"n_eff"`
	ViolationShare Figure       `json:"violation_share"`
	ViolationUpper Figure       `json:"violation_upper"`
	AllowedShare   Figure       `json:"allowed_share"`
	Verdict        string       `json:"verdict"`
	Provisional    bool         `json:"provisional"`
	Reason         string       `json:"reason"`
	CrossChecks    *CrossChecks `json:"cross_checks"`  // null for rules without them: gaps, shares, growth, point
	NeedsMinutes   Figure       `json:"needs_minutes"` // more than were measured; null when it passed, failed or never can pass
}

// Verdict is that of the gate: pass, fail, invalid or inconclusive; "" without a gate.
func (r *Report) Verdict() string {
	if r.Gate == nil {
		return ""
	}
	return r.Gate.Verdict
}

// runID names the runs of the report in one word for the tables, each once.
func (r *Report) runID() string {
	var ids []string
	for _, run := range r.Runs {
		if run.RunID != nil && !slices.Contains(ids, *run.RunID) {
			ids = append(ids, *run.RunID)
		}
	}
	return strings.Join(ids, "+")
}

// Tables returns the report as rows of the buckets and verdicts tables; see RunRows for the runs.
func (r *Report) Tables() ([]schemas.Bucket, []schemas.Verdict) {
	id := r.runID()
	var buckets []schemas.Bucket
	for _, b := range r.Buckets {
		for _, m := range b.Metrics {
			buckets = append(buckets, b.row(id, m))
		}
	}
	if r.Gate == nil {
		return buckets, nil
	}
	verdicts := make([]schemas.Verdict, 0, len(r.Gate.Rules))
	for _, v := range r.Gate.Rules {
		row := schemas.Verdict{
			RunID: id, Rule: v.Rule, By: v.By.json(), Limit: v.Limit, Observed: v.Observed.pointer(),
			Lower: v.Lower.pointer(), Upper: v.Upper.pointer(), N: int64(v.N), NEff: v.NEff.pointer(), Violations: v.ViolationShare.pointer(),
			Allowed: v.AllowedShare.pointer(), Verdict: v.Verdict, Provisional: v.Provisional, NeedsMinutes: v.NeedsMinutes.pointer(),
		}
		if v.Reason != "" {
			row.Reason = &v.Reason
		}
		verdicts = append(verdicts, row)
	}
	return buckets, verdicts
}

// row is one metric of a bucket as a row of the buckets table.
func (b Bucket) row(runID string, m Metric) schemas.Bucket {
	t := b.Throughput
	row := schemas.Bucket{
		RunID: runID, By: b.By.json(), Metric: m.Name, Scheduled: int64(b.Scheduled), OK: int64(b.OK),
		SuccessRate: b.SuccessRate.pointer(), N: int64(m.N), Undefined: int64(m.Undefined),
		Min: m.Min.pointer(), Mean: m.Mean.pointer(), P50: m.P50.pointer(), P90: m.P90.pointer(),
		P95: m.P95.pointer(), P99: m.P99.pointer(), P995: m.P995.pointer(), P999: m.P999.pointer(),
		Max: m.Max.pointer(), TailN: int64(m.Tail.N), TailNEff: m.Tail.NEff.pointer(), TailP50: m.Tail.P50.pointer(), TailP90: m.Tail.P90.pointer(),
		TailP95: m.Tail.P95.pointer(), TailP99: m.Tail.P99.pointer(), TailP995: m.Tail.P995.pointer(), TailP999: m.Tail.P999.pointer(),
		Attainment: b.Attainment.pointer(), WindowS: t.WindowS.pointer(), RequestsPerS: t.RequestsPerS.pointer(),
		OutputTokensPerS: t.OutputTokensPerS.pointer(), TotalTokensPerS: t.TotalTokensPerS.pointer(), GoodputPerS: t.GoodputPerS.pointer(),
		Hist: m.hist.bins, HdrV2: m.hist.hdr,
	}
	ends := map[string][2]**float64{
		"p50": {&row.TailP50Lower, &row.TailP50Upper}, "p90": {&row.TailP90Lower, &row.TailP90Upper}, "p95": {&row.TailP95Lower, &row.TailP95Upper},
		"p99": {&row.TailP99Lower, &row.TailP99Upper}, "p995": {&row.TailP995Lower, &row.TailP995Upper}, "p999": {&row.TailP999Lower, &row.TailP999Upper},
	}
	for _, in := range m.Tail.Intervals {
		end := ends[in.Name]
		*end[0], *end[1] = in.Lower.pointer(), in.Upper.pointer()
	}
	return row
}
