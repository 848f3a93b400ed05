package schemas

import "time"

// Run is one run: a row of the runs table.
type Run struct {
	RunID       string            `parquet:"run_id"`                            // id of the run, as in its manifest
	StartedAt   time.Time         `parquet:"started_at,timestamp(microsecond)"` // when the run began
	Labels      map[string]string `parquet:"labels"`                            // what --label said of the run; empty = nothing
	Model       *string           `parquet:"model,optional"`                    // label model; null = not given
	Engine      *string           `parquet:"engine,optional"`                   // label engine; null = not given
	GPU         *string           `parquet:"gpu,optional"`                      // label gpu; null = not given
	GPUCount    *string           `parquet:"gpu_count,optional"`                // label gpu_count; null = not given
	Parallelism *string           `parquet:"parallelism,optional"`              // label parallelism; null = not given
	TraceSHA256 string            `parquet:"trace_sha256"`                      // digest of the trace that was replayed; "" = not known
	Settings    string            `parquet:"settings"`                          // JSON
	Gate        *string           `parquet:"gate,optional"`                     // the gate as it was read; null = none was given
	Verdict     *string           `parquet:"verdict,optional"`                  // verdict of the gate: pass, fail, invalid, inconclusive; null = no gate
}

// HistBin is one bin of a sparse histogram: n values up to upper_us and above the upper end of the bin below.
type HistBin struct {
	UpperUs int64 `parquet:"upper_us"` // upper end of the bin
	N       int64 `parquet:"n"`        // values in the bin
}

// Bucket is one bucket × metric of an analysis.
type Bucket struct {
	RunID       string   `parquet:"run_id,dict"`                            // id of the run
	By          string   `parquet:"by,dict"`                                // JSON object, {} = the whole run
	Metric      string   `parquet:"metric,dict"`                            // name of the metric, with its unit
	Scheduled   int64    `parquet:"scheduled"`                              // requests that were scheduled in the bucket
	OK          int64    `parquet:"ok"`                                     // requests that succeeded
	SuccessRate *float64 `parquet:"success_rate,optional"`                  // ok / scheduled; null = nothing was scheduled
	N           int64    `parquet:"n"`                                      // values of the plain percentiles: successful requests for which the metric is defined
	Undefined   int64    `parquet:"undefined"`                              // successful requests for which it is not
	Min         *float64 `parquet:"min,optional" unit:"of the metric"`      // in the metric's unit: ms, or tokens
	Mean        *float64 `parquet:"mean,optional" unit:"of the metric"`     // mean of the n values; null = n is 0
	P50         *float64 `parquet:"p50,optional" unit:"of the metric"`      // nearest rank of the n values; null = n is 0
	P90         *float64 `parquet:"p90,optional" unit:"of the metric"`      // as p50
	P95         *float64 `parquet:"p95,optional" unit:"of the metric"`      // as p50
	P99         *float64 `parquet:"p99,optional" unit:"of the metric"`      // as p50
	P995        *float64 `parquet:"p995,optional" unit:"of the metric"`     // as p50
	P999        *float64 `parquet:"p999,optional" unit:"of the metric"`     // as p50
	Max         *float64 `parquet:"max,optional" unit:"of the metric"`      // largest of the n values; null = n is 0
	TailN       int64    `parquet:"tail_n"`                                 // values of the tail percentiles: all scheduled requests, failures as infinite
	TailP50     *float64 `parquet:"tail_p50,optional" unit:"of the metric"` // +Inf where the rank falls on a failure
	TailP95     *float64 `parquet:"tail_p95,optional" unit:"of the metric"` // as tail_p50
	TailP99     *float64 `parquet:"tail_p99,optional" unit:"of the metric"` // as tail_p50

	TailP90  *float64 `parquet:"tail_p90,optional" unit:"of the metric"`  // as tail_p50
	TailP995 *float64 `parquet:"tail_p995,optional" unit:"of the metric"` // as tail_p50
	TailP999 *float64 `parquet:"tail_p999,optional" unit:"of the metric"` // as tail_p50
	TailNEff *float64 `parquet:"tail_n_eff,optional"`                     // independent values that tail_n are worth at p95
	// Ends of the 95 % intervals: lower null = not bounded from below, upper +Inf = not bounded from above.
	TailP50Lower  *float64 `parquet:"tail_p50_lower,optional" unit:"of the metric"`
	TailP50Upper  *float64 `parquet:"tail_p50_upper,optional" unit:"of the metric"`  // upper end
	TailP90Lower  *float64 `parquet:"tail_p90_lower,optional" unit:"of the metric"`  // lower end, as tail_p50_lower
	TailP90Upper  *float64 `parquet:"tail_p90_upper,optional" unit:"of the metric"`  // upper end, as tail_p50_upper
	TailP95Lower  *float64 `parquet:"tail_p95_lower,optional" unit:"of the metric"`  // lower end, as tail_p50_lower
	TailP95Upper  *float64 `parquet:"tail_p95_upper,optional" unit:"of the metric"`  // upper end, as tail_p50_upper
	TailP99Lower  *float64 `parquet:"tail_p99_lower,optional" unit:"of the metric"`  // lower end, as tail_p50_lower
	TailP99Upper  *float64 `parquet:"tail_p99_upper,optional" unit:"of the metric"`  // upper end, as tail_p50_upper
	TailP995Lower *float64 `parquet:"tail_p995_lower,optional" unit:"of the metric"` // lower end, as tail_p50_lower
	TailP995Upper *float64 `parquet:"tail_p995_upper,optional" unit:"of the metric"` // upper end, as tail_p50_upper
	TailP999Lower *float64 `parquet:"tail_p999_lower,optional" unit:"of the metric"` // lower end, as tail_p50_lower
	TailP999Upper *float64 `parquet:"tail_p999_upper,optional" unit:"of the metric"` // upper end, as tail_p50_upper

	Attainment       *float64 `parquet:"attainment,optional"`          // share of scheduled requests within every latency limit; null without a gate
	WindowS          *float64 `parquet:"window_s,optional"`            // time over which the rates are taken; null = no time passed
	RequestsPerS     *float64 `parquet:"requests_per_s,optional"`      // successful requests a second; null = no time passed
	OutputTokensPerS *float64 `parquet:"output_tokens_per_s,optional"` // output tokens a second; null = not told by usage
	TotalTokensPerS  *float64 `parquet:"total_tokens_per_s,optional"`  // input and output tokens a second; null = not told by usage
	GoodputPerS      *float64 `parquet:"goodput_per_s,optional"`       // requests a second within every limit of the gate; null = no gate

	// The finite values of the tail, for merging over runs; empty for counts of tokens.
	Hist  []HistBin `parquet:"hist,list"`
	HdrV2 string    `parquet:"hdr_v2"` // the same as HdrHistogram V2 (compressed), in base64; "" = none
}

