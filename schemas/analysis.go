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
}

// Verdict is one rule × bucket of a gate.
type Verdict struct {
	RunID        string   `parquet:"run_id,dict"`
	Rule         string   `parquet:"rule,dict"`
	By           string   `parquet:"by,dict"`
	Limit        string   `parquet:"limit,dict"`
	Observed     *float64 `parquet:"observed,optional"`
	Upper        *float64 `parquet:"upper,optional"`
	Verdict      string   `parquet:"verdict,dict"`
	Provisional  bool     `parquet:"provisional"`
	Reason       *string  `parquet:"reason,optional"`
	NeedsMinutes *float64 `parquet:"needs_minutes,optional"`
}
