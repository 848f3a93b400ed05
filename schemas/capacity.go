package schemas

// CapacityPoint is one run of a capacity test under one rule of the gate: a probe or confirmation of a search, or a
// rung of the ladder (rule "", no shares).
type CapacityPoint struct {
	RunID       string   `parquet:"run_id,dict"` // digest of the plan, gates and trace
	Layer       string   `parquet:"layer,dict"`  // ladder, search, soak, n_minus_1, sweep, pairs, micro
	Class       string   `parquet:"class,dict"`  // mix = all
	Pattern     string   `parquet:"pattern,dict"`
	Cluster     string   `parquet:"cluster,dict"` // full, n_minus_1, b
	Folder      string   `parquet:"folder"`
	Concurrency int64    `parquet:"concurrency"` // of a closed loop; 0 = open loop
	RequestRate *float64 `parquet:"request_rate,optional"`
	Achieved    float64  `parquet:"achieved_rate"` // completed requests/s
	OutputRate  float64  `parquet:"output_tokens_per_s"`
	Inflight    float64  `parquet:"inflight"` // mean
	MeasuredS   float64  `parquet:"measured_s"`
	Rule        string   `parquet:"rule,dict"`
	Allowed     *float64 `parquet:"allowed_share,optional"`
	Violations  *float64 `parquet:"violation_share,optional"`
	N           int64    `parquet:"n"`
	Verdict     string   `parquet:"verdict,dict"` // of the gate on this run alone
	Valid       bool     `parquet:"valid"`
}

// CapacityEnvelope is one row of a Capacity Envelope: a class under a pattern of arrivals.
type CapacityEnvelope struct {
	RunID       string   `parquet:"run_id,dict"`
	Class       string   `parquet:"class,dict"`
	Pattern     string   `parquet:"pattern,dict"`
	Load        string   `parquet:"load,dict"`         // in_mix, alone
	State       string   `parquet:"state,dict"`        // confirmed, inconclusive
	SafeQPS     *float64 `parquet:"safe_qps,optional"` // requests/s; null = not confirmed
	Provisional *float64 `parquet:"provisional,optional"`
	Lower       float64  `parquet:"lower"` // of the rate that just keeps the SLOs, requests/s
	Upper       float64  `parquet:"upper"`
	Decides     string   `parquet:"decides,dict"` // the rule that limits
	TestedS     float64  `parquet:"tested_s"`
	Offered10   float64  `parquet:"offered_p99_10s"`
	Offered60   float64  `parquet:"offered_p99_60s"`
	Headroom10  *float64 `parquet:"headroom_10s,optional"`
	Headroom60  *float64 `parquet:"headroom_60s,optional"`
	Full60      *float64 `parquet:"headroom_full_60s,optional"`
	Calibration *float64 `parquet:"calibration_factor,optional"`
	Folder      string   `parquet:"folder"` // of the confirming run
	ProfileID   *string  `parquet:"profile_id,optional"`
	TraceSHA256 *string  `parquet:"trace_sha256,optional"`
	DriftIDC    *float64 `parquet:"drift_idc_ratio,optional"` // IDC(600 s)/IDC(60 s) of the arrivals
}
