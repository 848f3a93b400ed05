package schemas

// CapacityPoint is one run of a capacity test under one rule of the gate: a probe or confirmation of a search, or a
// rung of the ladder (rule "", no shares).
type CapacityPoint struct {
	RunID       string   `parquet:"run_id,dict"`              // digest of the plan, gates and trace
	Layer       string   `parquet:"layer,dict"`               // ladder, search, soak, n_minus_1, sweep, pairs, micro
	Class       string   `parquet:"class,dict"`               // mix = all
	Pattern     string   `parquet:"pattern,dict"`             // arrivals: real, poisson, smooth, bursty
	Cluster     string   `parquet:"cluster,dict"`             // full, n_minus_1, b
	Folder      string   `parquet:"folder"`                   // folder of the run, relative to the test's
	Concurrency int64    `parquet:"concurrency"`              // of a closed loop; 0 = open loop
	RequestRate *float64 `parquet:"request_rate,optional"`    // offered rate; null = a closed loop, which offers none
	Achieved    float64  `parquet:"achieved_rate"`            // completed requests/s
	OutputRate  float64  `parquet:"output_tokens_per_s"`      // output tokens a second
	Inflight    float64  `parquet:"inflight" unit:"requests"` // mean
	MeasuredS   float64  `parquet:"measured_s"`               // length of the measured part
	Rule        string   `parquet:"rule,dict"`                // rule of the gate; "" = none
	Allowed     *float64 `parquet:"allowed_share,optional"`   // share of violations that the rule allows; null = no rule
	Violations  *float64 `parquet:"violation_share,optional"` // share that was seen; null = no rule
	N           int64    `parquet:"n"`                        // requests that were judged
	Verdict     string   `parquet:"verdict,dict"`             // of the gate on this run alone
	Valid       bool     `parquet:"valid"`                    // the client kept its schedule
}

// CapacityEnvelope is one row of a Capacity Envelope: a class under a pattern of arrivals.
type CapacityEnvelope struct {
	RunID       string   `parquet:"run_id,dict"`                             // digest of the plan, gates and trace
	Class       string   `parquet:"class,dict"`                              // workload class; mix = all
	Pattern     string   `parquet:"pattern,dict"`                            // arrivals: real, poisson, smooth, bursty
	Load        string   `parquet:"load,dict"`                               // in_mix, alone
	State       string   `parquet:"state,dict"`                              // confirmed, inconclusive
	SafeQPS     *float64 `parquet:"safe_qps,optional" unit:"requests/s"`     // requests/s; null = not confirmed
	Provisional *float64 `parquet:"provisional,optional" unit:"requests/s"`  // lower bound that no confirmed run stands behind yet; null = none
	Lower       float64  `parquet:"lower" unit:"requests/s"`                 // of the rate that just keeps the SLOs, requests/s
	Upper       float64  `parquet:"upper" unit:"requests/s"`                 // its upper end
	Decides     string   `parquet:"decides,dict"`                            // the rule that limits
	TestedS     float64  `parquet:"tested_s"`                                // length of the confirming run
	Offered10   float64  `parquet:"offered_p99_10s" unit:"requests/s"`       // p99 of the offered rate in bins of 10 s of the trace
	Offered60   float64  `parquet:"offered_p99_60s" unit:"requests/s"`       // the same in bins of 60 s
	Headroom10  *float64 `parquet:"headroom_10s,optional" unit:"ratio"`      // what the cluster holds with one replica less / offered_p99_10s; null = not tested
	Headroom60  *float64 `parquet:"headroom_60s,optional" unit:"ratio"`      // the same over offered_p99_60s; null = not tested
	Full60      *float64 `parquet:"headroom_full_60s,optional" unit:"ratio"` // safe_qps / offered_p99_60s; null = not confirmed
	Calibration *float64 `parquet:"calibration_factor,optional"`             // factor between production and a replay at 1.0x; null = no backtest was named
	Folder      string   `parquet:"folder"`                                  // of the confirming run
	ProfileID   *string  `parquet:"profile_id,optional"`                     // digest of the profile's inputs; null = no profile was named
	TraceSHA256 *string  `parquet:"trace_sha256,optional"`                   // of the trace that was replayed; null = synthetic arrivals
	DriftIDC    *float64 `parquet:"drift_idc_ratio,optional" unit:"ratio"`   // IDC(600 s)/IDC(60 s) of the arrivals; null = the trace is too short to tell
}
