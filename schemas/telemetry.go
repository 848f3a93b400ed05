package schemas

// TelemetrySample is one series of one target at one instant of a run.
type TelemetrySample struct {
	RunID  string            `parquet:"run_id,dict"`                // id of the run
	AtUs   int64             `parquet:"at_us"`                      // since the schedule's zero; negative before it
	Target string            `parquet:"target,dict"`                // URL or replica that was looked at
	Metric string            `parquet:"metric,dict"`                // canonical name with its unit, see docs/telemetry.md
	Labels map[string]string `parquet:"labels"`                     // engine, model, role, gpu; reason; le of a histogram's bucket
	Value  float64           `parquet:"value" unit:"of the metric"` // the value
}

// RowBytes estimates the row's size in memory, in bytes.
func (s *TelemetrySample) RowBytes() int { return 120 + 40*len(s.Labels) }
