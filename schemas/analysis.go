package schemas

import "time"

// Run is one run: a row of the runs table.
type Run struct {
	RunID       string            `parquet:"run_id"`
	StartedAt   time.Time         `parquet:"started_at,timestamp(microsecond)"`
	Labels      map[string]string `parquet:"labels"`
	Model       *string           `parquet:"model,optional"`
	Engine      *string           `parquet:"engine,optional"`
	GPU         *string           `parquet:"gpu,optional"`
	GPUCount    *string           `parquet:"gpu_count,optional"`
	Parallelism *string           `parquet:"parallelism,optional"`
	TraceSHA256 string            `parquet:"trace_sha256"`
	Settings    string            `parquet:"settings"` // JSON
	Gate        *string           `parquet:"gate,optional"`
	Verdict     *string           `parquet:"verdict,optional"`
}

// HistBin is one bin of a sparse histogram: n values up to upper_us and above the upper end of the bin below.
type HistBin struct {
	UpperUs int64 `parquet:"upper_us"`
	N       int64 `parquet:"n"`
}

// Bucket is one bucket × metric of an analysis.
type Bucket struct {
	RunID       string   `parquet:"run_id,dict"`
	By          string   `parquet:"by,dict"` // JSON object, {} = the whole run
	Metric      string   `parquet:"metric,dict"`
	Scheduled   int64    `parquet:"scheduled"`
	OK          int64    `parquet:"ok"`
	SuccessRate *float64 `parquet:"success_rate,optional"`
	N           int64    `parquet:"n"`
	Undefined   int64    `parquet:"undefined"`
	Min         *float64 `parquet:"min,optional"` // in the metric's unit: ms, or tokens
	Mean        *float64 `parquet:"mean,optional"`
	P50         *float64 `parquet:"p50,optional"`
	P90         *float64 `parquet:"p90,optional"`
	P95         *float64 `parquet:"p95,optional"`
	P99         *float64 `parquet:"p99,optional"`
	P995        *float64 `parquet:"p995,optional"`
	P999        *float64 `parquet:"p999,optional"`
	Max         *float64 `parquet:"max,optional"`
	TailN       int64    `parquet:"tail_n"`
	TailP50     *float64 `parquet:"tail_p50,optional"` // +Inf where the rank falls on a failure
	TailP95     *float64 `parquet:"tail_p95,optional"`
	TailP99     *float64 `parquet:"tail_p99,optional"`

	TailP90  *float64 `parquet:"tail_p90,optional"`
	TailP995 *float64 `parquet:"tail_p995,optional"`
	TailP999 *float64 `parquet:"tail_p999,optional"`
	TailNEff *float64 `parquet:"tail_n_eff,optional"` // independent values that tail_n are worth at p95
	// Ends of the 95 % intervals: lower null = not bounded from below, upper +Inf = not bounded from above.
	TailP50Lower  *float64 `parquet:"tail_p50_lower,optional"`
	TailP50Upper  *float64 `parquet:"tail_p50_upper,optional"`
	TailP90Lower  *float64 `parquet:"tail_p90_lower,optional"`
	TailP90Upper  *float64 `parquet:"tail_p90_upper,optional"`
	TailP95Lower  *float64 `parquet:"tail_p95_lower,optional"`
	TailP95Upper  *float64 `parquet:"tail_p95_upper,optional"`
	TailP99Lower  *float64 `parquet:"tail_p99_lower,optional"`
	TailP99Upper  *float64 `parquet:"tail_p99_upper,optional"`
	TailP995Lower *float64 `parquet:"tail_p995_lower,optional"`
	TailP995Upper *float64 `parquet:"tail_p995_upper,optional"`
	TailP999Lower *float64 `parquet:"tail_p999_lower,optional"`
	TailP999Upper *float64 `parquet:"tail_p999_upper,optional"`

	Attainment       *float64 `parquet:"attainment,optional"` // share of scheduled requests within every latency limit; null without a gate
	WindowS          *float64 `parquet:"window_s,optional"`
	RequestsPerS     *float64 `parquet:"requests_per_s,optional"`
	OutputTokensPerS *float64 `parquet:"output_tokens_per_s,optional"`
	TotalTokensPerS  *float64 `parquet:"total_tokens_per_s,optional"`
	GoodputPerS      *float64 `parquet:"goodput_per_s,optional"`

	// The finite values of the tail, for merging over runs; empty for counts of tokens.
	Hist  []HistBin `parquet:"hist,list"`
	HdrV2 string    `parquet:"hdr_v2"` // the same as HdrHistogram V2 (compressed), in base64; "" = none
}

// Verdict is one rule × bucket of a gate.
type Verdict struct {
	RunID        string   `parquet:"run_id,dict"`
	Rule         string   `parquet:"rule,dict"`
	By           string   `parquet:"by,dict"`
	Limit        string   `parquet:"limit,dict"`
	Observed     *float64 `parquet:"observed,optional"`
	Upper        *float64 `parquet:"upper,optional"`
	Lower        *float64 `parquet:"lower,optional"`
	N            int64    `parquet:"n"`
	NEff         *float64 `parquet:"n_eff,optional"`
	Violations   *float64 `parquet:"violation_share,optional"`
	Allowed      *float64 `parquet:"allowed_share,optional"`
	Verdict      string   `parquet:"verdict,dict"`
	Provisional  bool     `parquet:"provisional"`
	Reason       *string  `parquet:"reason,optional"`
	NeedsMinutes *float64 `parquet:"needs_minutes,optional"`
}