// Verdict is one rule × bucket of a gate.
type Verdict struct {
	RunID        string   `parquet:"run_id,dict"`                          // id of the run
	Rule         string   `parquet:"rule,dict"`                            // rule of the gate, such as ttft_p99
	By           string   `parquet:"by,dict"`                              // bucket as a JSON object; {} = the whole run
	Limit        string   `parquet:"limit,dict"`                           // the limit as written
	Observed     *float64 `parquet:"observed,optional" unit:"of the rule"` // the run's own figure in the rule's unit; null = there is none
	Upper        *float64 `parquet:"upper,optional" unit:"of the rule"`    // upper end of its interval, in the same unit; null = not bounded or not known
	Lower        *float64 `parquet:"lower,optional" unit:"of the rule"`    // lower end; null = not bounded or not known
	N            int64    `parquet:"n"`                                    // values that the rule is judged on
	NEff         *float64 `parquet:"n_eff,optional"`                       // independent values that n are worth; null = not estimated
	Violations   *float64 `parquet:"violation_share,optional"`             // share of the values that break the limit; null = the rule has none
	Allowed      *float64 `parquet:"allowed_share,optional"`               // share that the rule allows; null = the rule has none
	Verdict      string   `parquet:"verdict,dict"`                         // pass, fail, inconclusive, invalid
	Provisional  bool     `parquet:"provisional"`                          // the run is too short for a final verdict
	Reason       *string  `parquet:"reason,optional"`                      // why the verdict is not pass; null = no more to say
	NeedsMinutes *float64 `parquet:"needs_minutes,optional"`               // minutes of measuring still needed; null = none, or more minutes do not help
}
